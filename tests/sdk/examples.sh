#!/usr/bin/env bash
# examples.sh RUNTIME: the programs of examples/typescript, on Node.js or on Bun.
. "$(dirname "$0")/runtime.sh"
cp -r "$RIVAL_SOURCE/examples/typescript" "$tmp/examples" && cd "$tmp/examples" || exit 1
mkdir -p node_modules && ln -s "$sdk" node_modules/rival && ln -s "$sdk/node_modules/zod" node_modules/zod

runtime "$1"
command=("$program")
[ "$1" = bun ] || command+=(--import rival/register)

for example in *.ts; do
    run "${command[@]}" "$example"
    is "$example ends well" "$rc:$err" "0:"
    is "and does what it says" "$out" "$(cat "expected/${example%.ts}.txt")"
done
if [ "$1" = node ]; then # what the program itself does with the files
    run "$rival" check --load workflows
    is "every file is a good one" "$rc:$err:$(grep -c '^ok' <<<"$out")" "0::$(ls workflows/*.ts | wc -l)"
    run "$rival" exec workflows/tree-processing.ts -i '{"treeType":"oak"}'
    is "and runs without a program" "$rc:$(jq -r .results.chopTree.state.description <<<"$out")" "0:Chopped tree oak-123"
fi
done_testing

#!/usr/bin/env bash
# examples.sh RUNTIME: the programs of examples/typescript, on Node.js or on Bun.
. "$(dirname "$0")/../e2e/tap.sh"
sdk=$RIVAL_SOURCE/sdk/node
if [ ! -f "$sdk/dist/.built" ]; then
    ok "sdk/node was built" false
    done_testing
fi
export RIVAL_BIN=$rival
cp -r "$RIVAL_SOURCE/examples/typescript" "$tmp/examples" && cd "$tmp/examples" || exit 1
mkdir -p node_modules && ln -s "$sdk" node_modules/rival && ln -s "$sdk/node_modules/zod" node_modules/zod

case $1 in
node) runtime=(node --import rival/register) ;;
bun)
    # A package of its own: nobody who builds Rival needs it. Its program is one file, and no script is run.
    (cd "$sdk/tests/bun" && { [ -d node_modules ] || npm ci --silent --ignore-scripts --no-audit --no-fund; }) >"$tmp/npm" 2>&1
    runtime=("$(echo "$sdk"/tests/bun/node_modules/@oven/bun-*/bin/bun)")
    if [ ! -x "${runtime[0]}" ]; then
        if [ "${CI:-}" = true ]; then
            ok "Bun can be had" false
        else
            echo "ok 1 - the examples on Bun # SKIP Bun cannot be had: $(tail -n 1 "$tmp/npm")"
            tap_count=1
        fi
        done_testing
    fi
    ;;
esac

for program in *.ts; do
    run "${runtime[@]}" "$program"
    is "$program ends well" "$rc:$err" "0:"
    is "and does what it says" "$out" "$(cat "expected/${program%.ts}.txt")"
done
if [ "$1" = node ]; then # what the program itself does with the files
    run "$rival" check --load workflows
    is "every file is a good one" "$rc:$err:$(grep -c '^ok' <<<"$out")" "0::$(ls workflows/*.ts | wc -l)"
    run "$rival" exec workflows/tree-processing.ts -i '{"treeType":"oak"}'
    is "and runs without a program" "$rc:$(jq -r .results.chopTree.state.description <<<"$out")" "0:Chopped tree oak-123"
fi
done_testing

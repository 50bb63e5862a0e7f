#!/usr/bin/env bash
# pack.sh: the tarball of the npm package, in an empty folder: what it has in it, and the README's quick start.
. "$(dirname "$0")/../e2e/tap.sh"
sdk=$RIVAL_SOURCE/sdk/node
cd "$tmp" || exit 1
if [ ! -f "$sdk/dist/.built" ]; then
    ok "sdk/node was built" false
    done_testing
fi
export RIVAL_BIN=$rival

run npm pack --silent --ignore-scripts --pack-destination "$tmp" "$sdk"
is "it packs" "$rc" 0
tarball=$tmp/$(printf '%s' "$out" | tail -n 1)
run tar tzf "$tarball"
like "with its code" "$out" "package/dist/index.js"
like "its types" "$out" "package/dist/index.d.ts"
like "and its README" "$out" "package/README.md"
unlike "without its tests and sources" "$out" "package/(tests|src|node_modules)/"

mkdir shop && cd shop || exit 1
run npm install --silent --ignore-scripts --no-audit --no-fund --prefer-offline "$tarball"
is "it installs in an empty folder, with Zod and nothing to run" "$rc:$err" "0:"
ok "Zod comes along" test -d node_modules/zod

# The first program of the README is its quick start; what it prints stands below it.
awk '/^```ts/ { inside = 1; next } /^```/ { if (inside) exit } inside' node_modules/rival/README.md >order.mjs
like "the quick start is in the README" "$(cat order.mjs)" "createWorkflow"
run node order.mjs
is "and runs" "$rc:$out" "0:completed { paid: 40 }"
run node order.mjs
is "a second time it starts nothing" "$rc:$out" "0:completed { paid: 40 }"
run "$rival" list --store orders.db --json
is "there is one run" "$(printf '%s' "$out" | jq -c '[.runs[] | [.runId, .status]]')" '[["order-1","completed"]]'

# Where the program is found: beside the package, as the package of the platform; and in PATH.
platform=node_modules/@rival/$(node -p 'process.platform + "-" + process.arch')
mkdir -p "$platform" && ln -s "$rival" "$platform/rival" && echo '{"name":"platform","version":"0.0.0"}' >"$platform/package.json"
node=$(command -v node)
run env -u RIVAL_BIN PATH=/nowhere "$node" order.mjs
is "the program is found in the platform's package" "$rc:$out" "0:completed { paid: 40 }"
rm -r "$platform"
run env -u RIVAL_BIN PATH=/nowhere "$node" order.mjs
like "nowhere: that is said" "$err" "the program 'rival' was not found: install it, name it with RIVAL_BIN"
run env -u RIVAL_BIN PATH="$(dirname "$rival")" "$node" order.mjs
is "and in PATH" "$rc:$out" "0:completed { paid: 40 }"

cat >types.mts <<'TS'
import { compileWorkflow, createWorkflow, rival, type PlanNode, type StepContext, type WaitOptions, type WorkflowDefinition } from "rival";
import { z } from "zod";
const w = createWorkflow("w").input(z.object({ a: z.number() })).step("x", ({ input }) => input.a + 1);
const n: number = await rival(w).wait("w", "1").then((o) => o.results.x!.result);
export const f = ({ steps }: StepContext): string => steps.x!.status;
export { n };
export const definition: WorkflowDefinition = w.build();
export const plan: PlanNode[] = compileWorkflow(definition).plan;
export const options: WaitOptions = { timeoutMs: 300_000, pollIntervalMs: 250, preferEvents: true, eventWaitTimeoutMs: 3000 };
TS
run "$sdk/node_modules/.bin/tsc" --noEmit --strict --module nodenext --target es2022 --skipLibCheck types.mts
is "its types are good for others" "$rc:$out" "0:"
done_testing

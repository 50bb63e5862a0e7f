#!/usr/bin/env bash
# hosts.sh: workflow files in TypeScript and JavaScript under `rival check`, `plan`, `exec`, `run` and `serve`, in a Node host.
. "$(dirname "$0")/../e2e/tap.sh"
if [ ! -f "$RIVAL_SOURCE/sdk/node/dist/.built" ]; then
    ok "sdk/node was built" false
    done_testing
fi
mkdir -p "$tmp/flows/steps" && cd "$tmp" || exit 1
server=
cleanup() { [ -z "$server" ] || kill -9 "$server" 2>/dev/null; }

cat >flows/order.ts <<'TS'
import { z } from "zod";
import { workflow } from "rival";
import { price } from "./steps/price";

export const input = z
  .object({ item: z.string().min(2).trim(), count: z.coerce.number().default(2) })
  .refine(({ item }) => item !== "void", { message: "nobody sells that", path: ["item"] });
interface Paid { paid: number }
async function pay({ steps, state, log }): Promise<Paid> {
  log.info({ amount: steps.price.result }, "paying");
  state.description = `Paid ${steps.price.result}`;
  return { paid: steps.price.result };
}
export const steps = [price, { fn: pay, maxAttempts: 2 }, workflow("./ship.ts")];
TS
cat >flows/steps/price.ts <<'TS'
export function price({ input }: { input: { item: string; count: number } }): number {
  return input.item.length * input.count;
}
TS
cat >flows/ship.ts <<'TS'
export const name = "shipping";
export function label({ input }) {
  if (input.item === "bomb") throw new Error("no bombs");
  return `to ${input.item}`;
}
export const steps = [label];
TS
cat >flows/built.mjs <<'JS'
import { createWorkflow } from "rival";
export const built = createWorkflow("built")
  .forEach("each", { items: () => [1, 2, 3], run: ({ loop }) => loop.item * 2 });
JS
cat >flows/outer.yaml <<'YAML'
steps:
  - ship: { workflow: ./ship.ts }
  - again: { workflow: shipping }
  - tag: { call: label }
YAML
echo 'import { writeFileSync } from "node:fs"; writeFileSync("ran", "x");' >flows/program.js

# Looking.
run "$rival" check flows
is "check parses, and loads nothing" "$rc:$err:$(ls)" "0::flows"
like "it says so" "$out" "flows/order.ts .*parses; its plan was not checked: --load does"
like "and what YAML nests of it" "$out" "ok  outer .*without the file that it nests"
run "$rival" check --load flows
is "with --load plans are checked" "$rc:$err:$(grep -c '^ok' <<<"$out")" "0::4"
run "$rival" plan flows/order.ts
like "plan does not run code unasked" "$rc $err" "^1 .*known only by running its code"
run "$rival" plan --load flows/order.ts
is "with --load it has the plan, with the schema of Zod" \
    "$(jq -c '[.name, [.steps[].alias], .input.properties.item.minLength]' <<<"$out")" '["order",["price","pay","ship"],2]'
printf 'interface A { b: number }\nexport const steps = [\n  function a() { return 1 +; },\n];\n' >bad.ts
run "$rival" check bad.ts
like "a syntax error has its line" "$rc $err" "^1 .*bad.ts:3:"
cat >throws.ts <<'TS'
interface Unused { a: number }
interface More { b: string }
throw new Error("at import");
export const steps = [];
TS
run "$rival" check --load throws.ts
like "and what fails when it is loaded" "$rc $err" "throws.ts:3:.*at import"
echo 'export const steps = [function a() {}]; process.exit(3);' >exits.ts
run "$rival" check --load exits.ts
like "and a file that ends its process" "$rc $err" "Node.js exited with code 3 while it loaded"
run env RIVAL_NODE=/nowhere/node "$rival" exec flows/order.ts
like "without Node.js: a clear sentence" "$rc $err" "Node.js cannot be run as '/nowhere/node'"
run env PATH=/nowhere "$rival" exec flows/order.ts
like "and where it is not in PATH" "$err" "need Node.js 20.6 or newer, which was not found"
run env RIVAL_SDK=/nowhere "$rival" exec flows/order.ts
like "and without the package" "$rc $err" "RIVAL_SDK is '/nowhere', which is not the npm package"
is "nothing was run meanwhile" "$(ls -d ran rival.db 2>/dev/null)" ""

# Running.
run "$rival" exec flows/order.ts -i '{"item":"desk"}'
is "exec runs it" "$rc:$(jq -c '[.status, .results.price.result, .results.pay.result, .results.pay.state.description, .results.ship.result]' <<<"$out")" \
    '0:["completed",8,{"paid":8},"Paid 8","to desk"]'
like "its log lines are the step's" "$err" "pay: paying"
node=$(command -v node)
printf '#!/bin/sh\necho $$ >>"%s/starts"\nexec "%s" "$@"\n' "$tmp" "$node" >counted && chmod +x counted
run env RIVAL_NODE="$tmp/counted" "$rival" exec flows/order.ts -i '{"item":"desk"}' --store once.db
is "it takes one Node.js" "$rc:$(wc -l <starts)" "0:1"
run env RIVAL_NODE="$tmp/counted" "$rival" exec flows/outer.yaml -i '{"item":"sea"}' --store once.db
is "and so does YAML that nests it" "$rc:$(wc -l <starts)" "0:2"
run env RIVAL_NODE="$tmp/counted" "$rival" exec flows/order.ts -i '{"item":"x"}' --store once.db
is "where the input is refused, too" "$rc:$(wc -l <starts)" "2:3"
is "and none is left" "$(while read -r pid; do kill -0 "$pid" 2>/dev/null && echo "$pid"; done <starts)" ""
run "$rival" exec flows/order.ts -i '{"item":"bomb"}'
is "an error has the line of the file" "$rc:$(jq -r '.error.stack' <<<"$out" | grep -oE 'ship.ts:[0-9]+')" "1:ship.ts:3"
run "$rival" exec flows/order.ts -i '{"item":"x"}'
is "a bad input is refused" "$rc" 2
run "$rival" exec flows/built.mjs
is "a workflow of the builder" "$rc:$(jq -c '[.results.each.result.iterations[].results.run.result]' <<<"$out")" "0:[2,4,6]"
run "$rival" exec flows/outer.yaml -i '{"item":"sea"}'
is "YAML nests it by file and by name, and calls its functions" \
    "$rc:$(jq -c '[.results.ship.result, .results.again.result]' <<<"$out")" '0:["to sea","to sea"]'

# Serving.
cat >flows/slow.ts <<'TS'
import { existsSync } from "node:fs";
export const steps = [
  async function wait({ run }) {
    while (!existsSync(`go-${run.runId}`)) await new Promise((done) => setTimeout(done, 20));
    return "old";
  },
];
TS
# Two at once on one store: the second hands its run over, and its files get a host there.
"$rival" exec flows/slow.ts --run-id held --store together.db >held.out 2>held.err </dev/null &
server=$!
held_runs() { "$rival" why held --store together.db | grep -q "runs, for"; }
ok "a step runs in one process" eventually held_runs
run "$rival" exec flows/order.ts -i '{"item":"desk"}' --store together.db
is "and a second exec has its run driven there" "$rc:$(jq -r .status <<<"$out")" "0:completed"
ok "meanwhile" held_runs
touch go-held
wait "$server"
is "the first ends well" "$?:$(jq -r .results.wait.result held.out)" "0:old"

"$rival" serve flows --store served.db --listen 127.0.0.1:0 --watch >server.out 2>server.err </dev/null &
server=$!
knows() { "$rival" workflows --store served.db | grep -q "^$1"; }
host_pid() { pgrep -P "$server" -f host/main.js | tail -n 1; }
status_is() { [ "$("$rival" list --store served.db --json | jq -r --arg id "$1" '.runs[] | select(.runId == $id).status')" = "$2" ]; }
ok "a server knows them" eventually knows order
run "$rival" run order -i '{"item":"lamp"}' --store served.db --wait --json
is "and runs them" "$(jq -r .results.ship.result <<<"$out")" "to lamp"
run "$rival" run order -i '{"item":" door ","count":"3"}' --store served.db --wait --json
is "Zod judges what comes from the command line, and the run gets what it gives back" "$(jq -c '[.results.price.result, .results.ship.result]' <<<"$out")" '[12,"to door"]'
run "$rival" run order -i '{"item":"void"}' --store served.db
like "what it refuses is refused, with its words" "$rc $err" "/item: nobody sells that"
is "a program beside them was not run" "$(ls -d ran flows/ran 2>/dev/null)" ""
first=$(host_pid)
ok "in a Node host" test -n "$first"
kill -9 "$first"
run "$rival" run order -i '{"item":"lamp"}' --run-id after-death --store served.db --wait --json
is "a host that dies is started again" "$(jq -r .status <<<"$out")" completed
ok "and is another one" test "$(host_pid)" != "$first"

run "$rival" run slow --run-id in-flight --store served.db
step_runs() { "$rival" why in-flight --store served.db | grep -q "runs, for"; }
ok "a step runs" eventually step_runs
sed -i 's/"old"/"new"/; s/go-/now-/' flows/slow.ts
sed -i 's/to \$/TO $/' flows/ship.ts
is_new() { [ "$("$rival" run order -i '{"item":"x1"}' --store served.db --wait --json | jq -r .results.ship.result)" = "TO x1" ]; }
ok "a change is loaded" eventually is_new
touch go-in-flight
run "$rival" wait in-flight --store served.db --json
is "what the old host has in flight ends there" "$(jq -r .results.wait.result <<<"$out")" old
one_host() { [ "$(pgrep -P "$server" -f host/main.js | wc -l)" = 1 ]; }
ok "and then the old host ends" eventually one_host

cp flows/ship.ts ship.good
echo 'export const steps = [' >flows/ship.ts
is_told() { grep -q 'ship.ts' server.err; }
ok "a file that breaks is told" eventually is_told
run "$rival" run shipping -i '{"item":"b"}' --store served.db --wait --json
is "and keeps what it was" "$(jq -r .results.label.result <<<"$out")" "TO b"
sed 's/"shipping"/"sending"/' ship.good >flows/ship.ts
ok "a workflow that is called something else now" eventually knows sending
not_known() { ! knows shipping; }
ok "takes the old name away" eventually not_known

host=$(host_pid)
kill "$server"
wait "$server" 2>/dev/null
server=
ok "no host is left" sh -c "! kill -0 $host"
done_testing

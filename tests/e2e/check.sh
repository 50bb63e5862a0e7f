#!/usr/bin/env bash
# check.sh: `rival check` and `rival plan` on files as people write and break them.
. "$(dirname "$0")/tap.sh"
broken=$(dirname "$0")/broken
unset NO_COLOR

# Twenty files, each broken in its own way, and the line where.
lines="01:3 02:3 03:6 04:5 05:4 06:5 07:4 08:5 09:7 10:3 11:5 12:5 13:5 14:4 15:1 16:2 17:7 18:4 19:5 20:10"
run "$rival" check "$broken"
is "broken files: exit code 1" "$rc" 1
is "nothing good on stdout" "$out" ""
for pair in $lines; do
    like "file ${pair%:*} is reported at line ${pair#*:}" "$err" "/${pair%:*}-[a-z-]+\.(yaml|json):${pair#*:}:[0-9]+: error: "
done
like "the line is shown" "$err" '^     6 \|       timeout: 6s$'
like "with a caret below" "$err" '^       \|       \^$'
like "and how many there are" "$err" '^21 problems in 20 files; 0 workflows are good$'
unlike "no colours in a pipe" "$err" "$(printf '\033')"

run "$rival" check --json "$broken"
is "--json: exit code 1 too" "$rc" 1
is "--json keeps stderr clean" "$err" ""
is "--json has all of them" "$(printf %s "$out" | python3 -c '
import json, sys
report = json.load(sys.stdin)
print(report["ok"], report["files"], len(report["problems"]), len({p["file"] for p in report["problems"]}))')" "False 20 21 20"

# The example of the specification, as it is written there.
mkdir "$tmp/flows"
cat >"$tmp/flows/tree.yaml" <<'YAML'
name: tree-processing
description: Find a tree and turn it into lumber
input:                                   # JSON Schema
  type: object
  required: [treeType]
  properties: { treeType: { type: string }, location: { type: string, default: forest } }
steps:
  - findTree: { command: [./find-tree, "${ .input.treeType }"] }
  - chopTree:
      http: { url: "http://127.0.0.1:8080/chop", method: POST, body: { tree: "${ .steps.findTree.result.id }" } }
      timeout: 60s
      onTimeout: retry
      maxAttempts: 3
      backoff: exponential
      description: "Chopped ${ .steps.findTree.result.id }"   # evaluated when the step ends; its own result is `.result`
  - rest: { delay: 5s }
  - sum: { value: { pieces: "${ .steps.chopTree.result.data.pieces }" } }   # no work, only an expression
  - alert: { when: "${ .input.treeType == \"oak\" }", command: [./alert] }  # false: skipped
  - planks:
      forEach: "${ .steps.findTree.result.branches }"
      parallel: true
      concurrency: 4
      run:
        - saw: { command: [./saw, "${ .loop.item }"] }
  - notify:
      concurrent:
        email: { command: [./email] }
        sms: { command: [./sms] }
      onFailure: collect
  - decide: { if: "${ .steps.sum.result.pieces > 3 }", then: [ { pay: { workflow: payment } } ], else: [ { note: { value: none } } ] }
  - poll: { loop: [ { look: { command: [./look] } } ], until: "${ .steps.look.result.done }", maxIterations: 100 }
  - finish: { call: finishTree }           # a function from a C or TypeScript file
onError: { command: [./tell-team] }
YAML
printf 'name: payment\nsteps:\n  - charge: { value: 1 }\n' >"$tmp/flows/payment.yaml"
run "$rival" check "$tmp/flows"
is "the example is good" "$rc:$err" "0:"
is "it says which workflows" "$out" "ok  payment  ($tmp/flows/payment.yaml, 1 node)
ok  tree-processing  ($tmp/flows/tree.yaml, 18 nodes)"
run "$rival" check "$tmp/flows/tree.yaml"
is "alone it finds what it nests beside it" "$rc" 0

# C files: compiled, and no more: what they declare is known only by running them.
mkdir "$tmp/c"
cat >"$tmp/c/outer.yaml" <<'YAML'
name: outer
steps:
  - pay: { workflow: payment }
YAML
cat >"$tmp/c/pay.c" <<C
#include <rival/rival.h>
#include <stdio.h>
__attribute__((constructor)) static void run_unasked(void) { FILE *f = fopen("$tmp/ran", "w"); if (f) fclose(f); }
static int charge(rv_ctx *c) { return rv_return(c, "i", 1); }
/* RV_WORKFLOW("commented", …) is none */
RV_WORKFLOW("payment", .description = "Take the money", .steps = RV_STEPS(RV_STEP(charge)))
C
cat >"$tmp/c/wrong.c" <<'C'
#include <rival/rival.h>
static int a(rv_ctx *c) { return rv_return(c, "i", 1) }
RV_WORKFLOW("wrong", .steps = RV_STEPS(RV_STEP(a)))
C
echo 'int twice(int n) { return 2 * n; }' >"$tmp/c/plain.c"
run "$rival" check "$tmp/c/outer.yaml"
is "a YAML file may nest a workflow of a C file beside it" "$rc:$err:$out" "0::ok  outer  ($tmp/c/outer.yaml, without the file that it nests)
--  $tmp/c/pay.c  (compiles; its plan was not checked: --load does that, and runs its code)"
run "$rival" check "$tmp/c"
is "a folder with a C file that does not compile: exit code 1" "$rc" 1
like "at its line and column" "$err" "^$tmp/c/wrong.c:2:54: error: expected"
like "with the line" "$err" '^ +2 \| static int a'
is "the good ones are good" "$(printf '%s\n' "$out" | grep -c '^ok\|^--')" 2
unlike "a source that is no workflow is nobody's business" "$out$err" plain
run "$rival" check --json "$tmp/c/pay.c"
is "what was not loaded is in the JSON, too" "$(printf %s "$out" | jq -c '[.ok, .notLoaded, .workflows]')" "[true,[\"$tmp/c/pay.c\"],[]]"
run "$rival" plan "$tmp/c/pay.c"
is "plan refuses a C file" "$rc:$out" "1:"
like "and says what would help" "$err" '--load'
run "$rival" plan "$tmp/c/outer.yaml"
is "and a file that nests one" "$rc:$out" "1:"
run "$rival" workflows "$tmp/c"
like "workflows lists it by the name in its text" "$out" '^payment .*pay\.c'
is "and one that does not even compile" "$(printf '%s\n' "$out" | grep -c '^wrong ')" 1
run "$rival" offer run --from "$tmp/c" ""
like "so does completion" "$out" '^payment'
(cd "$tmp/c" && CC=/bin/false "$rival" offer run "" >"$tmp/offered")
like "without a compiler" "$(cat "$tmp/offered")" '^payment'
ok "none of these ran its code" test ! -e "$tmp/ran"

run "$rival" check --load "$tmp/c/outer.yaml"
is "with --load it is looked into" "$rc:$err:$out" "0::ok  outer  ($tmp/c/outer.yaml, 2 nodes)
ok  payment  ($tmp/c/pay.c, 1 node)"
ok "and was run" test -e "$tmp/ran"
cat >"$tmp/c/wrong.c" <<'C'
#include <rival/rival.h>
static int a(rv_ctx *c) { return rv_return(c, "i", 1); }
RV_WORKFLOW("payment", .steps = RV_STEPS(RV_STEP(a, .needs = RV_NEEDS("nobody"))))
C
run "$rival" check --load "$tmp/c"
like "two of a name are told, over all kinds of files" "$err" "wrong.c:3:1: error: workflow 'payment' is already registered, by $tmp/c/pay.c"
sed -i s/payment/another/ "$tmp/c/wrong.c"
run "$rival" check --load "$tmp/c"
like "a C file is held to the same rules" "$err" "wrong.c:3:1: error: .*needs 'nobody'"
echo '__attribute__((constructor)) static void boom(void) { __builtin_trap(); }' >>"$tmp/c/wrong.c"
run "$rival" check --load "$tmp/c"
is "one that kills who looks into it kills nobody else" "$rc:$(printf '%s\n' "$out" | grep -c ^ok)" "1:2"
like "and that is told" "$err" "wrong.c: error: .*killed by"
run "$rival" plan --load --format text "$tmp/c/pay.c"
like "the plan of a C file" "$out" charge
rm "$tmp/c/wrong.c"

# A folder has other files in it, too.
mkdir "$tmp/mixed"
printf 'name: good\nsteps: [ { a: { value: 1 } } ]\n' >"$tmp/mixed/good.yaml"
echo '{"name": "a-package", "scripts": {"test": "x"}}' >"$tmp/mixed/package.json"
echo '[1, 2]' >"$tmp/mixed/list.json"
printf 'services: { web: { image: x } }\n' >"$tmp/mixed/compose.yml"
echo 'console.log(1)' >"$tmp/mixed/tool.js"
run "$rival" check "$tmp/mixed"
is "those that are no workflows are passed over in silence" "$rc:$err:$out" "0::ok  good  ($tmp/mixed/good.yaml, 1 node)"
run "$rival" check "$tmp/mixed/package.json"
is "named, each is an error" "$rc" 1
run env RIVAL_SDK=/nowhere "$rival" check "$tmp/mixed/tool.js"
like "and a script, where there is nothing to look at it with" "$rc $err" "^1 .*is not the npm package"
printf 'name: slip\nstep: [ { a: { value: 1 } } ]\n' >"$tmp/mixed/slip.yaml"
run "$rival" check "$tmp/mixed"
like "a slip of the pen makes none of a workflow" "$rc $err" "unknown key 'step'.*'steps'"
rm "$tmp/mixed/slip.yaml"
printf 'name: risky\nsteps: [ { a: { command: [sh, -c, "echo ${ .input }"], timeout: 30 } } ]\n' >"$tmp/mixed/risky.yaml"
run "$rival" check "$tmp/mixed"
is "warnings leave the exit code alone" "$rc:$(printf '%s\n' "$err" | grep -c ': warning: ')" "0:2"
like "and are at their place" "$err" "risky.yaml:2:36: warning: an expression in a shell script"
run "$rival" check --json "$tmp/mixed"
is "also in JSON" "$(printf %s "$out" | jq -c '[.ok, (.warnings | length)]')" "[true,2]"

# The cache of objects: what is in it is run, so it must be ours, and nobody else's to write.
export XDG_CACHE_HOME=$tmp/cache
mkdir -p "$tmp/cache/rival" && chmod 777 "$tmp/cache/rival"
run "$rival" check --load "$tmp/c/pay.c"
is "a cache that others may write to is refused" "$rc" 1
like "saying what to do" "$err" 'writable by others.*chmod go-w'
chmod 700 "$tmp/cache/rival"
umask 000
run "$rival" check --load "$tmp/c/pay.c"
umask 022
is "one of ours is taken" "$rc" 0
object=$(echo "$tmp"/cache/rival/*.so)
is "what is in it is not for others, whatever the umask" "$(stat -c %a "$object")" 700
chmod 777 "$object"
echo 'not an object' >"$object"
run "$rival" check --load "$tmp/c/pay.c"
is "an object that others could have changed is made anew" "$rc:$(stat -c %a "$object")" "0:700"
mv "$object" "$tmp/elsewhere.so" && ln -s "$tmp/elsewhere.so" "$object"
run "$rival" check --load "$tmp/c/pay.c"
is "and so is a link" "$rc:$(stat -c %F "$object")" "0:regular file"
is "nothing else is left in it" "$(ls "$tmp/cache/rival" | wc -l)" 1

# A compiler that does not end is ended, with all that it started; and it ends with us.
cat >"$tmp/slow-cc" <<SH
#!/bin/sh
case "\$*" in *--version*) exit 0 ;; *-E*) exec cc "\$@" ;; esac
sleep 600 & echo \$! >"$tmp/compiling"
wait
SH
chmod +x "$tmp/slow-cc"
gone() { ! kill -0 "$(cat "$tmp/compiling")"; }
run env CC="$tmp/slow-cc" RIVAL_COMPILE_TIMEOUT=1s "$rival" check "$tmp/c/pay.c"
is "a compiler that takes too long is stopped" "$rc" 1
like "and that is told" "$err" 'stopped after 1000 ms'
ok "with what it started" eventually gone
rm "$tmp/compiling"
CC="$tmp/slow-cc" "$rival" check "$tmp/c/pay.c" & checking=$!
eventually test -s "$tmp/compiling"
kill -KILL $checking
ok "a killed check takes its compiler with it" eventually gone
wait $checking 2>/dev/null
unset XDG_CACHE_HOME

run "$rival" plan "$tmp/flows/tree.yaml"
is "plan prints JSON" "$(printf %s "$out" | python3 -c '
import json, sys
plan = json.load(sys.stdin)
print(plan["name"], *[node["alias"] for node in plan["steps"]])')" \
    "tree-processing findTree chopTree rest sum alert planks notify decide poll finish"
run "$rival" plan --format text "$tmp/flows/tree.yaml"
like "as a tree" "$out" '^│  │  └─ pay: workflow payment$'
run "$rival" plan --format=mermaid "$tmp/flows/tree.yaml"
like "as a flowchart" "$out" '^flowchart TD$'
run "$rival" plan --format mermade "$tmp/flows/tree.yaml"
is "an unknown format is a usage error" "$rc" 2
like "and a slip is recognised" "$err" "did you mean 'mermaid'\?"
run "$rival" plan "$broken/04-unknown-key.yaml"
is "the plan of a broken file: exit code 1" "$rc" 1
like "with the reason" "$err" "04-unknown-key.yaml:5:7: error: unknown key 'maxAtempts'"

run "$rival" check
is "check needs files" "$rc" 2
run "$rival" check --jsn x
is "an unknown option is a usage error" "$rc" 2
run "$rival" check "$tmp/nowhere.yaml"
is "a file that is not there: exit code 1" "$rc" 1
like "and it says so" "$err" "nowhere.yaml: error: there is no such file or folder"

# The pages show workflows that are good, as they stand (a nested one is not beside them).
mkdir "$tmp/shown"
awk -v to="$tmp/shown/" '/^```yaml/ { n++; inside = 1; next } /^```/ { inside = 0 } inside { print > (to "shown" n ".yaml") }' \
    "$RIVAL_SOURCE/README.md" "$RIVAL_SOURCE/docs/guide/workflow-files.md" "$RIVAL_SOURCE/docs/reference/workflow-file.md"
run "$rival" check "$tmp/shown"
is "the workflows on the pages are good" "$rc:$err" "0:"
is "all ten of them" "$(printf '%s\n' "$out" | wc -l)" 10

done_testing

#!/usr/bin/env bash
# nested.sh: workflows that nest others by file, in YAML and C; functions that files call; names of files.
. "$(dirname "$0")/tap.sh"
export XDG_CACHE_HOME=$tmp/cache
mkdir -p "$tmp/shop/parts" && cd "$tmp/shop" || exit 1
result() { printf %s "$out" | jq -c ".results.$1.result"; }

cat >pay.c <<'C'
#include <rival/rival.h>
static int charge(rv_ctx *c) { return rv_return(c, "{s:i}", "paid", 7); }
RV_WORKFLOW("payment", .steps = RV_STEPS(RV_STEP(charge), RV_NESTED("./parts/receipt.yaml", .input = "{\"to\": \"${ .steps.charge.result.paid }\"}")))
C
cat >parts/receipt.yaml <<'YAML'
input: { type: object, required: [to] }
steps:
  - text: { value: "receipt for ${ .input.to }" }
  - stamp: { workflow: ./stamp.c }
  - whole: { value: "${ .steps.text.result }, ${ .steps.stamp.result }" }
YAML
cat >parts/stamp.c <<'C'
#include <rival/rival.h>
static int press(rv_ctx *c) { return rv_return(c, "s", "stamped"); }
RV_WORKFLOW("stamp", .steps = RV_STEPS(RV_STEP(press)))
C
cat >order.yaml <<'YAML'
steps:
  - pay: { workflow: ./pay.c }
  - done: { value: "${ .steps.pay.result }" }
YAML
run "$rival" exec order.yaml --json --store a.db
is "YAML nests C, which nests YAML, which nests C, each by its file" "$rc:$(result done)" '0:"receipt for 7, stamped"'
run "$rival" show --store a.db --json "$(printf %s "$out" | jq -r .runId)"
is "a file without a name is called after itself" "$(printf %s "$out" | jq -r .workflow)" order
run "$rival" check --load order.yaml
is "check finds them all" "$rc:$(printf '%s\n' "$out" | grep -c '^ok ')" "0:4"
run "$rival" check order.yaml
is "and without --load says which it did not look into" "$rc:$(printf '%s\n' "$out" | grep -c -- '^-- ')" "0:1"
run "$rival" exec pay.c --json --store b.db
is "a C file alone finds what it nests" "$rc:$(result receipt)" '0:"receipt for 7, stamped"'
run "$rival" plan --load --json pay.c
is "and its plan has it" "$rc:$(printf %s "$out" | jq -c '[.steps[] | .alias]')" '0:["charge","receipt"]'
sed -i 's/receipt.yaml/none.yaml/' pay.c
run "$rival" exec order.yaml --json --store c.db
is "a file that is not there: nothing is run" "$rc" 2
like "and that is told" "$err" 'pay.c.*none.yaml'
sed -i 's/none.yaml/receipt.yaml/' pay.c
echo '  - again: { workflow: ../order.yaml }' >>parts/receipt.yaml
run "$rival" check --load order.yaml
is "a circle through files is refused" "$rc" 1
like "as such" "$err" "contains itself"
sed -i '$d' parts/receipt.yaml
printf 'steps: [ { a: { workflow: ./nobody.c } } ]\n' >lost.yaml
run "$rival" check lost.yaml
like "a C file that is not there is told at its place" "$err" "^lost.yaml:1:27: error: there is no workflow file '.*nobody.c'"

# Names.
printf 'steps: [ { a: { value: 1 } } ]\n' >"my file.yaml"
run "$rival" check "my file.yaml"
is "a file whose name cannot be one needs another" "$rc" 1
like "which is told" "$err" "needs a 'name'.*'my file'"
rm "my file.yaml"

# A workflow may read nodes of whoever nests it, if it says which.
mkdir "$tmp/needs" && cd "$tmp/needs" || exit 1
printf 'needs: [validate]\nsteps:\n  - charge: { value: "${ .steps.validate.result.sum }" }\n' >payment.yaml
printf 'steps:\n  - validate: { value: { sum: 12 } }\n  - each: { forEach: [1, 2], run: [ { pay: { workflow: ./payment.yaml } } ] }\n  - last: { workflow: payment }\n' >order.yaml
run "$rival" exec order.yaml --json
is "a nested workflow reads what it needs, at any depth" "$rc:$(result last):$(printf %s "$out" | jq -c '.results.each.result.iterations[1].results.pay.result')" "0:12:12"
run "$rival" check payment.yaml order.yaml
is "alone it is good" "$rc" 0
run "$rival" exec payment.yaml --json
is "but cannot be run" "$rc:$out" "2:"
like "which is told with its reason" "$err" "'payment' cannot be run alone: it needs 'validate'"
printf 'steps:\n  - pay: { workflow: ./payment.yaml }\n  - validate: { value: 1 }\n' >wrong.yaml
run "$rival" check wrong.yaml
like "each place that nests it is checked" "$rc $err" "wrong.yaml:2:12: error: workflow 'payment' needs 'validate', which is not the alias of a node before it"
sed -i 's/needs: .*/needs: [other]/' payment.yaml
run "$rival" check payment.yaml
like "what it does not say it cannot read" "$err" "there is no node 'validate'"
cat >c.c <<'C'
#include <rival/rival.h>
static int look(rv_ctx *c) { return rv_return(c, "s", rv_str(c, ".steps.validate.result")); }
RV_WORKFLOW("c", .needs = RV_NEEDS("validate"), .steps = RV_STEPS(RV_STEP(look)))
C
printf 'steps:\n  - validate: { value: fine }\n  - c: { workflow: ./c.c }\n' >with-c.yaml
run "$rival" exec with-c.yaml --json
is "so may one in C" "$rc:$(result c)" '0:"fine"'
run "$rival" exec c.c --json
like "which cannot be run alone either" "$rc $err" "cannot be run alone"

# Functions: of two of a name, neither is taken by chance.
mkdir "$tmp/calls" && cd "$tmp/calls" || exit 1
for file in first second; do
    cat >$file.c <<C
#include <rival/rival.h>
static int who(rv_ctx *c) { return rv_return(c, "s", "$file"); }
static int only_$file(rv_ctx *c) { return rv_return(c, "s", "only $file"); }
RV_WORKFLOW("$file", .steps = RV_STEPS(RV_STEP(who), RV_STEP(only_$file)))
C
done
printf 'steps:\n  - a: { call: who }\n' >any.yaml
run "$rival" exec any.yaml --json
is "a call that two C files could answer is refused" "$rc" 2
like "naming both" "$err" "'who'.*('first' and 'second'|'second' and 'first')"
like "and saying how to choose" "$err" 'call: file/who'
printf 'steps:\n  - a: { call: second/who }\n  - b: { call: first/who }\n  - call: first/only_first\n  - c: { call: only_second }\n' >which.yaml
run "$rival" exec which.yaml --json
is "file/function says which" "$rc:$(result a):$(result b):$(result only_first):$(result c)" \
    '0:"second":"first":"only first":"only second"'
done_testing

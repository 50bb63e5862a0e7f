#!/usr/bin/env bash
# scopes.sh: what an execution may read of its run: every interface from every scope, and the record of it.
. "$(dirname "$0")/tap.sh"
unset http_proxy HTTP_PROXY all_proxy ALL_PROXY
pid=
cleanup() { [ -z "$pid" ] || kill -9 "$pid" 2>/dev/null; }
cd "$tmp" || exit 1
export RIVAL_PROGRAM=$rival SEEN=$tmp

# probe.sh: the agent of a state tries all there is, and prints by a word each what it could do.
cat >probe.sh <<'S'
#!/bin/bash
stdin=$(cat)
tried() { # NAME CMD…: could it?
    local name=$1
    shift
    if "$@" >"$SEEN/$RIVAL_STEP.$name" 2>"$SEEN/$RIVAL_STEP.$name.err"; then echo "$name"; fi
}
has() { jq -e "$1" <<<"$stdin" >/dev/null 2>&1 && echo "$2"; }
ask() { # NAME PATH: over HTTP, with the token
    [ -n "$RIVAL_URL" ] || return 0
    local code
    code=$(curl -s -o "$SEEN/$RIVAL_STEP.$1" -w '%{http_code}' -H "Authorization: Bearer $RIVAL_TOKEN" "$RIVAL_URL/api/v1/$2")
    case $code in
    200) echo "$1" ;;
    403) ;;
    *) echo "$1:$code" ;;
    esac
}
id=$RIVAL_RUN_ID
{
    has '.inputs.x' inputs
    has '.steps | has("before")' steps
    has '.env' env
    has '.lastStep' lastStep
    tried logs "$RIVAL_PROGRAM" logs "$id"
    tried follow "$RIVAL_PROGRAM" logs "$id" -f
    tried list "$RIVAL_PROGRAM" attachments "$id"
    given=$(sed -n 1p "$SEEN/ids") other=$(sed -n 2p "$SEEN/ids")
    tried given "$RIVAL_PROGRAM" attachments "$id" "$given"
    tried other "$RIVAL_PROGRAM" attachments "$id" "$other"
    tried show "$RIVAL_PROGRAM" show "$id"
    tried why "$RIVAL_PROGRAM" why "$id"
    tried runs "$RIVAL_PROGRAM" list
    tried audit "$RIVAL_PROGRAM" audit "$id"
    tried signal "$RIVAL_PROGRAM" signal "$id" go
    tried cancel "$RIVAL_PROGRAM" cancel "$id"
    tried elsewhere "$RIVAL_PROGRAM" logs another-run
    ask http-logs "runs/$id/logs"
    ask http-list "runs/$id/attachments"
    ask http-given "runs/$id/attachments/$(jq -rn --arg v "$given" '$v|@uri')"
    ask http-other "runs/$id/attachments/$(jq -rn --arg v "$other" '$v|@uri')"
    for what in plan nodes why; do ask "http-$what" "runs/$id/$what"; done
    ask http-run "runs/$id"
    for what in "runs/$id/wait" "runs/$id/events" "runs/$id/history" "runs/$id/history?logs=1" runs workflows events counts; do
        ask "http-${what//\//-}" "$what"
    done
    ask http-elsewhere runs/another-run/logs
    [ -z "$RIVAL_URL" ] || curl -s -o "$SEEN/$RIVAL_STEP.post" -w 'post:%{http_code} ' -X POST -H "Authorization: Bearer $RIVAL_TOKEN" "$RIVAL_URL/api/v1/runs/$id/cancel"
    [ -z "$RIVAL_URL" ] || curl -s -o "$SEEN/$RIVAL_STEP.mcp" -w 'mcp:%{http_code} ' -X POST -H "Authorization: Bearer $RIVAL_TOKEN" -d '{}' "$RIVAL_URL/mcp"
} | paste -sd' ' | jq -R .
S
cat >source.sh <<'S'
#!/bin/sh
cat >/dev/null
echo "$RIVAL_STEP looked" >&2
echo '{"private":"words"}'
S
# Those that say which attachments there are: to the states behind them.
cat >ids.sh <<'S'
#!/bin/sh
cat >/dev/null
"$RIVAL_PROGRAM" attachments "$RIVAL_RUN_ID" --json | jq -r '.attachments[] | select(.stage == "before") | .id' | sort -r >"$SEEN/ids"
S
# What a function sees, in a host.
cat >look.c <<'S'
#include <rival/rival.h>
#include <stdio.h>
int look(rv_ctx *c)
{
    char seen[100];
    const char *inputs = rv_json(c, ".inputs.x"), *step = rv_json(c, ".steps.before.status");
    const char *last = rv_json(c, ".lastStep.result"), *all = rv_json(c, ".steps");
    snprintf(seen, sizeof seen, "%s%s%s%s", inputs ? "inputs " : "", step ? "steps " : "", last ? "last " : "",
             all && all[1] != '}' ? "all " : "");
    return rv_return(c, "s", seen);
}
RV_WORKFLOW("looks", .steps = RV_STEPS(RV_STEP(look)))
S
# And a workflow that is an agent: what is in it sees no more than the agent would.
cat >inner.yaml <<'Y'
name: inner
steps:
  - own: { value: 1 }
  - deep: { command: [sh, -c, "jq -c '[.steps | keys[]]'"], stdin: context }
Y
chmod +x ./*.sh
{
    echo "name: scopes"
    echo "stages:"
    echo "  before:"
    echo "    - { name: one, agent_id: source }"
    echo "    - { name: two, agent_id: source, priority: 50 }"
    echo "  then:"
    echo "    - { name: ids, agent_id: ids, priority: 900 }"
    for scope in none logs explicit all; do
        for agent in probe look inner; do
            echo "    - { name: $agent-$scope, agent_id: $agent, accessibility: $scope, depends_on: { x: { state: two, stage: before }, i: { state: ids } } }"
        done
    done
    echo "agents:"
    echo "  - { id: source, command: [./source.sh] }"
    echo "  - { id: ids, command: [./ids.sh] }"
    echo "  - { id: probe, command: [./probe.sh] }"
    echo "  - { id: look, call: look }"
    echo "  - { id: inner, workflow: inner }"
} >m.yaml

get() { printf %s "$out" | jq -rc "$1"; }
result() { get ".results.then.result.\"$1\".result"; }

# ---- by the store, under exec
run "$rival" exec m.yaml --store s.db --run-id r1 --json
is "under exec: the run completes" "$rc $(get .status)" "0 completed"
is "none: nothing, by the command or on stdin" "$(result probe-none)" ""
is "logs: logs and the list of attachments" "$(result probe-logs)" "logs list"
is "explicit: the same, its inputs, and their attachments" "$(result probe-explicit)" "inputs logs list given"
is "all: everything of its own run" "$(result probe-all)" "inputs steps env logs list given other show why audit"
is "a function in a host: none" "$(result look-none)" ""
is "… logs" "$(result look-logs)" ""
is "… explicit" "$(result look-explicit)" "inputs "
is "… all" "$(result look-all)" "inputs steps last all "
is "a step in a workflow that is an agent: none" "$(result inner-none)" '["own"]'
is "… logs" "$(result inner-logs)" '["own"]'
is "… explicit" "$(result inner-explicit)" '["own"]'
is "… all" "$(result inner-all)" '["before","own"]'
like "who is refused is told why" "$(cat probe-none.logs.err)" "the scope 'none' does not allow to read logs"
like "… also of another run" "$(cat probe-all.elsewhere.err)" "the token is of no attempt of run|no run 'another-run'|this engine is for run"

run "$rival" audit r1 --store s.db --json
# reads STATE: what its agent has read, in order of time.
reads() { get "[.entries[] | select(.action == \"read\" and (.by // \"\" | startswith(\"[then][$1]\"))) | .what + \" \" + .through] | map(gsub(\"\\\\[before\\\\]\\\\[(?<s>[a-z]+)\\\\].*? \"; \"\\(.s) \")) | join(\",\")"; }
is "audit: what an agent that may nothing has read" "$(reads probe-none)" ""
is "audit: what was read by the commands of the others" "$(reads probe-logs)" "logs cli,attachments cli"
is "… and that it was an attachment it depends on" "$(reads probe-explicit)" "logs cli,attachments cli,attachments/two cli"
like "… all of it" "$(reads probe-all)" "attachments/one cli,run cli"
like "… the outcomes of other nodes in its context, too" "$(reads probe-all)" "steps context"
is "… as a function sees them" "$(reads look-all)" "steps/before context,steps context"
is "… and a step of a workflow that is an agent" "$(reads inner-all)" "steps context"
is "inputs are told with the start of the attempt" "$(get '[.entries[] | select(.action == "see" and .path == "then:probe-explicit") | .saw.x] | join(",") | .[0:13]')" "[before][two]"

# ---- by HTTP, under serve
mkdir serve && cp m.yaml inner.yaml look.c ./*.sh serve/
"$rival" serve serve --store serve.db --listen 127.0.0.1:0 >url 2>serve.err &
pid=$!
eventually grep -q http url
url=$(cat url)
printf '%s\n' "$(curl -s -X POST "$url/api/v1/workflows/scopes/runs" -H 'Content-Type: application/json' -d '{"runId":"r2"}')" >started
eventually curl -sf "$url/api/v1/runs/r2/wait?timeoutMs=50000" -o outcome
out=$(cat outcome)
is "under serve: the run completes" "$(get .status)" completed
refused="post:403 mcp:403 "
is "none" "$(result probe-none)" "http-elsewhere:401 $refused"
is "logs" "$(result probe-logs)" "logs list http-logs http-list http-elsewhere:401 $refused"
is "explicit" "$(result probe-explicit)" "inputs logs list given http-logs http-list http-given http-elsewhere:401 $refused"
is "all" "$(result probe-all)" \
    "inputs steps env logs list given other show why audit http-logs http-list http-given http-other http-plan http-nodes http-why http-run http-runs-r2-history http-elsewhere:401 $refused"
out=$(curl -s "$url/api/v1/runs/r2/history?limit=10000")
like "each is an event, before it was answered" "$(get '[.events[] | select(.kind == "step.read" and .through == "http") | .what] | unique | join(" ")')" 'attachments/\[before\]\[two\].* logs nodes plan run why'

# ---- a token is of its attempt, and gone with it
cat >keep.yaml <<'Y'
name: keep
stages:
  s: [{ name: a, agent_id: k }]
agents: [{ id: k, command: [sh, -c, 'cat >/dev/null; echo "\"$RIVAL_TOKEN\""'] }]
Y
cp keep.yaml serve/kept.yaml
run "$rival" exec keep.yaml --store k.db --run-id k1 --json
token=$(get .results.s.result.a.result)
like "a token has 256 bits" "$token" '^rvx_[0-9a-f]{64}$'
is "it is not valid after its attempt: HTTP" "$(curl -s -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $token" "$url/api/v1/runs/r2/logs")" 401
RIVAL_TOKEN=$token run "$rival" logs k1 --store k.db
like "… nor where nobody drives the store" "$rc $err" "^1 .*nobody drives the store: no token is valid"
RIVAL_TOKEN=${token}0 run "$rival" logs r2 --store serve.db
like "… nor one that never was" "$rc $err" "^1 .*the token is of no attempt of run 'r2'"
unset RIVAL_TOKEN
cat >plain.yaml <<'Y'
name: plain
steps: [{ a: { command: [sh, -c, 'echo "[$RIVAL_TOKEN$RIVAL_URL]"'] } }]
Y
run "$rival" exec plain.yaml --store p.db --json
is "a plain step has none" "$(get .results.a.result)" "[]"
done_testing

#!/usr/bin/env bash
# tools-later.sh: `tool` steps that do not end with the first answer, with scripted MCP servers (mcp_server.py): questions to a
# person, which are signals of the run, and tasks, which are asked for until they are done; in all revisions, by pipes and
# by HTTP, over kill -9 and cancel.
. "$(dirname "$0")/mcp_servers.sh"
cleanup() { exec 8>&-; for pid in $pids; do kill -9 "$pid" 2>/dev/null; done; }
start_mcp_servers "" ""
mkdir flows
for server in $servers; do
    for tool in ask asks again badly impatient unsure work; do
        printf 'name: %s-%s\nsteps:\n  - call: { tool: { server: %s, name: %s } }\n' "$tool" "$server" "$server" "$tool" >"flows/$tool-$server.yaml"
    done
done
printf 'name: short\nsteps:\n  - call: { tool: { server: http-2026-07-28, name: ask }, timeout: 1h }\n' >flows/short.yaml

# The engine is its own process; it is killed now and then.
begin() {
    rm -f url
    "$rival" serve flows --store s.db --config rival.yaml --listen 127.0.0.1:0 --log-level error >url 2>serve.err & engine=$!
    pids="$pids $engine"
    eventually test -s url
}
die() { kill -9 "$engine"; wait "$engine" 2>/dev/null; }
start() { "$rival" run "$1" --store s.db --run-id "$2" >/dev/null; }
why() { "$rival" why "$1" --store s.db --json; }
asks() { why "$1" | jq -en 'input | .waits[] | select(.reason == "signal")' >/dev/null; }
ended() { case $("$rival" show "$1" --store s.db --json | jq -r .status) in completed | failed | cancelled) ;; *) false ;; esac; }
result() { eventually ended "$1" && "$rival" show "$1" --store s.db --json | jq -r '.results.call | .result // .error.message'; }
calls() { jq -r 'select(.method == "tools/call") | .params.name' "$1/asked" | grep -c "^$2\$"; }

begin
for server in $servers; do
    start "ask-$server" "a-$server"
    ok "$server: a question is a wait for a signal" eventually asks "a-$server"
    is "$server: with its name, its words and its schema" "$(why "a-$server" | jq -rc '.waits[0] | .name, .nodes[0].asks.message, .nodes[0].asks.schema.properties.content.required[0], (.message | endswith(": Who are you?"))' | tr '\n' ' ')" "elicit:call Who are you? name true "
    run "$rival" signal "a-$server" elicit:call '{"action": "accept", "content": {}}' --store s.db
    like "$server: an answer that does not fit is refused" "$rc $err" "^1 .*payload of signal 'elicit:call' is refused"
    run "$rival" signal "a-$server" elicit:call '{"action": "accept"}' --store s.db
    like "$server: so is one that accepts and says nothing" "$rc $err" "^1 .*payload of signal 'elicit:call' is refused"
    run "$rival" signal "a-$server" elicit:call '{"action": "accept", "content": {"name": "kim"}}' --store s.db
    is "$server: one that fits is taken, and the tool goes on with it" "$rc $(result "a-$server")" '0 accept {"name": "kim"}'
    start "ask-$server" "d-$server"
    eventually asks "d-$server"
    "$rival" signal "d-$server" elicit:call '{"action": "decline"}' --store s.db >/dev/null
    is "$server: no is an answer, too" "$(result "d-$server")" "decline null"
    start "asks-$server" "s-$server"
    eventually asks "s-$server"
    "$rival" signal "s-$server" elicit:call '{"action": "accept", "content": {"n": 1}}' --store s.db >/dev/null
    second() { why "s-$server" | jq -en 'input | .waits[0].nodes[0].asks.message == "The second?"' >/dev/null; }
    ok "$server: a second question follows the first" eventually second
    "$rival" signal "s-$server" elicit:call '{"action": "cancel"}' --store s.db >/dev/null
    is "$server: and both answers arrive" "$(result "s-$server")" 'accept {"n": 1}; cancel null'
    start "again-$server" "g-$server"
    eventually asks "g-$server"
    "$rival" signal "g-$server" elicit:call '{"action": "accept", "content": {"n": 1}}' --store s.db >/dev/null
    # Refused until it is asked.
    eventually "$rival" signal "g-$server" elicit:call '{"action": "accept", "content": {"n": 2}}' --store s.db
    is "$server: the same question again is another one" "$(result "g-$server")" 'accept {"n": 1}; accept {"n": 2}'
    case $server in *-2025-*)
        start "impatient-$server" "i-$server"
        eventually asks "i-$server"
        "$rival" signal "i-$server" elicit:call '{"action": "decline"}' --store s.db >/dev/null
        is "$server: an answer of the tool that comes before the person's is kept" "$(result "i-$server")" "done without you" ;;
    esac
done
is "the revisions of 2025 are called once for both answers" "$(calls http-2025-11-25 asks) $(calls pipe-2025-06-18 asks)" "1 1"
run "$rival" signal a-http-2025-11-25 elicit:call '{"action": "decline"}' --store s.db
like "a run that has ended takes no answer" "$rc" "^[1-9]"
start badly-http-2026-07-28 badly
eventually asks badly
run "$rival" signal badly elicit:call '{"action": "accept", "content": 7}' --store s.db
like "without a schema that can be used no answer is taken unchecked" "$rc $err" "^1 .*the answer cannot be checked, because the schema of the question is wrong: "
run "$rival" signal badly elicit:call '{"action": "decline"}' --store s.db --force
is "unless it is forced" "$rc $(result badly)" "0 decline null"
start short short
eventually asks short
is "the time-out of the step bounds the wait for an answer, from when it was asked" "$(why short | jq '.waits[0] | .dueAt - .since')" 3600000

for server in $servers; do
    start "asks-$server" "k-$server"
    eventually asks "k-$server"
done
die
begin
for server in $servers; do
    ok "$server: the question is there after kill -9" eventually asks "k-$server"
    "$rival" signal "k-$server" elicit:call '{"action": "accept", "content": {"n": 7}}' --store s.db >/dev/null
    second() { why "k-$server" | jq -en 'input | .waits[0].nodes[0].asks.message == "The second?"' >/dev/null; }
    ok "$server: what was answered is not asked again" eventually second
    "$rival" signal "k-$server" elicit:call '{"action": "accept", "content": {"n": 8}}' --store s.db >/dev/null
    is "$server: and it ends well" "$(result "k-$server")" 'accept {"n": 7}; accept {"n": 8}'
done

for server in http-2025-06-18 http-2025-11-25; do
    touch "$server/stream"
done
die
begin
for server in http-2025-06-18 http-2025-11-25; do
    start "ask-$server" "t-$server"
    ok "$server: a question may come by the stream of the server's own" eventually asks "t-$server"
    "$rival" signal "t-$server" elicit:call '{"action": "accept", "content": {"name": "lee"}}' --store s.db >/dev/null
    is "$server: and is answered" "$(result "t-$server")" 'accept {"name": "lee"}'
    rm "$server/stream"
done

start ask-http-2025-11-25 c1
eventually asks c1
"$rival" cancel c1 --store s.db >/dev/null
ok "a cancelled run tells the server that waits for its answer" eventually grep -q notifications/cancelled http-2025-11-25/asked

for server in pipe-2025-11-25 pipe-2026-07-28 http-2025-11-25 http-2026-07-28; do
    start "work-$server" "w-$server"
    task() { grep -q tasks/get "$server/asked"; }
    ok "$server: a task is asked for" eventually task
done
start work-http-2025-06-18 w-old
is "a server without tasks answers at once" "$(result w-old)" "worked at once"
die
for server in pipe-2025-11-25 pipe-2026-07-28 http-2025-11-25 http-2026-07-28; do
    rm "$server/asked"
    touch "$server/finish"
done
begin
for server in pipe-2025-11-25 pipe-2026-07-28 http-2025-11-25 http-2026-07-28; do
    is "$server: the same task is asked for after kill -9, and its result taken" "$(result "w-$server") $(calls "$server" work)" "worked 0"
    is "$server: that used up no attempt" "$("$rival" show "w-$server" --store s.db --json | jq -r '.nodes[] | select(.alias == "call") | .attempt')" 1
    rm -f "$server/finish"
    start "work-$server" "x-$server"
    told() { [ -e "$server/task-t2" ] && grep -q '"taskId": "t2"' "$server/asked"; }
    eventually told
    "$rival" cancel "x-$server" --store s.db >/dev/null
    gone() { grep -q cancelled "$server/task-t2"; }
    ok "$server: a cancelled step cancels its task" eventually gone
done

# A task that wants input. The engine is killed between its two questions.
for server in pipe-2025-11-25 pipe-2026-07-28 http-2025-11-25 http-2026-07-28; do
    start "unsure-$server" "u-$server"
    ok "$server: a task that wants input asks for it" eventually asks "u-$server"
    "$rival" signal "u-$server" elicit:call '{"action": "accept", "content": {"n": 3}}' --store s.db >/dev/null
done
second() { why "$1" | jq -en 'input | .waits[0].nodes[0].asks.message == "The second?"' >/dev/null; }
for server in pipe-2025-11-25 pipe-2026-07-28 http-2025-11-25 http-2026-07-28; do
    ok "$server: one question after the other" eventually second "u-$server"
    rm "$server/asked"
done
die
begin
for server in pipe-2025-11-25 pipe-2026-07-28 http-2025-11-25 http-2026-07-28; do
    "$rival" signal "u-$server" elicit:call '{"action": "decline"}' --store s.db >/dev/null
    is "$server: the same task gets both answers, after kill -9" "$(result "u-$server"); $(calls "$server" unsure)" 'accept {"n": 3}; decline null; 0'
done
die
done_testing

#!/usr/bin/env bash
# tools.sh: `tool` steps with scripted MCP servers (mcp_server.py) of all three revisions, by pipes and by HTTP: results,
# failures, paging, progress, lists that change, servers that die, sessions that end, secrets, cancel.
. "$(dirname "$0")/mcp_servers.sh"
cleanup() { exec 8>&-; for pid in $pids; do kill "$pid" 2>/dev/null; done; }
export MCP_TOKEN=a-very-secret-token
# shellcheck disable=SC2016 # an expression of Rival
start_mcp_servers ', env: { TOKEN: "${ .secrets.MCP_TOKEN }" }' ', headers: { Authorization: "Bearer ${ .secrets.MCP_TOKEN }" }'
cat >>rival.yaml <<EOS
  missing: { command: ./no-such-program, args: [x] }
  early: { command: [sh, -c, "echo gone at once >&2; exit 5"] }
  closed: { url: "http://127.0.0.1:1/mcp" }
  unset: { command: [cat], env: { A: "\${ .secrets.NOT_SET_ANYWHERE }" } }
EOS
field() { printf %s "$out" | jq -r "$1"; }
# steps LINE…: a workflow of these steps; its outcome is in $out.
steps() {
    printf 'name: w\nsteps:\n' >w.yaml
    printf '  - %s\n' "$@" >>w.yaml
    rm -f w.db*
    run "$rival" exec w.yaml --store w.db
}

for server in $servers; do
    rm -f "$server/asked"
    steps "echo: { tool: { server: $server, name: echo, arguments: { text: \"hi \${ .run.workflowName }\" } } }" \
        "value: { tool: { server: $server, name: value, arguments: { n: 12345678901234567 } } }" \
        "mixed: { tool: { server: $server, name: mixed } }" \
        "tick: { tool: { server: $server, name: tick } }" \
        "leak: { tool: { server: $server, name: leak } }" \
        "fail: { tool: { server: $server, name: fail, arguments: { why: because } }, continueOnError: true }" \
        "refuse: { tool: { server: $server, name: refuse }, continueOnError: true, maxAttempts: 2, backoffBaseMs: 1 }" \
        "nobody: { tool: { server: $server, name: nobody }, continueOnError: true, maxAttempts: 2 }"
    is "$server: a text is a result, a value is one" "$rc $(field .results.echo.result) $(grep -o '"value":{"result":[^}]*}' <<<"$out" | tr -d ' ')" '0 hi w "value":{"result":{"n":12345678901234567}'
    is "$server: what is more is the list of it" "$(field '.results.mixed.result[1].mimeType')" image/png
    unlike "$server: a secret is hidden in what it says" "$out" "$MCP_TOKEN"
    like "$server: and it was sent" "$(field .results.leak.result)" '(token is|header Bearer) \*\*\*'
    is "$server: a tool that fails fails its step" "$(field '.results.fail.error | .code + ": " + .message')" "tool: it did not work: because"
    like "$server: an error of the protocol, too" "$(field '.results.refuse.error | .code + ": " + .message')" "refused: the MCP server '$server' refused the call: not today"
    is "$server: such a call is tried again, a wrong one is not" "$(jq -r 'select(.method == "tools/call") | .params.name' "$server/asked" | grep -c -e refuse -e nobody)" 3
    run "$rival" logs "$(field .runId)" --store w.db --step tick
    like "$server: progress is in the log" "$out" 'progress 2 of 2: tick 2'
    is "$server: the list of tools was read once, page by page" "$(jq -r 'select(.method == "tools/list") | .params.cursor // "first"' "$server/asked" | tr '\n' ' ')" "first 5 10 15 20 "
done
is "the new revision says itself in each request" "$(jq -r 'select(.id != null) | .params._meta["io.modelcontextprotocol/protocolVersion"]' pipe-2026-07-28/asked | sort -u)" 2026-07-28
is "and shakes no hands" "$(jq -r .method pipe-2026-07-28/asked | grep -c initialize)" 0
is "the old ones do, after they were asked" "$(jq -r .method pipe-2025-06-18/asked | sed -n 1,4p | tr '\n' ' ')" "server/discover initialize notifications/initialized tools/list "
is "their session and revision are in what follows" "$(jq -r 'select(.method == "tools/call") | .headers | [(.["Mcp-Session-Id"] != null), .["MCP-Protocol-Version"]] | join(" ")' http-2025-11-25/asked | sort -u)" "true 2025-11-25"
steps "a: { tool: { server: http-2026-07-28, name: region, arguments: { region: \"zürich\", deep: { n: 7 } } } }"
is "arguments are in headers where their tool wants it" "$(field .results.a.result)" "=?base64?esO8cmljaA==?= 7"

for server in pipe-2025-11-25 pipe-2026-07-28; do
    rm -f "$server/asked"
    steps "grow: { tool: { server: $server, name: grow } }" "late: { tool: { server: $server, name: late } }"
    is "$server: a list that has changed is read again" "$rc $(field .results.late.result) $(jq -r 'select(.method == "tools/list") | .params.cursor // "first"' "$server/asked" | grep -c first)" "0 late, but there 2"
    rm -f "$server/asked" "$server/crashed"
    steps "crashy: { tool: { server: $server, name: crashy }, maxAttempts: 2, backoffBaseMs: 1 }"
    is "$server: one that dies in the midst of a call is begun again" "$rc $(field .results.crashy.result) $(jq -r 'select(.method == "tools/call") | .pid' "$server/asked" | sort -u | wc -l)" "0 survived 2"
    is "$server: nothing of its secret is kept" "$(cat w.db* | grep -ac "$MCP_TOKEN")" 0
    steps "die: { tool: { server: $server, name: die }, continueOnError: true }" "echo: { tool: { server: $server, name: echo, arguments: { text: again } } }"
    like "$server: without attempts left that is its error" "$(field '.results.die.error | .code + ": " + .message')" "lost: the MCP server '$server' was lost before it answered: it exited with code 3"
    is "$server: and others are called all the same" "$(field .results.echo.result)" again
done
touch http-2025-11-25/forget
steps "echo: { tool: { server: http-2025-11-25, name: echo, arguments: { text: new session } } }"
is "a session that has ended is begun anew, and the call made once more" "$rc $(field .results.echo.result)" "0 new session"

for server in pipe-2025-06-18 pipe-2025-11-25 pipe-2026-07-28 http-2025-06-18 http-2025-11-25 http-2026-07-28; do
    case $server in http-2025*) touch "$server/stream" ;; esac
    # Refused until the server has been asked for its list again: the notice of the change may come later than the answer.
    steps "grow: { tool: { server: $server, name: grow } }" "reread: { tool: { server: $server, name: reread }, maxAttempts: 15, backoffBaseMs: 5 }"
    is "$server: a change of the list is heard of, whichever way it comes" "$rc $(field .results.reread.result)" "0 read again"
done
for server in http-2025-06-18 http-2025-11-25; do
    rm -f "$server/asked"
    steps "echo: { tool: { server: $server, name: echo, arguments: { text: hi } } }"
    is "$server: no tool is called before the stream is open by which the server may ask" "$rc $(jq -r 'select(.method == "stream opens" or .method == "tools/call").method' "$server/asked" | tr '\n' ' ')" "0 stream opens tools/call "
    rm "$server/stream"
    steps "grow: { tool: { server: $server, name: grow } }" "forget: { command: [touch, '$tmp/$server/forget-list'] }" \
        "echo: { tool: { server: $server, name: echo, arguments: { text: still } } }"
    is "$server: a session that ends while the list is read is begun anew" "$rc $(field .results.echo.result) $(test -e "$server/forget-list"; echo $?)" "0 still 1"
done

steps "a: { tool: { server: missing, name: x }, continueOnError: true }" "b: { tool: { server: early, name: x }, continueOnError: true }" \
    "c: { tool: { server: closed, name: x }, continueOnError: true }" "d: { tool: { server: unset, name: x }, continueOnError: true }" \
    "e: { tool: { server: nobody, name: x }, continueOnError: true }"
like "a program that is not there" "$(field .results.a.error.message)" "the MCP server 'missing' cannot be used: .*no-such-program"
like "one that ends at once" "$(field .results.b.error.message)" "cannot be used: it exited with code 5: gone at once"
like "an address where nobody is" "$(field '.results.c.error | .code + " " + .message')" "serverDown the MCP server 'closed' cannot be used: "
like "a secret without a value" "$(field .results.d.error.message)" "its secret 'NOT_SET_ANYWHERE' has no value"
like "a server that the configuration does not have" "$(field '.results.e.error | .code + " " + .message')" "noServer there is no MCP server 'nobody' .*there are: pipe-2025-06-18, "

for server in pipe-2025-11-25 pipe-2026-07-28 http-2025-11-25 http-2026-07-28; do
    rm -f "$server/asked"
    case $server in
    http-2026*) how='hung up' ;;
    *) how=notifications/cancelled ;;
    esac
    # The engine, and so its server, lives until the server has heard it.
    steps "hang: { tool: { server: $server, name: hang }, timeout: 300ms, continueOnError: true }" \
        "heard: { command: [sh, -c, 'until grep -q \"\$0\" \"\$1\"; do sleep 0.05; done', '$how', '$tmp/$server/asked'], timeout: 60s }"
    is "$server: a time-out ends a call, and the server is told: $how" "$rc $(field '[.results.hang.error.code, .results.heard.status] | join(" ")')" "0 timeout completed"
done

cat >bad.yaml <<'EOS'
name: bad
steps:
  - a: { tool: { server: x } }
  - b: { tool: { server: x, name: y, argument: {} } }
  - c: { tool: { server: x, name: y, arguments: [1] } }
EOS
run "$rival" check bad.yaml
like "check: a tool needs its name" "$out$err" "bad.yaml:3:.*a tool needs a 'name'"
like "check: an unknown key" "$out$err" "bad.yaml:4:.*unknown key 'argument' of a tool; did you mean 'arguments'"
like "check: arguments are a mapping" "$out$err" "bad.yaml:5:.*invalid arguments"
for config in 'a: { command: x, url: "http://x" }' 'a: {}' 'a: { url: "ftp://x" }' 'a: { command: [x], headers: {} }' 'a: { command: [x], envs: {} }' \
    'a: { url: "http://x", headers: { A: "${ .input.x }" } }' '"a b": { command: [x] }' 'a: 3'; do
    printf 'mcpServers:\n  %s\n' "$config" >c.yaml
    run "$rival" exec w.yaml --store c.db --config c.yaml
    is "the configuration '$config' is refused" "$rc" 2
done
like "and told why" "$err" "c.yaml: MCP server 'a': it must be a mapping"

cat >m.yaml <<'EOS'
name: m
stages:
  one:
    - { name: say, agent_id: talker, parameters: { words: from a manifest } }
agents:
  - { id: talker, type: tool, tool: { server: pipe-2026-07-28, name: echo, arguments: { text: "${ .parameters.words }" } } }
EOS
run "$rival" exec m.yaml --store m.db
is "an agent of a manifest may be a tool" "$rc $(field .results.one.result.say.result)" "0 from a manifest"
none_left() { ! servers_left | grep -qv '^0$'; }
servers_left() { cat pipe-*/asked | jq -r .pid | sort -u | while read -r pid; do tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline"; done | grep -c mcp_server.py; }
ok "no server outlives its engine" eventually none_left
done_testing

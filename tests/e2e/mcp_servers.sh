# mcp_servers.sh: sourced by tests of `tool` steps: scripted MCP servers (mcp_server.py) of all three revisions.
#
#   start_mcp_servers PIPE HTTP   starts those that are reached by HTTP, and writes rival.yaml with all six of them:
#                                 pipe-REVISION and http-REVISION, each with a folder of that name. PIPE and HTTP are
#                                 added to the members of these servers, in YAML; "" adds nothing.
#
# The working folder is then $tmp, and $servers has the names. The processes are in $pids, for cleanup() to end. Standard
# input of the servers is open for as long as the script runs.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
pids=
servers="pipe-2025-06-18 pipe-2025-11-25 pipe-2026-07-28 http-2025-06-18 http-2025-11-25 http-2026-07-28"

start_mcp_servers() {
    local revision
    cd "$tmp" || exit 1
    unset http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY
    mkfifo stdin && exec 8<>stdin
    echo mcpServers: >rival.yaml
    for revision in 2025-06-18 2025-11-25 2026-07-28; do
        mkdir "pipe-$revision" "http-$revision"
        python3 "$here/mcp_server.py" "http-$revision" http "$revision" <stdin >"http-$revision/port" & pids="$pids $!"
        eventually test -s "http-$revision/port"
        cat >>rival.yaml <<EOS
  pipe-$revision: { command: [python3, $here/mcp_server.py, pipe-$revision, pipe, $revision]$1 }
  http-$revision: { url: "http://127.0.0.1:$(cat "http-$revision/port")/mcp"$2 }
EOS
    done
}

#!/usr/bin/env bash
# bench.sh: figures of the engine, and of runs as files, can be taken at small sizes; what they are at full size is `make bench`.
. "$(dirname "$0")/tap.sh"
bench=$RIVAL_BUILD/bench/bench_engine
cd "$tmp" || exit 1

run "$bench" --quick --json
is "every figure can be taken" "$rc$err" 0
is "they come as JSON" "$(printf %s "$out" | python3 -c '
import json, sys
figures = json.load(sys.stdin)["figures"]
print(len(figures) > 30, all(f["value"] >= 0 for f in figures))')" "True True"
is "a run of ten steps makes eleven commits" \
    "$(printf %s "$out" | grep -o '"one run of 10 steps: commits[^}]*' | grep -c '"value":11,')" 2
is "and nothing is left behind" "$(ls -d bench-engine-* 2>/dev/null)" ""

run "$bench" --quick --only starting
like "one kind can be chosen" "$out" 'opening an engine on an empty store'
unlike "then there are no others" "$out" 'commits'
run "$bench" --only nothing
is "one that is not there is a usage error" "$rc" 2
like "which lists those there are" "$err" 'latency.*loops'

# What is kept as a file: ten times as much costs ten times the time, and no more memory.
run "$RIVAL_BUILD/bench/bench_keep" --quick --json
is "import, export and backup do not grow faster than what they move" "$rc$err" 0
is "each is measured, in time and in memory" "$(printf %s "$out" | grep -oE '(import|export|backup): (CPU of 10|memory)' | wc -l)" 6

run "$RIVAL_BUILD/bench/bench_host" --quick --json
is "steps in hosts are measured beside those on threads" "$rc$err" 0
is "in three ways" "$(printf %s "$out" | grep -o 'ratio' | wc -l)" 3

run "$RIVAL_BUILD/bench/bench_worker" --quick --json
is "steps through a worker are measured, and bytes do not grow faster than items" "$rc$err" 0

run "$RIVAL_BUILD/bench/bench_mcp" --quick --json
is "calls of MCP are measured beside the HTTP API" "$rc$err" 0

done_testing

#!/usr/bin/env bash
# cli.sh: what `rival` says and returns, in a pipe and in a terminal.
. "$(dirname "$0")/tap.sh"
esc=$(printf '\033')
unset NO_COLOR

run "$rival" --help
is "--help succeeds" "$rc" 0
is "--help keeps stderr clean" "$err" ""
like "--help lists the commands" "$out" '^  demo '
overview=$out
run "$rival" help
is "help alone is the same page" "$out" "$overview"
run "$rival"
is "no command is a usage error" "$rc" 2
is "and the page goes to stderr" "$err" "$overview"
is "not to stdout" "$out" ""

run "$rival" demo --help
like "CMD --help shows its usage" "$out" '^Usage: rival demo NAME$'
is "and succeeds" "$rc" 0
page=$out
run "$rival" help demo
is "help CMD is the same page" "$out" "$page"
run "$rival" demo group -h
is "-h among the arguments too" "$out" "$page"

run "$rival" dmeo
is "an unknown command is a usage error" "$rc" 2
like "and a slip is recognised" "$err" "there is no command 'dmeo'; did you mean 'demo'\?"
run "$rival" xyzzy
unlike "nothing is suggested where nothing is near" "$err" "did you mean"
like "but where to look is" "$err" "see: rival --help"
run "$rival" help xyzzy
is "help for an unknown command is a usage error" "$rc" 2

run "$rival" version
like "version" "$out" '^rival [0-9]+\.[0-9]+\.[0-9]+$'
version=${out#rival }
is "it is the project's" "$version" "$(sed -n "s/^  version: '\(.*\)',/\1/p" "$RIVAL_SOURCE/meson.build")"
run "$rival" --version
is "--version says the same" "$out" "rival $version"
run "$rival" version --json
is "version --json is JSON" "$(printf %s "$out" | python3 -c 'import json,sys; print(json.load(sys.stdin)["version"])')" "$version"
run "$rival" version --jsn
is "an unknown option is a usage error" "$rc" 2

run "$rival" demo
is "demo needs a name" "$rc" 2
run "$rival" demo grop
is "an unknown demo is a usage error" "$rc" 2
like "and says which there are" "$err" "rival: 'grop' is not one of: group, resume; did you mean 'group'\?"
run "$rival" demo group now
is "one argument too many is a usage error" "$rc" 2

run "$rival" demo group
is "demo group succeeds" "$rc" 0
is "it says nothing on stderr" "$err" ""
times=$(printf '%s\n' "$out" | sed -n '/^Eight/,/=>/s/^ *\([0-9]*\) ms.*/\1/p')
is "eight tasks end" "$(printf '%s\n' "$times" | wc -l)" 8
is "and are shown in the order in which they ended" "$times" "$(printf '%s\n' "$times" | sort -n)"
like "a failing task is shown" "$out" 'FAIL +birch +RV_EFAILED: no such file on the mirror'
like "those it cancels end early" "$out" '^ +[0-9]+ ms +stop +cedar +RV_ECANCELED: stopped early'
like "a panic is an error of its task" "$out" 'FAIL +amber +RV_EPANIC: index 17 is out of bounds'
unlike "no colours in a pipe" "$out" "$esc"

# A run in three processes, of which two are killed. What a step did is said by its process.
run "$rival" demo resume
is "demo resume succeeds" "$rc" 0
is "it says nothing on stderr" "$err" ""
is "each step is done once, in the process that lived to do it" \
    "$(printf '%s\n' "$out" | sed -nE 's/^  (process|kill) (.[0-9]?) +([a-z]+) +([a-z0-9]+).*/\2 \3 \4/p' | xargs)" \
    "1 order a 1 pay 60 1 pack begins -9 while it 2 pack begins 2 pack in 2 label glued -9 while it 3 ship dry"
like "the timer is right, although its process died" "$out" 'ship +dry after 1[5-9][0-9]{2} ms'
like "the run is completed" "$out" '=> completed'
unlike "no colours in a pipe" "$out" "$esc"
run "$rival" demo resume --process 1
is "half of its own arguments is a usage error" "$rc" 2

# Interrupted: a demo ends at once, in order, and says so by its exit code.
interrupt() { # demo, signal, when, what it says, what it does not
    "$rival" demo "$1" >"$tmp/demo" 2>&1 &
    local pid=$!
    eventually grep -q "$3" "$tmp/demo"
    kill -s "$2" $pid
    wait $pid
    is "SIG$2 during demo $1: exit code 3" $? 3
    like "and it says why" "$(cat "$tmp/demo")" "$4"
    unlike "and goes no further" "$(cat "$tmp/demo")" "$5"
}
ended="every task was told and has ended" removed="the process has ended, its store is removed"
interrupt group INT ' ms ' "interrupted \(Ctrl-C\): $ended" keep_going
interrupt group TERM ' ms ' "terminated: $ended" keep_going
interrupt resume INT 'process 1 *order' "interrupted \(Ctrl-C\): $removed" 'kill -9'
interrupt resume TERM 'process 2 *pack' "terminated: $removed" 'process 3'
is "and leaves no process behind" "$(pgrep -f "^rival demo resume --process" || true)" ""

# In a real terminal, which tmux gives us on a socket of our own.
terminal=(tmux -S "$tmp/tmux" -f /dev/null)
cleanup() { "${terminal[@]}" kill-server 2>/dev/null; }
in_terminal() { # shell command; prints the screen with its colours
    "${terminal[@]}" new-session -d -x 120 -y 50 "$1; echo \"exit=\$?\"; sleep 60"
    eventually terminal_shows 'exit=[0-9]'
    "${terminal[@]}" capture-pane -p -e
    "${terminal[@]}" kill-session
}
terminal_shows() { "${terminal[@]}" capture-pane -p | grep -qE "$1"; }
like "colours in a terminal" "$(in_terminal "'$rival' --help")" "$esc\[[0-9;]*36m"
unlike "none there with NO_COLOR" "$(in_terminal "NO_COLOR=1 '$rival' --help")" "$esc\[[0-9;]*36m"
unlike "none on a dumb terminal" "$(in_terminal "TERM=dumb '$rival' --help")" "$esc\[[0-9;]*36m"
"${terminal[@]}" new-session -d -x 120 -y 50 "'$rival' demo group; echo \"exit=\$?\"; sleep 60"
eventually terminal_shows ' ms '
"${terminal[@]}" send-keys C-c
eventually terminal_shows 'exit=[0-9]'
like "Ctrl-C in a terminal ends the demo with exit code 3" "$("${terminal[@]}" capture-pane -p)" '^exit=3$'

done_testing

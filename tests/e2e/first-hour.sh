#!/usr/bin/env bash
# first-hour.sh: what docs/guide/first-hour.md says, typed into two real terminals by somebody new.
. "$(dirname "$0")/tap.sh"
export LC_ALL=C.UTF-8
unset NO_COLOR RIVAL_STORE
guide=$RIVAL_SOURCE/docs/guide/first-hour.md
server=rival-hour-$$
cleanup() { tmux -L "$server" kill-server 2>/dev/null; }
mkdir "$tmp/hour" && cd "$tmp/hour" || exit 1
typed=()

terminal() { # NAME
    tmux -L "$server" -f /dev/null new-session -d -s "$1" -x 80 -y 50 \
        "env TERM=screen-256color PS1='\$ ' PATH='$RIVAL_BUILD:$PATH' bash --norc --noprofile"
    awaits "$1" '^\$ *$'
}
screen() { tmux -L "$server" capture-pane -p -t "$1"; }
awaits() { # TERMINAL REGEX: until it stands on that terminal
    for _ in $(seq 600); do
        screen "$1" | grep -qE -- "$2" && return 0
        sleep 0.05
    done
    return 1
}
# enter TERMINAL COMMAND: on a screen that was wiped.
enter() {
    typed+=("$2")
    tmux -L "$server" send-keys -t "$1" C-l
    awaits "$1" '^\$ *$' || true
    tmux -L "$server" clear-history -t "$1"
    tmux -L "$server" send-keys -t "$1" -l "$2"
    tmux -L "$server" send-keys -t "$1" Enter
}
shows() { # SAYS TERMINAL REGEX
    awaits "$2" "$3"
    tap_result $? "$1" "the terminal shows:" "$(screen "$2" | grep .)" "expected to match: $3"
}
back() { # TERMINAL: the prompt is there again, below what the command printed
    for _ in $(seq 600); do
        [ "$(screen "$1" | grep . | tail -n 1)" = '$' ] && return
        sleep 0.05
    done
}

terminal first
terminal second

enter first "rival new hello"
shows "new makes a file" first '^created hello.yaml; run it with: rival exec hello.yaml'
back first
enter first "rival check hello.yaml"
shows "check likes it" first '^ok  hello  \(hello.yaml, 4 nodes\)'
back first
enter first "rival plan hello.yaml --format text"
shows "plan shows the timer" first 'rest.*delay'
back first

enter first "rival exec hello.yaml --run-id first"
shows "exec shows what is going on" first 'rest'
tmux -L "$server" send-keys -t first C-c
shows "Ctrl-C stops it, and says how to go on" first 'rival exec hello.yaml --run-id first *$'
back first
enter first "rival exec hello.yaml --run-id first"
shows "which goes on, to the end" first '"status": "completed"'
back first
enter first "rival show first"
shows "show has the program's own words" first 'say +completed .* said Hello, world!'
unlike "in no more than two attempts of anything" "$(screen first)" 'attempt 3'
back first

awk '/^```yaml$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$guide" >report.yaml
enter first "rival exec report.yaml --run-id monday"
shows "a wrong input is refused, with what is missing" first '/file: is required'
back first
enter first "rival exec report.yaml --run-id monday --input '{\"file\": \"data.txt\"}'"
shows "with it, the run waits" first 'approval'

enter second "rival list"
shows "the second terminal sees it" second '^monday +report +running'
back second
enter second "rival why monday"
shows "why says for what" second "^'approval' waits for the signal 'approved'"
shows "and what to type" second '^  => rival signal monday approved'
back second
enter second "rival signal monday approved '{\"by\": \"kim\"}'"
shows "the signal is sent" second '^signalled monday'
back second

shows "the run goes on, and fails" first '"failedStep": "count"'
back first
enter first "rival why monday"
shows "why says of what it failed" first "^  count: 'sh' failed with exit code"
shows "and where to read on" first '=> rival logs monday'
back first
enter first "rival logs monday"
shows "the log has what the program said" first 'info +count +.*data.txt: No such file'
back first
enter first "rival show monday"
shows "show has every step" first 'count +failed .*attempt 2'
back first

enter first "seq 42 >data.txt"
back first
enter first "rival exec report.yaml --run-id tuesday --input '{\"file\": \"data.txt\"}'"
shows "another run begins" first 'approval'
enter second "rival signal tuesday approved '{\"by\": \"kim\"}'"
shows "is agreed to" second '^signalled tuesday'
shows "and ends well" first '"status": "completed"'
back first
enter first "rival list"
shows "list has all three, the newest first" first '^tuesday +report +completed'
is "in one line each" "$(screen first | grep -cE '^(first|monday|tuesday) .* (completed|failed) ')" 3
back first
enter first "rival wait tuesday | jq .results.say.result"
shows "and the result is there for a program to read" first '^"42 lines, says kim"'
back first

is "the page has these commands, in this order" \
    "$(awk '/^```sh/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$guide")" "$(printf '%s\n' "${typed[@]}")"

done_testing

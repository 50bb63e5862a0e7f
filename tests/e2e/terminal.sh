#!/usr/bin/env bash
# terminal.sh: tables and streams as people meet them: narrow and wide terminals, pipes that close early,
# disks that are full, Ctrl-C.
. "$(dirname "$0")/tap.sh"
export PATH="$RIVAL_BUILD:$PATH" LC_ALL=C.UTF-8
unset NO_COLOR
session=rival-terminal-$$
pid=
cleanup() { tmux -L "$session" kill-server 2>/dev/null; [ -n "$pid" ] && kill -9 "$pid" 2>/dev/null; }
cd "$tmp" || exit 1

long=a-run-id-that-somebody-has-chosen-for-reasons-of-their-own:and-that-is-very-long
cat >long.yaml <<'Y'
name: a-workflow-with-a-rather-long-name
description: 注文を処理する, and a description that goes on and on until nobody reads it any more
steps:
  - first: { command: [sh, -c, "echo 漢字 >&2"], description: "写真を見る" }
  - second: { command: [sh, -c, "echo a long complaint about the state of the world that does not fit >&2; exit 3"] }
Y
printf 'name: quick\nsteps: [ { a: { value: 1 } } ]\n' >quick.yaml
printf 'name: talk\nsteps: [ { a: { command: [sh, -c, "seq 9000 >&2"] } } ]\n' >talk.yaml
rival exec long.yaml --run-id "$long" --json >/dev/null 2>&1
rival exec quick.yaml --json >/dev/null 2>&1
rival exec talk.yaml --run-id talk --json >/dev/null 2>&1
made=$(rival list --workflow quick --json | jq -r '.runs[0].runId')

# screen COLUMNS COMMAND: what stands on a terminal of that width, once the command has ended.
screen() {
    local server=$session-$BASHPID # each its own: one that is ending takes no sessions
    captured() { tmux -L "$server" capture-pane -p; }
    is_over() { captured | grep -q '^that is all$'; }
    tmux -L "$server" -f /dev/null new-session -d -x "$1" -y 50 \
        "env TERM=screen-256color sh -c '$2; echo that is all; sleep 600'"
    eventually is_over
    captured | sed '/^that is all$/,$d'
    tmux -L "$server" kill-server
}
for columns in 60 80 200; do
    shown=$(screen $columns "rival list")
    is "$columns columns: a line for each run" "$(printf '%s\n' "$shown" | wc -l)" 4
    is "statuses are whole" "$(printf '%s\n' "$shown" | grep -cE ' (completed|failed)  ')" 3
done
shown=$(screen 80 "rival list")
like "80 columns: ids that Rival made are whole" "$shown" "^$made "
like "longer ones are cut, and one can see that" "$shown" "^a-run-id-that-somebody-ha…  a-workflo…  failed"
shown=$(screen 200 "rival list")
like "200 columns: nothing is cut that fits" "$shown" "^$long  a-workflow-with-a-rather-long-name  failed"
shown=$(screen 80 "rival workflows")
is "wide characters take the room of two" "$(printf '%s\n' "$shown" | wc -l)" 4
like "and are not torn" "$shown" '注文を処理する.*…$'
shown=$(screen 80 "rival show $long")
shown=$(screen 120 "rival list")
like "120 columns: an error has a quarter of the line" "$shown" "^a-run-id-.*…  .*…  failed  .*  second: 'sh' failed with "
is "and the line fits" "$(($(printf '%s\n' "$shown" | wc -L) <= 120))" 1
sentence="the word of somebody who has read all of this and agrees with every part of it"
printf 'name: ask\nsteps: [ { a: { signal: { name: "%s" } } } ]\n' "$sentence" >ask.yaml
rival exec ask.yaml --run-id ask --json >/dev/null 2>&1 &
pid=$!
waits() { rival why ask 2>/dev/null | grep -q "$sentence"; }
eventually waits
shown=$(screen 60 "rival why ask" | grep -v '=>')
like "60 columns: why goes on in the next line, between two words" "$(printf '%s\n' "$shown" | tr -s ' \n' ' ')" "the signal '$sentence', for "
is "and its lines fit" "$(($(printf '%s\n' "$shown" | wc -L) <= 60))" 1
is "in a pipe it is one line" "$(rival why ask | grep -c "$sentence', for ")" 1
kill -9 $pid
wait $pid 2>/dev/null
pid=
shown=$(screen 80 "rival show $long")
is "show keeps to the width, but for the head" "$(($(printf '%s\n' "$shown" | tail -n +3 | wc -L) <= 80))" 1

is "in a pipe nothing is cut" "$(rival list | awk -v id="$long" '$1 == id' | wc -l)" 1
is "nor does a line end in blanks" "$(rival list | grep -c ' $')" 0

# Who closes a pipe has what he wanted.
for command in "list" "logs talk" "logs talk --json" "show talk" "--help" "check ."; do
    rival $command 2>"$tmp/pipe.err" | head -n 1 >/dev/null
    is "$command | head is quiet" "$(cat "$tmp/pipe.err")" ""
    (trap '' PIPE; rival $command 2>"$tmp/pipe.err" | head -n 1 >/dev/null)
    is "also where SIGPIPE is ignored" "$(cat "$tmp/pipe.err")" ""
done
for command in "list" "list --json" "logs talk" "--help" "workflows"; do
    rival $command >/dev/full 2>"$tmp/full.err"
    is "$command on a full disk: exit code 1" "$?" 1
    like "and it says so" "$(cat "$tmp/full.err")" "cannot write all of the output"
done

# Following a log ends with the run, and with Ctrl-C.
printf 'name: slow\nsteps: [ { a: { command: [sh, -c, "echo begun >&2; until [ -e go ]; do sleep 0.05; done; echo ended >&2"] } } ]\n' >slow.yaml
rival exec slow.yaml --run-id slow --json >/dev/null 2>&1 &
pid=$!
has_begun() { rival logs slow 2>/dev/null | grep -q begun; }
eventually has_begun
rival logs slow -f >follow.txt 2>&1 &
follower=$!
tmux -L "$session" -f /dev/null new-session -d -x 80 -y 20 "rival logs slow -f; echo code=\$? >$tmp/code; sleep 600"
shows_begun() { tmux -L "$session" capture-pane -p | grep -q begun; }
eventually shows_begun
tmux -L "$session" send-keys C-c
eventually test -s "$tmp/code"
is "Ctrl-C ends logs -f, with its code" "$(cat "$tmp/code")" "code=130"
is "and without a word" "$(tmux -L "$session" capture-pane -p | grep -c .)" 2
touch go
wait $follower
is "logs -f ends by itself when the run has ended" "$?" 0
is "with its last line" "$(awk '{ print $NF }' follow.txt | xargs)" "begun ended"
wait $pid
pid=

is "new --json says what it made" "$(rival new other --json)" '{"name":"other","file":"other.yaml"}'

done_testing

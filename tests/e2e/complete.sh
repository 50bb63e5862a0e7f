#!/usr/bin/env bash
# complete.sh: what is made of the descriptions of the commands: help, the man page, completions in real
# shells, and that the reference page keeps up with them.
. "$(dirname "$0")/tap.sh"
export PATH="$RIVAL_BUILD:$PATH" LC_ALL=C.UTF-8
scripts=$RIVAL_SOURCE/completions
session=rival-complete-$$
cleanup() { tmux -L "$session" kill-server 2>/dev/null; }
mkdir "$tmp/here" && cd "$tmp/here" || exit 1

cat >flow.yaml <<'Y'
name: orders
description: Take an order
steps:
  - ask: { value: 1 }
  - stop: { signal: { name: go } }
Y
mkdir folder
timeout 120 "$rival" exec flow.yaml --run-id ab:1 --json >/dev/null 2>&1 & first=$!
waits() { "$rival" why ab:1 2>/dev/null | grep -q signal; }
eventually waits
kill -INT $first; wait $first
printf 'name: quick\nsteps: [ { a: { value: 1 } } ]\n' >folder/quick.yaml
"$rival" exec folder/quick.yaml --run-id ab:2 --json >/dev/null

words() { "$rival" offer "$@" | cut -f1 | xargs; }
is "a command is completed" "$(words wor)" workflows
is "with what it does" "$("$rival" offer wor)" "$(printf 'workflows\tlist workflows that can be run')"
is "those that are not for people are not offered" "$(words ho) $(words desc) $(words off)" "  "
is "help completes commands" "$(words help sig)" signal
is "options of a command" "$(words logs --)" "--follow --step --attempt --level --text --server --token-file --store --json --help"
is "values of an option" "$(words list --status '')" "running suspended completed failed cancelled"
is "also behind an equals sign" "$(words list --status=c)" "--status=completed --status=cancelled"
is "words of an argument" "$(words decide ab re)" "resume restart_stage"
is "run ids by their beginning, the newest first" "$(words show ab)" "ab:2 ab:1"
is "those that have not ended, where only they make sense" "$(words cancel '')" "ab:1"
is "of the store that was named before" "$(words show --store none.db '')" ""
is "names of workflows in the files here" "$(words run o)" orders
is "and in the folder that was named" "$(words run --from folder '')" quick
is "names of workflows that were run" "$(words list --workflow '')" "quick orders"
is "steps of the run that was named" "$(words logs ab:1 --step '')" "ask stop"
is "files are the shell's business" "$("$rival" offer check '')" "$(printf '\tfiles')"
is "an argument too many has no completion" "$(words show ab:1 '')" ""
is "behind -- there are no options" "$(words show -- --)" ""
is "an unknown command has none" "$(words nothing '')" ""
run "$rival" offer show --store flow.yaml ''
is "a store that is none is no noise" "$rc$out$err" 0

# bash, as it calls the function; then as a person meets it.
cat >"$tmp/try.bash" <<'B'
source "$1"
COMP_LINE=$2 COMP_POINT=${#2}
shift 2
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_rival
printf '%s\n' "${COMPREPLY[@]}"
B
bash_offers() { bash --norc "$tmp/try.bash" "$scripts/rival.bash" "$@" 2>&1 | xargs; }
is "bash: commands" "$(bash_offers 'rival ca' rival ca)" cancel
is "bash: an option's values" "$(bash_offers 'rival list --status=fa' rival list --status = fa)" failed
is "bash: right behind the equals sign" "$(bash_offers 'rival plan --format=' rival plan --format =)" "json text mermaid"
is "bash: a run id with a colon" "$(bash_offers 'rival show ab:' rival show ab :)" "2 1"
is "bash: and in its midst" "$(bash_offers 'rival show ab:2' rival show ab : 2)" 2
is "bash: a quoted argument before is one word" \
    "$(bash_offers "rival exec --input '{\"a\": 1}' fl" rival exec --input "'{\"a\": 1}'" fl)" flow.yaml
is "bash: a file behind an @" "$(bash_offers 'rival exec --input @fl' rival exec --input @fl)" @flow.yaml
is "bash: folders" "$(bash_offers 'rival run --from f' rival run --from f)" folder

# type_in SAYS TEXT EXPECTED: what stands on the terminal after TEXT and the Tab key.
screen() { tmux -L "$session" capture-pane -p | grep -v '^$' | tail -n 1; }
shows() { screen | grep -qF -- "$1"; }
await() { eventually shows "$1"; }
type_in() {
    local says=$1 text=$2 expected=$3
    tmux -L "$session" send-keys C-u
    tmux -L "$session" send-keys -l "$text"
    await "$text"
    tmux -L "$session" send-keys Tab
    await "$expected"
    tap_result $? "$says" "the terminal shows:" "$(screen)" "expected: $expected"
}
terminal() { session=${session}x; tmux -L "$session" -f /dev/null new-session -d -x 120 -y 20 "$@"; }

terminal env PS1='$ ' bash --norc --noprofile
await '$'
tmux -L "$session" send-keys -l "source $scripts/rival.bash"
tmux -L "$session" send-keys Enter C-l
type_in "bash on a terminal completes a command" "rival workf" "rival workflows"
type_in "and an option" "rival logs ab:1 --fol" "rival logs ab:1 --follow"
type_in "and a run id with a colon" "rival cancel a" "rival cancel ab:1"
type_in "and a file" "rival check flo" "rival check flow.yaml"
tmux -L "$session" kill-server

if command -v zsh >/dev/null; then
    ok "the script for zsh is good zsh" zsh -n "$scripts/_rival"
    mkdir "$tmp/zsh" && cp "$scripts/_rival" "$tmp/zsh"
    terminal env HOME="$tmp/zsh" PS1='$ ' zsh -f
    await '$'
    tmux -L "$session" send-keys -l "fpath=($tmp/zsh \$fpath); autoload -U compinit; compinit -u -D; clear"
    tmux -L "$session" send-keys Enter
    type_in "zsh on a terminal completes a command" "rival workf" "rival workflows"
    type_in "and a value of an option" "rival list --status susp" "rival list --status suspended"
    type_in "and a file" "rival check flo" "rival check flow.yaml"
    type_in "and a run id" "rival cancel a" "rival cancel ab"
    tmux -L "$session" kill-server
fi
if command -v fish >/dev/null; then
    ok "the script for fish is good fish" fish -n "$scripts/rival.fish"
    fish_offers() { HOME=$tmp fish --no-config -c "source $scripts/rival.fish; complete -C '$1'" 2>&1; }
    is "fish completes a command, and says what it is" "$(fish_offers 'rival workf')" \
        "$(printf 'workflows\tlist workflows that can be run')"
    is "and a value of an option" "$(fish_offers 'rival list --status susp')" suspended
    is "and a run id" "$(fish_offers 'rival cancel a' | cut -f1)" ab:1
    is "and a file" "$(fish_offers 'rival check flo' | cut -f1)" flow.yaml
fi

# The man page, and what the pages of the commands say.
man=$RIVAL_BUILD/rival.1
is "the man page is good roff for groff" "$(man --warnings -l "$man" 2>&1 >/dev/null)" ""
# Without a date: two builds of one version are the same.
command -v mandoc >/dev/null && is "and for mandoc" "$(mandoc -Tlint -Wwarning "$man" | grep -v 'missing date')" ""
page=$(MANWIDTH=100 man -l "$man" | sed 's/.\x08//g')
like "it has the name" "$page" "rival - workflows and agents that survive crashes"
commands=$("$rival" offer '' | cut -f1 | grep -vE '^(help|--.*)$')
unnamed= bare= wide=
for command in $commands; do
    help=$("$rival" "$command" --help)
    printf '%s\n' "$page" | grep -q "rival $command\\b" || unnamed="$unnamed $command"
    printf '%s\n' "$help" | grep -q '^Examples:' || bare="$bare $command"
    printf '%s\n' "$help" | grep -E '^.{81}' | grep -qv '^  rival' && wide="$wide $command"
done
is "every command is in the man page" "$unnamed" ""
is "every command's page has an example" "$bare" ""
is "no page is wider than 80 columns in a pipe" "$wide" ""
"$rival" describe markdown >"$tmp/commands.md"
is "the reference page is up to date (else: build/rival describe markdown >docs/reference/commands.md)" \
    "$(diff "$RIVAL_SOURCE/docs/reference/commands.md" "$tmp/commands.md")" ""

done_testing

#!/usr/bin/env bash
# members-listeners.sh: servers that share a store in PostgreSQL: one of them tells a workflow's listeners, and when it is
# killed or stopped another one does; nothing that happened remains untold.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
cd "$tmp" || exit 1
. "$here/database.sh"

# manifest NAME: its listener keeps "MEMBER RUN".
manifest() {
    mkdir "$1"
    cat >"$1/$1.yaml" <<YAML
name: $1
stages: { s: [ { name: a, agent_id: good } ] }
listeners:
  - { on: [completed], command: [sh, -c, "echo \$WHO \$RIVAL_RUN_ID >>told.txt"] }
agents: [ { id: good, command: ["true"] } ]
YAML
}
manifest common
manifest lone
member() { # number folder
    mkdir -p -m 700 "run$1"
    WHO=$1 XDG_RUNTIME_DIR=$tmp/run$1 "$rival" serve "$2" --store "$store" --lease 15s --grace 100ms --listen 127.0.0.1:0 \
        >"url$1" 2>"err$1" &
    eval "pid$1=$!"
    pids="$pids $!"
}
for i in 1 2 3; do member $i common; done
member 4 lone
serving() { grep -q serving "err$1"; }
for i in 1 2 3 4; do ok "member $i serves" eventually serving $i; done
start() { "$rival" run "$1" --run-id "$2" --server "$(cat "url$3")" >>ids; }
told() { [ "$(cut -d' ' -f2 "$1/told.txt" 2>/dev/null | sort -u | wc -l)" = "$2" ]; }

for n in 1 2 3 4; do for i in 1 2 3; do start common "r$i-$n" $i; done; done
start lone l1 4
ok "the listeners of runs of three members are told" eventually told common 12
ok "and those of a workflow that only one has" eventually told lone 1
is "… by that one" "$(cat lone/told.txt)" "4 l1"
is "each once" "$(wc -l <common/told.txt)" 12
is "by one member" "$(cut -d' ' -f1 common/told.txt | sort -u | wc -l)" 1

first=$(cut -d' ' -f1 common/told.txt | head -n 1)
others=$(for i in 1 2 3; do [ $i = "$first" ] || echo $i; done)
set -- $others
eval "kill -9 \$pid$first; wait \$pid$first" 2>/dev/null
start common after-kill "$1"
ok "when it is killed, another one tells" eventually told common 13
second=$(grep after-kill common/told.txt | cut -d' ' -f1 | head -n 1)
ok "… which lives" test "$second" != "$first"
third=$2
[ "$second" = "$1" ] || third=$1

eval "kill -STOP \$pid$second"
start common after-stop "$third"
ok "when it is stopped past its lease, the third one does" eventually told common 14
is "… that is, it" "$(grep after-stop common/told.txt | cut -d' ' -f1 | sort -u)" "$third"
eval "kill -CONT \$pid$second"
eval "kill \$pid$third; wait \$pid$third"
start common after-all "$second"
ok "when that one ends in order, the one that was stopped tells again" eventually told common 15
# What is told twice is not counted here: a death, or a stop past the lease, may repeat what was told shortly before.
is "only runs that there were are told of" "$(cut -d' ' -f2 common/told.txt | sort -u | grep -vxF -f ids)" ""
done_testing

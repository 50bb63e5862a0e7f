#!/usr/bin/env bash
# private.sh: what holds the values of runs is for its owner alone, whatever the umask says.
. "$(dirname "$0")/tap.sh"
cd "$tmp" || exit 1
umask 000
pid=
cleanup() { [ -z "$pid" ] || kill -9 "$pid" 2>/dev/null; }
modes() { stat -c '%n %a' "$@" | sort; }

printf 'name: w\nsteps:\n  - a: { signal: go }\n' >w.yaml
"$rival" exec w.yaml --run-id r >exec.out 2>&1 </dev/null &
pid=$!
waits() { "$rival" why r | grep -q "signal 'go'"; }
ok "a run waits" eventually waits
is "the store and all beside it" "$(modes rival.db*)" "$(printf '%s 600\n' rival.db rival.db-shm rival.db-wal rival.db.lock rival.db.sock)"
run "$rival" backup copy.db
is "a backup" "$rc $(stat -c %a copy.db)" "0 600"
"$rival" signal r go >/dev/null
wait "$pid"
pid=
run "$rival" export r r.jsonl
is "an export" "$rc $(stat -c %a r.jsonl)" "0 600"
run "$rival" import r.jsonl --store other.db
is "a store that an import makes" "$rc $(stat -c %a other.db)" "0 600"
done_testing

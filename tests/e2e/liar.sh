#!/usr/bin/env bash
# liar.sh: a server that does not mean well cannot make the commands crash, hang, or write to the terminal.
. "$(dirname "$0")/tap.sh"
cd "$tmp" || exit 1
unset RIVAL_STORE
rounds=${ROUNDS:-136}
run python3 "$RIVAL_SOURCE/tests/e2e/liar.py" "${SEED:-1}" "$rounds" "$rival"
is "every command ends in order" "$out" "$rounds"

# Nodes without end: refused with the first list that cannot be true.
run python3 "$RIVAL_SOURCE/tests/e2e/endless.py" "$rival" show r1 --json
like "show --json of nodes without end is refused" "$rc $out $err" "^1  .*more than 5000000 nodes"
run python3 "$RIVAL_SOURCE/tests/e2e/endless.py" "$rival" show r1
like "… and show" "$rc $out $err" "^1  .*too many nodes to show"
done_testing

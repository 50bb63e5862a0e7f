#!/usr/bin/env bash
# liar.sh: a server that does not mean well cannot make the commands crash, hang, or write to the terminal.
. "$(dirname "$0")/tap.sh"
cd "$tmp" || exit 1
unset RIVAL_STORE
rounds=${ROUNDS:-136}
run python3 "$RIVAL_SOURCE/tests/e2e/liar.py" "${SEED:-1}" "$rounds" "$rival"
is "every command ends in order" "$out" "$rounds"
done_testing

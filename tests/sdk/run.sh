#!/bin/sh
# run.sh NAME...: run sdk/node/tests/NAME.test.ts by Node's test runner, as TAP. Without Node.js, or without the package's
# build, that is a failure: `make` says why it was not built.
set -eu
cd "${RIVAL_SOURCE:-$(dirname "$0")/../..}/sdk/node"
if [ ! -f dist/.built ]; then
    echo "1..1"
    echo "not ok 1 - sdk/node was not built: run make"
    exit 1
fi
files=
for name; do files="$files tests/$name.test.ts"; done
export RIVAL_BIN="${RIVAL_BUILD:-../../build}/rival"
# shellcheck disable=SC2086 # names without blanks
exec node --import ./tests/loader.js --test --test-reporter=tap --test-concurrency=1 $files

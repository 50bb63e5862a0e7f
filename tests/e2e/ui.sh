#!/usr/bin/env bash
# ui.sh: the web UI: its logic alone, then all of it in a real browser against real servers (ui/tests).
. "$(dirname "$0")/tap.sh"
ui=$RIVAL_SOURCE/ui packages=${UI_PACKAGES:-$RIVAL_SOURCE/ui/node_modules}
export RIVAL=$rival CHROMIUM=${CHROMIUM:-/usr/bin/chromium} TAP=1 LC_ALL=C.UTF-8

# Elsewhere than in CI a browser may be missing; there, a test that is not run is a failure.
skip() {
    if [ "${CI:-}" = true ] || [ "${CI:-}" = 1 ]; then
        echo "not ok 1 - the web UI: $1"
        echo "1..1"
        exit 1
    fi
    echo "ok 1 - the web UI # SKIP $1"
    echo "1..1"
    exit 0
}
[ -d "$packages/@playwright/test" ] || skip "its packages are not there: npm ci in ui/"
[ -x "$CHROMIUM" ] || skip "there is no $CHROMIUM"

cd "$ui" || exit 1
rc=0
node_modules/.bin/vitest run --reporter=tap-flat || rc=1
# What is left of a failure (pictures) is kept; each run has a folder of its own.
node_modules/.bin/playwright test --output "$tmp/results" || rc=1
if [ $rc != 0 ] && [ -d "$tmp/results" ]; then
    cp -r "$tmp/results" "$RIVAL_BUILD/ui-test-results.$$"
    echo "# pictures of what failed are in $RIVAL_BUILD/ui-test-results.$$"
fi
exit $rc

# runtime.sh: sourced by tests that run on Node.js and on Bun. $sdk is the TypeScript package, which must be built.
# `runtime node|bun` sets $program; where there is no Bun it ends the test.
. "$(dirname "$0")/../e2e/tap.sh"
sdk=$RIVAL_SOURCE/sdk/node
if [ ! -f "$sdk/dist/.built" ]; then
    ok "sdk/node was built" false
    done_testing
fi
export RIVAL_BIN=$rival
runtime() {
    program=$(command -v node)
    [ "$1" = bun ] || return 0
    # A package of its own: nobody who builds Rival needs it. Its program is one file, and no script is run.
    (cd "$RIVAL_SOURCE/sdk/node/tests/bun" && { [ -d node_modules ] || npm ci --silent --ignore-scripts --no-audit --no-fund; }) >"$tmp/npm" 2>&1
    program=$(echo "$RIVAL_SOURCE"/sdk/node/tests/bun/node_modules/@oven/bun-*/bin/bun)
    [ ! -x "$program" ] || return 0
    if [ "${CI:-}" = true ]; then
        ok "Bun can be had" false
    else
        echo "ok 1 - on Bun # SKIP Bun cannot be had: $(tail -n 1 "$tmp/npm")"
        tap_count=1
    fi
    done_testing
}

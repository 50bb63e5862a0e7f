# shellcheck shell=sh disable=SC2154
# npm.sh: sourced by build-ui and build-sdk: the packages of a folder, and what is built of its sources.
#
#   me=NAME what=WORDS made=FILE sources=PATHS   the script sets these; then:
#   changed           has a source changed since FILE was made?
#   without REASON    end without building; in CI (CI=true) that is a failure
#   need_node         without Node.js 20 there is nothing to do
#   packages          fetch those of the lock file, if they are not there; none of their scripts is run
#   npm_run SCRIPT    quiet when all is well
changed() { # shellcheck disable=SC2086
    [ ! -f "$made" ] || [ -n "$(find $sources -newer "$made" -print -quit)" ]
}

without() {
    if [ "${CI:-}" = true ] || [ "${CI:-}" = 1 ]; then
        echo "$me: $1" >&2
        exit 1
    fi
    echo "$me: $1; the program is built $([ -f "$made" ] && echo "with the $what of last time" || echo "without its $what")" >&2
    exit 0
}

need_node() {
    version=$(node --version 2>/dev/null || echo v0)
    major=${version#v}; major=${major%%.*}
    [ "$major" -ge 20 ] || without "the $what needs Node.js $1 or newer, and there is ${version}"
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
}

packages() {
    [ ! -f node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ] || return 0
    echo "$me: fetching the packages of $1/package-lock.json"
    export PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1
    if ! npm ci --ignore-scripts --no-audit --no-fund >"$log" 2>&1; then
        tail -n 5 "$log" >&2
        without "npm cannot get the packages"
    fi
    touch node_modules/.package-lock.json
}

npm_run() {
    npm run "$1" >"$log" 2>&1 || { cat "$log" >&2; echo "$me: the $what fails: npm run $1" >&2; exit 1; }
}

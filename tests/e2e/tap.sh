# tap.sh: sourced by the tests of this folder: where things are, and TAP from shell.
#
#   run CMD...            runs it; then $out, $err and $rc are what it printed and returned
#   is SAYS GOT EXPECTED  equal?
#   like SAYS GOT REGEX   does it match? (grep -E, line by line)
#   unlike SAYS GOT REGEX does it not?
#   ok SAYS CMD...        does it succeed?
#   start_model           a scripted model (model.py) at $port, in $tmp, which is then the working folder
#   done_testing          the plan; a script that dies before it has none, and counts as failed
#
# $tmp is a folder of this run's own. A script with more to clean up defines cleanup().
set -u
export LC_ALL=C
unset RIVAL_URL RIVAL_TOKEN # what a server on this machine has is not ours:
export RIVAL_STORE=rival.db # commands look into the store of their folder
RIVAL_SOURCE=${RIVAL_SOURCE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
RIVAL_BUILD=${RIVAL_BUILD:-$RIVAL_SOURCE/build}
rival=$RIVAL_BUILD/rival
tmp=$(mktemp -d)
cleanup() { :; }
trap 'cleanup; exec 8>&- 9<&-; rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
tap_count=0 tap_failed=0

run() {
    "$@" >"$tmp/.out" 2>"$tmp/.err" </dev/null
    rc=$? out=$(cat "$tmp/.out") err=$(cat "$tmp/.err")
}

start_model() { # ends when its standard input is closed
    cd "$tmp" || exit 1
    unset http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY
    mkfifo stdin stdout
    python3 "$RIVAL_SOURCE/tests/e2e/model.py" "$tmp" <stdin >stdout &
    exec 8>stdin 9<stdout
    read -r port <&9
}

tap_result() { # good? says details...
    local good=$1 says=$2
    shift 2
    tap_count=$((tap_count + 1))
    if [ "$good" = 0 ]; then
        echo "ok $tap_count - $says"
        return
    fi
    tap_failed=$((tap_failed + 1))
    echo "not ok $tap_count - $says"
    printf '%s\n' "$@" | sed 's/^/#   /'
}

is() {
    [ "$2" = "$3" ]
    tap_result $? "$1" "got:" "$2" "expected:" "$3"
}

like() {
    printf '%s\n' "$2" | grep -qE -- "$3"
    tap_result $? "$1" "got:" "$2" "expected to match: $3"
}

unlike() {
    ! printf '%s\n' "$2" | grep -qE -- "$3"
    tap_result $? "$1" "got:" "$2" "expected not to match: $3"
}

ok() {
    local says=$1
    shift
    "$@" >"$tmp/.ok" 2>&1
    tap_result $? "$says" "failed: $*" "$(tail -n 30 "$tmp/.ok")"
}

# Try until it succeeds, for a minute or so: for what happens soon, but not at once. Says so if it does not: a
# test that goes on all the same would only be slow.
eventually() {
    local i
    for i in $(seq 1000); do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.05
    done
    echo "# waited in vain for: $*"
    return 1
}

done_testing() {
    echo "1..$tap_count"
    exit $((tap_failed > 0))
}

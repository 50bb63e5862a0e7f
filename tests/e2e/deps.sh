#!/usr/bin/env bash
# deps.sh: scripts/deps on machines that only look like ones: every tool it calls is our own.
. "$(dirname "$0")/tap.sh"

# machine UID HAS...: a PATH with a dpkg-query that knows the packages HAS, and an apt-get that notes
# how it was called. FAIL_INSTALL=n makes its first n installs fail.
machine() {
    rm -rf "$tmp/bin"
    mkdir "$tmp/bin"
    for tool in sh env grep mktemp rm tail cat; do
        ln -s "$(command -v $tool)" "$tmp/bin/$tool"
    done
    printf '#!/bin/sh\necho %s\n' "$1" >"$tmp/bin/id"
    shift
    printf '%s\n' "$@" >"$tmp/has"
    cat >"$tmp/bin/dpkg-query" <<SH
#!/bin/sh
for name; do :; done
grep -qx "\$name" "$tmp/has" && echo "install ok installed"
SH
    : >"$tmp/calls"
    echo "${FAIL_INSTALL:-0}" >"$tmp/fail"
    cat >"$tmp/bin/apt-get" <<SH
#!/bin/sh
echo "apt-get \$*" >>"$tmp/calls"
[ "\$1" = install ] || exit 0
read left <"$tmp/fail"
[ "\$left" = 0 ] && exit 0
echo \$((left - 1)) >"$tmp/fail"
echo "E: no such luck" >&2
exit 100
SH
    chmod +x "$tmp/bin/"*
}
deps() { run env PATH="$tmp/bin" "$(command -v sh)" "$RIVAL_SOURCE/scripts/deps" "$@"; }
# What a set asks for, by its own words: nothing is there, and nobody may install.
names_of() {
    machine 1000
    deps "$@"
    printf '%s\n' "${err#*apt-get install}"
}
all=$(names_of build test lint coverage)

machine 0 $all
deps build test lint coverage
is "nothing missing: succeeds" "$rc" 0
is "and is silent" "$out$err$(cat "$tmp/calls")" ""

machine 0 ${all/libjansson-dev/}
deps build
is "something missing, as root: succeeds" "$rc" 0
like "says what it installs, and why" "$out" '^  libjansson-dev \(JSON\)$'
is "installs it, by name, and nothing else" "$(cat "$tmp/calls")" \
    "apt-get install -y --no-install-recommends libjansson-dev"

machine 1000 ${all/libjansson-dev/}
deps build
is "not root, and no sudo: fails" "$rc" 1
is "with one clear line" "$out$err" "deps: these packages are missing and this user may not install them; as root run: apt-get install libjansson-dev"
is "and tries nothing" "$(cat "$tmp/calls")" ""

printf '#!/bin/sh\necho "sudo $*" >>"%s"\nexec "$@"\n' "$tmp/calls" >"$tmp/bin/sudo"
chmod +x "$tmp/bin/sudo"
deps build
is "not root, with sudo: succeeds" "$rc" 0
like "by sudo" "$(cat "$tmp/calls")" '^sudo .*apt-get install'

FAIL_INSTALL=1 machine 0 ${all/libjansson-dev/}
deps build
is "an old package list is refreshed once" "$rc $(cut -d' ' -f2 "$tmp/calls" | xargs)" "0 install update install"

FAIL_INSTALL=9 machine 0 ${all/libjansson-dev/}
deps build
is "what cannot be installed is a failure" "$rc" 1
like "that shows apt's last words" "$err" "no such luck"
like "and what to try by hand" "$err" "try by hand: apt-get install libjansson-dev"

machine 0 $all
deps bild
is "an unknown set: exit code 2" "$rc" 2
like "and which there are" "$err" "no package set 'bild' \(build, test, lint, coverage\)"

rm "$tmp/bin/dpkg-query"
deps build
is "elsewhere than on Debian it installs nothing and lets the build try" "$rc" 0
like "but says so" "$err" "not a Debian system"

done_testing

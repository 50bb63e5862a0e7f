#!/usr/bin/env bash
# front-door.sh: whatever order the Makefile's targets come in, what is missing at first is found later. The
# machine only looks like one that lacks a package: pkg-config, ninja, node and npm are our own.
. "$(dirname "$0")/tap.sh"

real_pkg_config=$(command -v pkg-config) real_ninja=$(command -v ninja)
mkdir "$tmp/bin"
cat >"$tmp/bin/pkg-config" <<SH
#!/bin/sh
# Hides cmocka while $tmp/hidden is there.
if [ -f "$tmp/hidden" ]; then
    for word; do case \$word in cmocka) echo "no package cmocka" >&2; exit 1 ;; esac; done
fi
exec "$real_pkg_config" "\$@"
SH
# Building is not what is tested here.
cat >"$tmp/bin/ninja" <<SH
#!/bin/sh
case "\$*" in *--version*) exec "$real_ninja" --version ;; esac
exit 0
SH
chmod +x "$tmp/bin"/*
door() { run env PATH="$tmp/bin:$PATH" UI=no PKG_CONFIG="$tmp/bin/pkg-config" make -C "$RIVAL_SOURCE" BUILD="$tmp/build" "$@"; }
cmd_of() { meson introspect --tests "$1" | jq -r '.[] | select(.name == "base/alloc") | .cmd[0]'; }

touch "$tmp/hidden"
door all
is "without cmocka the program is built" "$rc" 0
like "its unit tests are listed all the same" "$(cmd_of "$tmp/build")" '/not-built\.sh$'
run "$RIVAL_SOURCE/scripts/run-tests" --release "$tmp/build" base/alloc
is "and fail" "$rc $(printf '%s\n' "$out" | tail -n 1)" "1 0 passed, 1 failed"
like "saying what was missing" "$out" "libcmocka-dev was not there"
door all
is "a second time there is nothing to do" "$rc $(printf '%s\n' "$out" | grep -c 'set')" "0 0"

rm "$tmp/hidden"
door all
is "with cmocka" "$rc" 0
like "it is set up again" "$out" "setting up .*/build/ again"
like "and the unit tests are programs" "$(cmd_of "$tmp/build")" '/test_base_alloc$'
door all
unlike "once" "$out" "setting up"
door all PREFIX="$tmp/prefix"
is "another prefix is taken up, too" "$(meson introspect --buildoptions "$tmp/build" | jq -r '.[] | select(.name == "prefix") | .value')" "$tmp/prefix"

# A sanitizer build is for tests alone: without what they need it is refused, and nothing half set up stays.
touch "$tmp/hidden"
run env PATH="$tmp/bin:$PATH" PKG_CONFIG="$tmp/bin/pkg-config" "$RIVAL_SOURCE/scripts/configure" "$tmp/asan" -Dtests=enabled
is "a build that is for tests needs cmocka" "$rc" 1
like "by name" "$out$err" "cmocka"
rm "$tmp/hidden"
run env PATH="$tmp/bin:$PATH" PKG_CONFIG="$tmp/bin/pkg-config" "$RIVAL_SOURCE/scripts/configure" "$tmp/asan" -Dtests=enabled
is "and is set up once it is there" "$rc" 0

# The web UI: in CI nothing is left out quietly, and packages come by the lock file alone.
run env CI=true UI_PACKAGES="$tmp/none" "$RIVAL_SOURCE/tests/e2e/ui.sh"
is "browser tests without their packages fail in CI" "$rc" 1
like "and say why" "$out" "^not ok 1 - .*npm ci"
run env -u CI UI_PACKAGES="$tmp/none" "$RIVAL_SOURCE/tests/e2e/ui.sh"
like "elsewhere they are skipped, and say so" "$rc $out" "^0 ok 1 - the web UI # SKIP"
mkdir -p "$tmp/tree/scripts" "$tmp/tree/ui"
cp "$RIVAL_SOURCE/scripts/build-ui" "$RIVAL_SOURCE/scripts/npm.sh" "$tmp/tree/scripts"
printf '#!/bin/sh\necho v20.19.0\n' >"$tmp/bin/node"
printf '#!/bin/sh\necho "npm $*" >>"%s/npm"\necho "npm: no network"\nexit 1\n' "$tmp" >"$tmp/bin/npm"
chmod +x "$tmp/bin/node" "$tmp/bin/npm"
run env -u CI -u UI PATH="$tmp/bin:$PATH" "$tmp/tree/scripts/build-ui"
is "packages that cannot be had: the program goes without its UI" "$rc $err" \
    "0 npm: no network
build-ui: npm cannot get the packages; the program is built without its web UI"
is "only the lock file was asked, and no script may run" "$(cat "$tmp/npm")" "npm ci --ignore-scripts --no-audit --no-fund"
run env -u UI CI=true PATH="$tmp/bin:$PATH" "$tmp/tree/scripts/build-ui"
is "in CI that is a failure" "$rc" 1

# The public JSON Schema suite is not part of the tree.
run env RIVAL_SCHEMA_SUITE="$tmp/none" "$RIVAL_BUILD/tests/test_schema_suite" "$tmp/none"
like "without the JSON Schema suite its test is skipped" "$rc $out" '^0|^ok 1 .*# SKIP'
like "and says so in the summary" "$out" '^# => SKIPPED: no JSON Schema test suite'
done_testing

#!/usr/bin/env bash
# spec.sh RUNTIME: spec.mjs in an empty folder, with the package installed from its tarball, on Node.js or on Bun.
. "$(dirname "$0")/runtime.sh"
runtime "$1"
unset RIVAL_STORE
tarball=$(npm pack --silent --ignore-scripts --pack-destination "$tmp" "$sdk" | tail -n 1)
mkdir "$tmp/shop" && cd "$tmp/shop" || exit 1
if ! npm install --silent --ignore-scripts --no-audit --no-fund --prefer-offline "$tmp/$tarball" >"$tmp/npm" 2>&1; then
    ok "the package installs in an empty folder" cat "$tmp/npm"
    done_testing
fi
cp "$RIVAL_SOURCE/tests/sdk/spec.mjs" .
"$program" spec.mjs
exit

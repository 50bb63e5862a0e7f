#!/usr/bin/env bash
# run.sh: the providers' public clients against the scripted endpoint of the tests (e2e/model.py), as TAP.
. "$(dirname "$0")/../e2e/tap.sh"
. "$RIVAL_SOURCE/tests/packages.sh"
cleanup() { exec 8>&- 7<&-; }
packages providers
cd "$tmp" || exit 1
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY
mkfifo stdin stdout
python3 "$RIVAL_SOURCE/tests/e2e/model.py" "$tmp" <stdin >stdout &
exec 8>stdin 7<stdout
read -r port <&7
cd "$at" && PORT=$port "$node" --test --test-reporter=tap clients.test.mjs

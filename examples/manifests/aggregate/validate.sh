#!/bin/sh
# validate.sh FILE: how many rows have a number where one should be.
set -eu
cat >/dev/null
awk -F, 'NR > 1 { if ($3 ~ /^[0-9]+$/ && $4 ~ /^[0-9]+$/) good++; else bad++ }
         END { printf "{\"good\": %d, \"bad\": %d}\n", good, bad }' "$1"

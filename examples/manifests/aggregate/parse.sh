#!/bin/sh
# parse.sh FILE: the good rows by customer, as a list of {customer, items, total}.
set -eu
cat >/dev/null
awk -F, 'NR > 1 && $3 ~ /^[0-9]+$/ { items[$1] += $3; total[$1] += $3 * $4 }
         END { printf "["; for (c in items) printf "%s{\"customer\": \"%s\", \"items\": %d, \"total\": %d}", n++ ? ", " : "", c, items[c], total[c]
               print "]" }' "$1"

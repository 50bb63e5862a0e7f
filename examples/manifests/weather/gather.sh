#!/bin/sh
# gather.sh FILE: the mean of its numbers. A line that is none fails it, and marks the file as damaged.
set -eu
cat >/dev/null
awk '!/^-?[0-9]+$/ { print FILENAME ":" FNR ": not a number: " $0 > "/dev/stderr"; bad = 1; exit 1 }
     { sum += $1; n++ }
     END { if (!bad) printf "{\"mean\": %d, \"readings\": %d}\n", n ? sum / n : 0, n }' "$1" || {
    touch "$1.damaged"
    exit 1
}

#!/bin/sh
# repair.sh FOLDER: leave only numbers in the files that are marked as damaged; says how many there were.
set -eu
count=0
for mark in "$1"/*.damaged; do
    [ -e "$mark" ] || continue
    file=${mark%.damaged}
    grep -E '^-?[0-9]+$' "$file" >"$file.new"
    mv "$file.new" "$file"
    rm "$mark"
    count=$((count + 1))
done
echo "$count"

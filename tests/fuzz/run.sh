#!/bin/sh
# run.sh: a short run of one fuzzer, as a test that speaks TAP.
#
#   run.sh FUZZER SEED...       each SEED is a text to start from
#
# FUZZ_SECONDS (5) sets the length. The inputs are made from the same random seed each time, so that the test says the
# same of the same code; with MINUTES (make test-long) from a new one, for a tenth of that time.
# After a crash the input is printed in base64 and the test fails.
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}"
fuzzer=$1
shift
seconds=${FUZZ_SECONDS:-5} random_seed=1
if [ -n "$MINUTES" ]; then
    seconds=$((MINUTES * 6)) random_seed=0 # 0: libFuzzer takes a new one
fi
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/corpus"
n=0
for seed in "$@"; do
    n=$((n + 1))
    printf '%s' "$seed" >"$folder/corpus/$n"
done

echo 1..1
if "$fuzzer" -seed="$random_seed" -max_total_time="$seconds" -timeout=10 -max_len=4096 -print_final_stats=1 \
    -artifact_prefix="$folder/" "$folder/corpus" >"$folder/log" 2>&1; then
    echo "ok 1 - $(basename "$fuzzer") finds nothing in $(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/log") inputs"
else
    tail -n 40 "$folder/log" | sed 's/^/# /'
    for input in "$folder"/crash-* "$folder"/timeout-* "$folder"/leak-* "$folder"/oom-*; do
        [ -f "$input" ] && echo "# input: $(base64 -w0 "$input")"
    done
    echo "not ok 1 - $(basename "$fuzzer")"
    exit 1
fi

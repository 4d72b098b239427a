#!/usr/bin/env bash
# Scale: 10,000 fio JSON files compared in under 10 s and 500 MB; a stored run of 100,000 trials reported in under 2 s.
# Prints seconds and peak memory; exit 1 when a limit is passed.
set -euo pipefail
cd "$(dirname "$0")/.."
assay=$PWD/target/release/assay
many_trials=$PWD/target/release/examples/many-trials
work=$(mktemp -d "$PWD/target/scale-XXXXXX")
trap 'rm -rf "$work"' EXIT
failed=0

# within NAME SECONDS MEGABYTES COMMAND...: runs it with its output thrown away, measures, compares with the limits.
within() {
    local name=$1 most_seconds=$2 most_megabytes=$3 peak=0 now begun ended seconds
    shift 3
    begun=$(date +%s%N)
    "$@" > "$work/out.txt" 2> "$work/errors.txt" &
    local pid=$!
    # The kernel keeps the peak; the last reading before the end is it, or lacks at most what the last 20 ms added.
    while now=$(awk '/^VmHWM/ { print $2 }' "/proc/$pid/status" 2> /dev/null) && [ -n "$now" ]; do
        peak=$now
        sleep 0.02
    done
    local code=0
    wait "$pid" || code=$?
    ended=$(date +%s%N)
    if [ "$code" -ne 0 ]; then
        cat "$work/errors.txt" >&2
        echo "$name: exit code $code" >&2
        failed=1
        return
    fi
    seconds=$(awk -v ns=$((ended - begun)) 'BEGIN { printf "%.2f", ns / 1e9 }')
    local verdict=ok
    if awk -v s="$seconds" -v most="$most_seconds" -v kb="$peak" -v mb="$most_megabytes" \
        'BEGIN { exit !(s >= most || kb / 1024 >= mb) }'; then
        verdict="TOO MUCH"
        failed=1
    fi
    printf '%-44s %6s s (limit %s)  %5d MiB (limit %s)  %s\n' \
        "$name" "$seconds" "$most_seconds" $((peak / 1024)) "$most_megabytes" "$verdict"
}

scripts/many-fio-results.sh tests/data/fio/single-4k-1.json "$work" 5000
within "compare of 10,000 fio JSON files" 10 500 "$assay" compare "$work/before" "$work/after"
grep -m 1 'faster' "$work/out.txt"
"$many_trials" "$work/many.db" 100000 > /dev/null
within "report of 100,000 stored trials, text" 2 2000 "$assay" report 1 --db "$work/many.db"
within "report of 100,000 stored trials, html" 10 2000 "$assay" report 1 --db "$work/many.db" --format html
exit $failed

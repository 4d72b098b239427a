#!/usr/bin/env bash
# `assay trace` against blkparse -d and btt on the same made-up trace of 1.5 million events, in turns. Prints the medians, their ratio and
# the memory assay took. Exit 1 when it is not 15 times as fast, or takes 200 MB. ROUNDS says how many (5).
set -euo pipefail
cd "$(dirname "$0")/.."
assay=$PWD/target/release/assay
for tool in blkparse btt; do
    command -v "$tool" > /dev/null || { echo "bench-trace: $tool is missing (package blktrace)" >&2; exit 1; }
done
work=$(mktemp -d "$PWD/target/bench-trace-XXXXXX")
trap 'rm -rf "$work"' EXIT
target/release/examples/block-trace "$work/made" 300000 2 >&2
now() { date +%s%N; }
cd "$work"
for ((round = 0; round < ${ROUNDS:-5}; round++)); do
    begin=$(now)
    blkparse -q -i made -d made.bin -O > /dev/null
    btt -i made.bin -o made.btt > /dev/null
    middle=$(now)
    # The last line of time's output is the largest resident set in KiB.
    { command time -f %M "$assay" trace made --fs xfs --json > made.json; } 2> memory.txt
    echo "$((middle - begin)) $(($(now) - middle)) $(tail -n 1 memory.txt)" >> rounds.txt
done
median() { cut -d ' ' -f "$1" rounds.txt | sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }
awk -v theirs="$(median 1)" -v ours="$(median 2)" -v memory="$(median 3)" 'BEGIN {
    printf "blkparse -d and btt %.3f s, assay trace %.3f s: %.1f times as fast, %.1f MB\n",
        theirs / 1e9, ours / 1e9, theirs / ours, memory / 1024
    exit !(theirs / ours >= 15 && memory / 1024 < 200)
}'

#!/usr/bin/env bash
# assay measures itself: runs the experiments of bench/, samples the memory of both engines, writes docs/performance.md.
# ROUNDS=4 makes it short. Exit 1 when a promise of the table is not kept.
set -euo pipefail
cd "$(dirname "$0")/.."
assay=$PWD/target/release/assay
work=$(mktemp -d "$PWD/target/bench-XXXXXX")
# What was measured stays when a later part fails, or a promise is not kept.
leave() {
    local code=$?
    if [ "$code" -ne 0 ] && mv "$work/bench.db" target/bench-failed.db 2> /dev/null; then
        echo "bench: what was measured: target/release/assay list --db target/bench-failed.db" >&2
    fi
    rm -rf "$work"
}
trap leave EXIT
[ "$(id -u)" = 0 ] || { echo "make bench needs root: it makes zram devices and a tmpfs" >&2; exit 1; }

for experiment in null psync-tmpfs psync-zram uring-warm uring-zram uring-disk libaio-read libaio-write start; do
    echo "bench: $experiment" >&2
    "$assay" run "bench/$experiment.toml" --db "$work/bench.db" ${ROUNDS:+--rounds "$ROUNDS"} > "$work/$experiment.txt" || {
        cat "$work/$experiment.txt" >&2
        exit 1
    }
done

# The agent and everything below it: for fio that is fio and its jobs, too. Shared pages count in shares (PSS).
pss_of_agents() {
    local pids=() pid list
    mapfile -t pids < <(pgrep -f "^$assay agent" || true)
    list=("${pids[@]}")
    while [ "${#pids[@]}" -gt 0 ]; do
        mapfile -t pids < <(for pid in "${pids[@]}"; do pgrep -P "$pid" || true; done)
        list+=("${pids[@]}")
    done
    printf '%s\n' "${list[@]}" | sort -u | while read -r pid; do
        [ -n "$pid" ] && awk '/^Pss:/ { print $2 * 1024 }' "/proc/$pid/smaps_rollup" 2> /dev/null || true
    done | awk '{ sum += $1 } END { print sum + 0 }'
}

for round in 1 2 3; do
    for engine in native fio; do
        echo "bench: memory, $engine, round $round" >&2
        # What others do to the machine changes the times, not the memory.
        "$assay" run bench/memory.fio -d "$work" --engine "$engine" --vary bs=4k --aa --rounds 1 --keep-disturbed \
            --db "$work/memory.db" \
            > /dev/null 2> "$work/errors.txt" &
        run=$!
        peak=0
        while kill -0 "$run" 2> /dev/null; do
            now=$(pss_of_agents)
            if [ "$now" -gt "$peak" ]; then peak=$now; fi
            sleep 0.1
        done
        wait "$run" || { cat "$work/errors.txt" >&2; exit 1; }
        echo "memory $engine $peak" >> "$work/memory.txt"
    done
done

commit=$(git describe --always --dirty 2> /dev/null || echo unknown)
target/release/examples/bench-table "$work/bench.db" "$commit" < "$work/memory.txt" > "$work/performance.md" && code=0 || code=$?
cat "$work/performance.md"
# A short run is a look, not a record.
[ -n "${ROUNDS:-}" ] || cp "$work/performance.md" docs/performance.md
exit "$code"

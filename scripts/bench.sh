#!/usr/bin/env bash
# assay measures itself: runs the experiments of bench/, samples the memory of both engines, counts their instructions, and
# writes this processor's chapter of docs/performance.md. Exit 1 when a promise is not kept.
# ROUNDS=4 makes it short; ONLY="uring-warm instructions" runs these parts alone. Neither writes the page.
set -euo pipefail
cd "$(dirname "$0")/.."
# As an agent's command line has it, also where target/ is a link.
assay=$(realpath target/release/assay)
[ "$(id -u)" = 0 ] || { echo "make bench needs root: it makes zram and loop devices, and a tmpfs" >&2; exit 1; }
work=$(mktemp -d "$PWD/target/bench-XXXXXX")
# What was measured stays when a later part fails, or a promise is not kept.
leave() {
    local code=$?
    if [ "$code" -ne 0 ] && mv "$work/bench.db" target/bench-failed.db 2> /dev/null; then
        echo "bench: the runs are kept: target/release/assay list --db target/bench-failed.db" >&2
    fi
    rm -rf "$work"
}
trap leave EXIT

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

# One line: the most memory that an engine had.
memory_of() {
    local engine=$1 run peak=0 now
    # What others do to the machine changes the times, not the memory.
    "$assay" run bench/memory.fio -d "$work" --engine "$engine" --vary bs=4k --aa --rounds 1 --keep-disturbed \
        --db "$work/memory.db" > /dev/null 2> "$work/errors.txt" &
    run=$!
    while kill -0 "$run" 2> /dev/null; do
        now=$(pss_of_agents)
        if [ "$now" -gt "$peak" ]; then peak=$now; fi
        sleep 0.1
    done
    wait "$run" || { cat "$work/errors.txt" >&2; return 1; }
    echo "memory $engine $peak" >> "$work/counted.txt"
}

experiments=(null psync-tmpfs psync-zram uring-warm libaio-warm uring-zram uring-loop uring-disk uring-cold libaio-disk libaio-read libaio-write start)
: > "$work/counted.txt"
for part in ${ONLY:-"${experiments[@]}" memory instructions}; do
    echo "bench: $part" >&2
    case $part in
        memory)
            for _ in 1 2 3; do memory_of native; memory_of fio; done
            ;;
        instructions)
            target/release/examples/bench-instructions "$assay" >> "$work/counted.txt"
            ;;
        *)
            "$assay" run "bench/$part.toml" --db "$work/bench.db" ${ROUNDS:+--rounds "$ROUNDS"} > "$work/$part.txt" || {
                cat "$work/$part.txt" >&2
                exit 1
            }
            ;;
    esac
done

commit=$(scripts/commit.sh)
# A short run, or a part, is a look and not a record.
page=()
[ -n "${ROUNDS:-}${ONLY:-}" ] || page=(docs/performance.md)
target/release/examples/bench-table "$work/bench.db" "$commit" "${page[@]}" < "$work/counted.txt"

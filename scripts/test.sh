#!/usr/bin/env bash
# All tests. Those of guests wait for one emulated machine at a time and leave half of this one idle, so they run beside
# all others, in a process of their own, and their results come behind. Kernels that are built whole are compiled on what all these
# leave of the processors, and booted last. When nothing else is left, two guests run at a time where the memory suffices.
set -uo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
# It compiles and boots nothing; the first time that takes minutes.
compiles=whole_kernel::a_patch_of_what_a_whole_kernel_leaves_out_is_refused
# Most tests wait for something.
threads=$((3 * $(nproc)))
threads=${RUST_TEST_THREADS:-$((threads < 12 ? threads : 12))}
two_guests=target/tmp/two-guests

# The examples that have tests; the others are of the benchmarks.
tested=(--lib --test it --example published --example bench-table)
$cargo test --no-run --quiet "${tested[@]}" || exit
mkdir -p target/tmp
rm -f "$two_guests"
printed=$(mktemp -d target/tmp/printed-XXXXXX)
# In groups of their own, which are ended with their programs when the rest of this script is.
set -m
nice -n 19 $cargo test --test it -- "$compiles" > "$printed/compiled" 2>&1 &
compiled=$!
RUST_TEST_THREADS=2 $cargo test --test it -- guests whole_kernel --skip "$compiles" > "$printed/guests" 2>&1 &
guests=$!
set +m
told=
leave() {
    # Also where it is ended before all is done.
    [ -n "$told" ] || cat "$printed"/*
    for group in "$compiled" "$guests"; do
        kill -- "-$group" 2> /dev/null && wait "$group"
    done
    rm -rf "$printed" "$two_guests"
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

failed=0
RUST_TEST_THREADS=$threads $cargo test --lib --example published --example bench-table || failed=1
RUST_TEST_THREADS=$threads $cargo test --test it -- --skip guests --skip whole_kernel || failed=1
alone=$SECONDS
[ -z "$(jobs -rp)" ] || echo "waiting for the tests of guests"
# A second guest would leave the compiler nothing, and all wait for it.
renice -n 0 -g "$compiled" > /dev/null 2>&1 || true
wait "$compiled" || failed=1
awk '/^MemAvailable/ { exit $2 < 4 * 2^20 }' /proc/meminfo && touch "$two_guests"
wait "$guests" || failed=1
told=yes
cat "$printed"/*
echo "compiling and testing took $SECONDS s, of which $((SECONDS - alone)) s were for guests alone"
exit $failed

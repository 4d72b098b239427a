#!/usr/bin/env bash
# All tests. Those of guests wait for one emulated machine at a time and leave half of this one idle, so they run beside
# all others, in a process of their own, and their results come behind. Kernels that are built whole come last, and are
# compiled on what those of guests leave of the processors.
set -uo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
# It compiles and boots nothing; the first time that takes minutes.
compiles=whole_kernel::a_patch_of_what_a_whole_kernel_leaves_out_is_refused
# Most tests wait for something.
threads=${RUST_TEST_THREADS:-$((3 * $(nproc)))}

$cargo test --no-run --quiet || exit
mkdir -p target/tmp
printed=$(mktemp target/tmp/guests-XXXXXX)
# In a group of its own, which is ended with its programs when the rest of this script is.
set -m
RUST_TEST_THREADS=2 $cargo test --test it -- guests > "$printed" 2>&1 &
guests=$!
set +m
leave() {
    kill -- "-$guests" 2> /dev/null && wait "$guests"
    rm -f "$printed"
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

failed=0
RUST_TEST_THREADS=$threads $cargo test --lib --bins --example published --example bench-table || failed=1
RUST_TEST_THREADS=$threads $cargo test --test it -- --skip guests --skip whole_kernel || failed=1
nice -n 19 $cargo test --test it -- "$compiles" || failed=1
[ -z "$(jobs -rp)" ] || echo "waiting for the tests of guests"
wait "$guests" || failed=1
cat "$printed"
$cargo test --test it -- whole_kernel --skip "$compiles" || failed=1
echo "compiling and testing took $SECONDS s"
exit $failed

#!/usr/bin/env bash
# Rooms: a dummy engine, filesystem, launcher, observer and section, each a patch of at most two files (tests/rooms), are built into a copy of
# this tree and used. Prints what each was seen to do; exit 1 when one of them is not there.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
tree=$root/target/rooms/tree
rm -rf "$tree"
mkdir -p "$tree"
tar --exclude=./target --exclude=./.git --exclude=./fuzz/target -cf - . | tar -xf - -C "$tree"
for patch in tests/rooms/*.patch; do
    GIT_CEILING_DIRECTORIES=$root/target/rooms git -C "$tree" apply "$root/$patch"
done
export CARGO_TARGET_DIR=${ROOMS_TARGET:-$root/target/rooms}
# The dependencies that the tree's own build has compiled, as links: cargo takes them, and of the program it knows that it is another one.
if [ -d "$root/target/debug/deps" ] && [ ! -e "$CARGO_TARGET_DIR/debug" ]; then
    mkdir -p "$CARGO_TARGET_DIR/debug"
    cp -al "$root"/target/debug/{deps,build} "$CARGO_TARGET_DIR/debug"
    cp -a "$root/target/debug/.fingerprint" "$CARGO_TARGET_DIR/debug"
fi
${CARGO:-cargo} build --quiet --manifest-path "$tree/Cargo.toml"
assay=$CARGO_TARGET_DIR/debug/assay
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failed=0

# shows WHAT CODE WORDS COMMAND...: whether the command ends with this exit code and prints the words.
shows() {
    local what=$1 code=$2 words=$3 said ended=0
    shift 3
    said=$("$@" 2>&1) || ended=$?
    if [ "$ended" = "$code" ] && grep -qF -- "$words" <<< "$(tr -s ' \n' ' ' <<< "$said")"; then
        echo "$what: ok"
    else
        printf '%s: exit code %s, or no "%s" in\n%s\n' "$what" "$ended" "$words" "$said" >&2
        failed=1
    fi
}

run() { "$assay" run --db "$work/rooms.db" --rounds 2 --settle 0 --keep-disturbed "$@"; }

shows 'engine: named by the help' 0 ', dummy' "$assay" run --help
shows 'engine: its settings are varied' 0 'moved' run --engine dummy --vary bytes=1k,2k
shows 'engine: a wrong value is refused' 2 "bytes=all" run --engine dummy --vary bytes=1k,all
shows 'engine: a setting it lacks is refused' 2 "byte" run --engine dummy --vary byte=1k,2k
printf '[job]\nrw=write\nsize=1m\n' > job.fio
shows 'filesystem: named where another is not' 2 'dummyfs' run job.fio --aa -t fs=nosuch -t device=loop:64m
# The kernel comes before size and mkfs.
shows 'filesystem: what this machine lacks is named' 2 'has neither dummyfs built in nor a module of it' \
    run job.fio --aa -t fs=dummyfs -t device=loop:64m
: > vmlinuz
shows 'launcher: runs the trials that ask for it' 0 'moved' run job.fio --aa -t kernel=vmlinuz
shows 'observer: reports beside the engine' 0 'dummy.seen' \
    run --engine dummy --vary bytes=1k,2k --observe dummy --primary dummy.seen
for format in text lkml mmtests markdown html json csv; do
    shows "section: told in $format" 0 dummysection "$assay" report 1 --db "$work/rooms.db" --format "$format"
done
exit "$failed"

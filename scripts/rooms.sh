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
${CARGO:-cargo} build --quiet --manifest-path "$tree/Cargo.toml"
assay=$CARGO_TARGET_DIR/debug/assay
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failed=0

# shows WHAT WORDS COMMAND...: whether the command prints the words, whatever its exit code.
shows() {
    local what=$1 words=$2 said
    shift 2
    said=$("$@" 2>&1) || true
    if grep -qF -- "$words" <<< "$said"; then
        echo "$what: ok"
    else
        printf '%s: no "%s" in\n%s\n' "$what" "$words" "$said" >&2
        failed=1
    fi
}

run() { "$assay" run --db "$work/rooms.db" --rounds 2 --settle 0 "$@"; }

shows 'engine: named by the help' 'dummy' "$assay" run --help
shows 'engine: its settings are varied' 'moved' run --engine dummy --vary bytes=1k,2k
shows 'engine: a wrong value is refused' "is not a size" run --engine dummy --vary bytes=1k,all
shows 'engine: a setting it lacks is refused' 'bytes' run --engine dummy --vary byte=1k,2k
printf '[job]\nrw=write\nsize=1m\n' > job.fio
shows 'filesystem: named where another is not' 'dummyfs' run job.fio --aa -t fs=nosuch -t device=loop:64m
shows 'filesystem: too small a device is refused' 'DummyFS needs 32 MiB at least' \
    run job.fio --aa -t fs=dummyfs -t device=loop:16m
shows 'filesystem: what this machine lacks is named' 'dummyfs' run job.fio --aa -t fs=dummyfs -t device=loop:64m
: > vmlinuz
shows 'launcher: runs the trials that ask for it' 'moved' run job.fio --aa -t kernel=vmlinuz
shows 'observer: reports beside the engine' 'dummy.seen' \
    run --engine dummy --vary bytes=1k,2k --observe dummy --primary dummy.seen
for format in text lkml mmtests markdown html json csv; do
    shows "section: told in $format" dummysection "$assay" report 1 --db "$work/rooms.db" --format "$format"
done
exit "$failed"

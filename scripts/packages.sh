#!/usr/bin/env bash
# Makes sure that tools are there, e.g. packages.sh compiler fio xfsprogs
# Installs Debian/Ubuntu packages when root or sudo allows; otherwise prints the one line to run.
set -euo pipefail
# Where Debian keeps mkfs, which ordinary users do not have on their PATH.
PATH=$PATH:/usr/sbin:/sbin

# The programs and files by which they are known.
declare -A known_by=([compiler]=cc [fio]=fio [chromium]=chromium [e2fsprogs]=mkfs.ext4 [xfsprogs]=mkfs.xfs [btrfs-progs]=mkfs.btrfs [procps]=pgrep
    [dbench]=dbench [fsmark]=fs_mark [qemu]="qemu-system-x86_64 xz" [f2fs-tools]=mkfs.f2fs [valgrind]=valgrind [zstd]=zstd [blktrace]=btt [graphviz]=dot
    [kernel-build]="ccache gcc-12 make patch xz flex bison bc /usr/include/gelf.h /usr/include/openssl/ssl.h")
declare -A package=([compiler]="gcc libc6-dev" [fio]=fio [chromium]="chromium fonts-dejavu-core" [e2fsprogs]=e2fsprogs [xfsprogs]=xfsprogs [btrfs-progs]=btrfs-progs [procps]=procps
    [dbench]=dbench [fsmark]=fsmark [qemu]="qemu-system-x86 xz-utils" [f2fs-tools]=f2fs-tools [valgrind]=valgrind [zstd]=zstd [blktrace]=blktrace [graphviz]=graphviz
    [kernel-build]="ccache gcc-12 make patch xz-utils flex bison bc libelf-dev libssl-dev")
missing=()
for tool in "$@"; do
    for name in ${known_by[$tool]}; do
        [ -e "$name" ] && [[ $name = /* ]] && continue
        command -v "$name" >/dev/null 2>&1 && continue
        missing+=("${package[$tool]}")
        break
    done
done
[ ${#missing[@]} -eq 0 ] && exit 0

install=(apt-get install -y -q --no-install-recommends)
line="sudo apt-get update && sudo ${install[*]} ${missing[*]}"
if ! command -v apt-get >/dev/null 2>&1; then
    echo "missing: ${missing[*]}; install them with this system's package manager" >&2
    exit 1
fi
if [ "$(id -u)" -eq 0 ]; then
    as_root=()
elif sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
else
    echo "missing: ${missing[*]}; run this once:" >&2
    echo "  $line" >&2
    exit 1
fi
echo "installing ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # one entry may be several packages
if ! { "${as_root[@]}" apt-get update -q && "${as_root[@]}" "${install[@]}" ${missing[*]}; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "could not install ${missing[*]}; try: $line" >&2
    exit 1
fi

#!/usr/bin/env bash
# Makes sure that tools are there, e.g. packages.sh compiler fio xfsprogs
# Installs Debian/Ubuntu packages when root or sudo allows; otherwise prints the one line to run. With OPTIONAL=1, and without CI, what cannot
# be had is only said: tests that need it say that they are skipped.
set -euo pipefail
# What programs say is read.
export LC_ALL=C
# Where Debian keeps mkfs, which ordinary users do not have on their PATH.
PATH=$PATH:/usr/sbin:/sbin

# The programs and files by which they are known.
declare -A known_by=([compiler]=cc [fio]=fio [chromium]="chromium|chromium-browser|google-chrome" [time]=/usr/bin/time [e2fsprogs]=mkfs.ext4 [xfsprogs]=mkfs.xfs [btrfs-progs]=mkfs.btrfs [procps]=pgrep
    [dbench]=dbench [fsmark]=fs_mark [qemu]="qemu-system-x86_64 xz" [f2fs-tools]=mkfs.f2fs [valgrind]=valgrind [zstd]=zstd [blktrace]=btt [graphviz]=dot
    [kernel-build]="ccache gcc-12 make patch xz flex bison bc /usr/include/gelf.h /usr/include/openssl/ssl.h")
declare -A package=([compiler]="gcc libc6-dev" [fio]=fio [chromium]="chromium fonts-dejavu-core" [time]=time [e2fsprogs]=e2fsprogs [xfsprogs]=xfsprogs [btrfs-progs]=btrfs-progs [procps]=procps
    [dbench]=dbench [fsmark]=fsmark [qemu]="qemu-system-x86 xz-utils" [f2fs-tools]=f2fs-tools [valgrind]=valgrind [zstd]=zstd [blktrace]=blktrace [graphviz]=graphviz
    [kernel-build]="ccache gcc-12 make patch xz-utils flex bison bc libelf-dev libssl-dev")
missing=()
for tool in "$@"; do
    for name in ${known_by[$tool]}; do
        for one in ${name//|/ }; do
            [[ $one = /* ]] && [ -e "$one" ] && continue 2
            command -v "$one" >/dev/null 2>&1 && continue 2
        done
        missing+=("${package[$tool]}")
        break
    done
done
[ ${#missing[@]} -eq 0 ] && exit 0

install=(apt-get install -y -q --no-install-recommends)
line="sudo apt-get update && sudo ${install[*]} ${missing[*]}"
optional=${OPTIONAL:-}
[ -z "${CI:-}" ] || optional=
if ! command -v apt-get >/dev/null 2>&1; then
    echo "missing: ${missing[*]}; install them with this system's package manager" >&2
    [ -n "$optional" ] && exit 0
    exit 1
fi
if [ "$(id -u)" -eq 0 ]; then
    as_root=()
elif sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
else
    echo "missing: ${missing[*]}; run this once:" >&2
    echo "  $line" >&2
    [ -n "$optional" ] && exit 0
    exit 1
fi
echo "installing ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
# Of lists that some could not be fetched is no failure to apt-get, unless it is told so.
any=(-o APT::Update::Error-Mode=any)
# shellcheck disable=SC2086 # one entry may be several packages
fetched() { "${as_root[@]}" apt-get update -q "$@" && "${as_root[@]}" "${install[@]}" ${missing[*]}; } >"$log" 2>&1
# A mirror that does not answer, or changes meanwhile, mostly does a little later; a package that is not to be had never is.
for pause in 0 15; do
    sleep $pause
    fetched "${any[@]}" && exit 0
    grep -q 'Unable to locate' "$log" && break
done
fetched && exit 0
if [ -z "$optional" ]; then
    tail -n 20 "$log" >&2
    echo "could not install ${missing[*]}; try: $line" >&2
    exit 1
fi
# One that this system does not have keeps none of the others away.
for one in "${missing[@]}"; do
    # shellcheck disable=SC2086
    "${as_root[@]}" "${install[@]}" $one >"$log" 2>&1 || echo "not to be had here: $one; tests that need it are skipped" >&2
done

#!/usr/bin/env bash
# Fetches what kernels are built from into target/kernels: Debian's linux-source-6.12, and the headers of the 6.12 kernel that
# scripts/kernels.sh has put there. Nothing is installed.
set -euo pipefail
# What programs say is read.
export LC_ALL=C
cd "$(dirname "$0")/.."
# Of what it could not fetch the 6.1 is not needed here.
scripts/kernels.sh > /dev/null || true
cd target/kernels
# They share the directory of what is not whole yet.
exec 9> .fetching
flock -n 9 || { echo "another make fetches kernels: waiting for it" >&2; flock 9; }
log=$(mktemp)
trap 'rm -f "$log"; rm -rf partial-source' EXIT
image=$(compgen -G "linux-image-6.12*.deb" | sort -V | tail -n 1) || { echo "no linux-image-6.12*.deb in target/kernels" >&2; exit 1; }
name=${image%%_*}
release=${name#linux-image-}
version=${image#*_}
version=${version%_*.deb}
for package in linux-source-6.12 "linux-headers-$release" "linux-headers-${release%-*}-common" "linux-kbuild-${release%-*}"; do
    if ! compgen -G "${package}_*.deb" > /dev/null; then
        command -v apt-get > /dev/null || { echo "no apt-get here: put $package into target/kernels" >&2; exit 1; }
        rm -rf partial-source
        mkdir partial-source
        echo "fetching $package" >&2
        # Of the kernel's own version: headers and source of another one do not fit it. What does not answer mostly does a little later.
        for pause in 0 10 30; do
            sleep $pause
            (cd partial-source && apt-get download -q -o APT::Sandbox::User=root "$package=$version") > "$log" 2>&1 && break
        done
        mv partial-source/*.deb . || {
            tail -n 5 "$log" >&2
            echo "could not fetch $package of $version; put it into target/kernels" >&2
            exit 1
        }
    fi
    for file in "${package}"_*.deb; do echo "target/kernels/$file  $(($(stat -c %s "$file") >> 20)) MiB"; done
done

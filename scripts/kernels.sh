#!/usr/bin/env bash
# Fetches Debian's 6.1 and 6.12 kernels as packages into target/kernels; nothing is installed, no root is needed.
# On Debian 12 both are in its own archives (linux-image-amd64, and linux-image-6.12-amd64 in its security archive);
# elsewhere put any two linux-image .deb files there.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p target/kernels
cd target/kernels

# The package that a meta package depends on now.
current() {
    apt-cache depends "$1" 2>/dev/null | sed -n 's/^ *Depends: *\(linux-image-[0-9].*\)$/\1/p' | head -n 1
}

fetch() { # fetch SERIES META…
    local series=$1 meta package
    shift
    compgen -G "linux-image-$series[.-]*.deb" >/dev/null && return 0
    for meta in "$@"; do
        package=$(current "$meta")
        case $package in
            "linux-image-$series".*) ;;
            *) continue ;;
        esac
        echo "fetching $package" >&2
        # apt's own download user cannot write here; it says so and goes on.
        apt-get download -q "$package" >/dev/null && return 0
    done
    echo "no linux-image of $series in apt's sources; put a linux-image-$series*.deb into target/kernels (apt-get update may help)" >&2
    return 1
}

command -v apt-get >/dev/null 2>&1 || { echo "no apt-get here: put two linux-image .deb files into target/kernels" >&2; exit 1; }
fetch 6.1 linux-image-amd64 linux-image-6.1-amd64
fetch 6.12 linux-image-6.12-amd64 linux-image-amd64

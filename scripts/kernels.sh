#!/usr/bin/env bash
# Fetches Debian's 6.1 and 6.12 kernels as packages into target/kernels and prints what is there; nothing is installed.
# On Debian 12 both are in its own archives (linux-image-amd64, and linux-image-6.12-amd64 in its security archive);
# elsewhere put any two linux-image .deb files there. Root or sudo is needed only where apt's lists are missing or old.
set -euo pipefail
# What programs say is read.
export LC_ALL=C
cd "$(dirname "$0")/.."
mkdir -p target/kernels
cd target/kernels
# They share the directory of what is not whole yet.
exec 9> .fetching
flock -n 9 || { echo "another make fetches kernels: waiting for it" >&2; flock 9; }
log=$(mktemp)
trap 'rm -f "$log"; rm -rf partial' EXIT

# Once: lists that are missing know no package, old ones name packages that are gone.
updated=
update() {
    [ -z "$updated" ] || return 1
    updated=yes
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        sudo -n true 2>/dev/null || { echo "apt's lists are missing or old; run: sudo apt-get update" >&2; return 1; }
        as_root=(sudo -n)
    fi
    echo "updating apt's lists" >&2
    # A mirror that does not answer mostly does a little later.
    local pause
    for pause in 0 15; do
        sleep $pause
        "${as_root[@]}" apt-get update -q -o APT::Update::Error-Mode=any >"$log" 2>&1 && return 0
    done
    "${as_root[@]}" apt-get update -q >"$log" 2>&1 || { tail -n 5 "$log" >&2; return 1; }
}

# The package of this series that one of these meta packages depends on now.
current() { # current SERIES META…
    local series=$1 meta package
    shift
    for meta in "$@"; do
        package=$(apt-cache depends "$meta" 2>/dev/null |
            sed -n 's/^ *Depends: *\(linux-image-[0-9].*\)$/\1/p' | head -n 1)
        case $package in
            "linux-image-$series".*) echo "$package"; return 0 ;;
        esac
    done
    return 1
}

# Into a directory of its own first: what was broken off is never taken for a package. apt's own download user may not write
# here, of which it would warn.
download() { # download PACKAGE
    rm -rf partial
    mkdir partial
    echo "fetching $1" >&2
    local pause
    for pause in 0 10 30; do
        sleep "$pause"
        (cd partial && apt-get download -q -o APT::Sandbox::User=root "$1") >"$log" 2>&1 && mv partial/*.deb . && return 0
    done
    return 1
}

fetch() { # fetch SERIES META…
    local series=$1 package
    compgen -G "linux-image-$series[.-]*.deb" >/dev/null && return 0
    package=$(current "$@") || { update && package=$(current "$@"); } || {
        echo "no linux-image of $series in apt's sources; put a linux-image-$series*.deb into target/kernels" >&2
        return 1
    }
    download "$package" && return 0
    # The newest may be another one after the update.
    update && package=$(current "$@") && download "$package" && return 0
    tail -n 5 "$log" >&2
    echo "could not fetch $package; put it into target/kernels" >&2
    return 1
}

missing=0
if command -v apt-get >/dev/null 2>&1; then
    fetch 6.1 linux-image-amd64 linux-image-6.1-amd64 || missing=1
    fetch 6.12 linux-image-6.12-amd64 linux-image-amd64 || missing=1
else
    for series in 6.1 6.12; do
        compgen -G "linux-image-$series[.-]*.deb" >/dev/null && continue
        echo "no apt-get here: put a linux-image-$series*.deb into target/kernels" >&2
        missing=1
    done
fi
for package in linux-image-*.deb; do
    [ -e "$package" ] && echo "target/kernels/$package  $(($(stat -c %s "$package") >> 20)) MiB"
done
exit $missing

#!/usr/bin/env bash
# Builds the program for Windows: scripts/windows.sh FOLDER writes smbscope.exe and smbscope-VERSION-windows-x64.zip
#
# The rustup target x86_64-pc-windows-gnu is used if it is installed. Otherwise, Debian's rustc-web compiles the
# standard library from rust-web-src first. MinGW compiles the decompressors written in C, and links.
set -euo pipefail

folder=$(realpath -m "$1")
cd "$(dirname "$0")/.."
triple=x86_64-pc-windows-gnu

missing() {
    echo "windows: $1" >&2
    echo "windows: install either the rustup target ('rustup target add $triple') and MinGW, or on Debian:" >&2
    echo "windows:   apt-get install --no-install-recommends rustc-web rust-web-src gcc-mingw-w64-x86-64" >&2
    exit 1
}

command -v x86_64-w64-mingw32-gcc >/dev/null || missing 'no x86_64-w64-mingw32-gcc'
# shellcheck source=scripts/std.sh
. scripts/std.sh
build_for $triple || missing "no standard library for $triple, and no source of it"
# Other compiler, other flags: a folder of its own keeps the other builds.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/windows
"${build[@]}" --release -p smbscope-cli --bin smbscope
program=$(realpath "$CARGO_TARGET_DIR/$triple/release/smbscope.exe")

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
content=$scratch/smbscope-$version
mkdir "$content"
install -m 755 "$program" "$content/smbscope.exe"
install -m 644 LICENSE-* "$content"
sed 's/$/\r/' packaging/windows/README.txt >"$content/README.txt"
scripts/notices.py smbscope-cli $triple "$scratch/notices.gz"
gzip -dc "$scratch/notices.gz" >"$content/third-party-licences.txt"
mkdir -p "$folder"
install -m 755 "$program" "$folder/smbscope.exe"
rm -f "$folder"/smbscope-*-windows-x64.zip
(cd "$scratch" && python3 -m zipfile -c "$folder/smbscope-$version-windows-x64.zip" "smbscope-$version")
ls -l "$folder"

#!/usr/bin/env bash
# Builds the page into which captures are dropped: scripts/page.sh PAGE.html
#
# The analysis is compiled to WebAssembly with the rustup target wasm32-unknown-unknown if it is installed. Otherwise,
# Debian's rustc-web compiles the standard library from rust-web-src first.
set -euo pipefail

page=$(realpath -m "$1")
cd "$(dirname "$0")/.."
triple=wasm32-unknown-unknown

# Prints the first of the commands that exists.
first_of() {
    local command
    for command in "$@"; do
        if command -v "$command" >/dev/null; then
            echo "$command"
            return 0
        fi
    done
    return 1
}

# Prints the newest version of a tool of LLVM, such as clang-14.
versioned() {
    local tools
    mapfile -t tools < <(compgen -c "$1-" | grep -E "^$1-[0-9]+$" | sort -rV)
    first_of "$1" "${tools[@]}"
}

missing() {
    echo "page: $1" >&2
    echo "page: install either the rustup target ('rustup target add $triple') and clang, or on Debian:" >&2
    echo "page:   apt-get install --no-install-recommends rustc-web rust-web-src clang lld llvm" >&2
    exit 1
}

compiler=$(versioned clang) || missing 'no clang, which compiles the decompressors written in C'
archiver=$(versioned llvm-ar) || missing 'no llvm-ar'
export CC_wasm32_unknown_unknown=$compiler AR_wasm32_unknown_unknown=$archiver
export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS='--cfg getrandom_backend="custom" -Ctarget-feature=+simd128'

# shellcheck source=scripts/std.sh
. scripts/std.sh
build_for $triple || missing "no standard library for $triple, and no source of it"
if $build_std; then
    linker=$(versioned wasm-ld) || missing 'no wasm-ld'
    export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$linker
fi
# Other compiler, other flags: a folder of its own keeps the other builds.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/page
"${build[@]}" --release -p smbscope-page --lib
# wasm-opt -O3 was measured: no faster, 2% smaller.
module=$(realpath "$CARGO_TARGET_DIR/$triple/release/smbscope_page.wasm")
notices=$CARGO_TARGET_DIR/notices.gz
scripts/notices.py smbscope-page $triple "$notices"
notices=$(realpath "$notices")
cd web && node scripts/page.mjs "$module" "$notices" "$page"

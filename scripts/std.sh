# Sourced by the scripts that build for another system. Sets `build`, the start of a cargo command.
#
# build_for TRIPLE: uses the standard library of the rustup target if it is installed. Otherwise Debian's rustc-web
# compiles it from rust-web-src. Fails if neither is there. `build_std` is then true.
build_for() {
    local triple=$1 debian=/usr/bin/rustc
    build=(cargo build --locked --target "$triple")
    build_std=false
    if [ -e "$(rustc --print sysroot)/lib/rustlib/$triple" ]; then return 0; fi
    [ -x $debian ] && [ -e "$($debian --print sysroot)/lib/rustlib/src/rust/library/std/Cargo.toml" ] || return 1
    export RUSTC=$debian RUSTC_BOOTSTRAP=1
    build+=(-Zbuild-std=std,panic_abort)
    build_std=true
}

#!/usr/bin/env bash
# Installs missing tools for building and testing smbscope. Safe to repeat; does nothing if everything is installed.
#
#   scripts/setup.sh                  tools for `make demo` and `make test`
#   scripts/setup.sh --only PART ...  only these parts: build (C compiler, checks Rust), python, web, servers, packages,
#                                     page (to compile to WebAssembly, and Firefox), or kerberos (a KDC for tests)
#   scripts/setup.sh --with-tshark    also tshark, for the comparisons of `make accuracy` and `make bench`
#
# Installs system packages with apt-get, but only as root or with password-less sudo; otherwise prints the commands to
# run. Python tools go into .venv with the versions of scripts/requirements-dev.txt, tools for the HTML report into
# web/node_modules with the versions of web/package-lock.json.
set -euo pipefail

say() { echo "setup: $*"; }

# `make test` runs targets side by side, and two of them may need the same tools.
itself=$(readlink -f "${BASH_SOURCE[0]}")
lock() { exec 9<"$itself" && flock 9; }
unlock() { flock --unlock 9 && exec 9<&-; }

# Packages that could not be installed.
wanting=()

install_packages() {
    local sudo=()
    if [ "$(id -u)" != 0 ]; then
        if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
            sudo=(sudo -n)
        else
            wanting+=("$@")
            return 0
        fi
    fi
    if ! command -v apt-get >/dev/null; then
        wanting+=("$@")
        return 0
    fi
    lock
    say "installing $*"
    "${sudo[@]}" apt-get update -qq </dev/null
    # RUNLEVEL=1 keeps packages from starting their services without systemd, as in a container (invoke-rc.d(8)).
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "$@" </dev/null >/dev/null ||
        wanting+=("$@")
    unlock
}

# Installs the packages for private servers, `make test-answers` and the load generator's tests: a Samba server and its
# clients, packet capture, network emulation, a virus scanner with Samba's module for it, dbench's load file, and
# Prometheus, which scrapes the metrics, with node_exporter, curl and OpenSSL for certificates.
install_laboratory() {
    local packages=() services=() path=$PATH:/usr/sbin:/sbin
    PATH=$path command -v smbd >/dev/null || { packages+=(samba); services+=(smbd nmbd); }
    # Debian puts Samba's modules into an architecture-specific folder.
    compgen -G '/usr/lib/*/samba/vfs/virusfilter.so' >/dev/null || packages+=(samba-vfs-modules)
    PATH=$path command -v clamd >/dev/null || { packages+=(clamav-daemon); services+=(clamav-daemon clamav-freshclam); }
    PATH=$path command -v smbclient >/dev/null || packages+=(smbclient)
    PATH=$path command -v smbtorture >/dev/null || packages+=(samba-testsuite)
    PATH=$path command -v tcpdump >/dev/null || packages+=(tcpdump)
    PATH=$path command -v tc >/dev/null || packages+=(iproute2)
    PATH=$path command -v ethtool >/dev/null || packages+=(ethtool)
    # For `smbscope launch`: tools that mount a share, and a virtual display.
    PATH=$path command -v rclone >/dev/null || packages+=(rclone)
    PATH=$path command -v fusermount >/dev/null || packages+=(fuse3)
    PATH=$path command -v smbnetfs >/dev/null || packages+=(smbnetfs)
    PATH=$path command -v Xvfb >/dev/null || packages+=(xvfb)
    PATH=$path command -v xmessage >/dev/null || packages+=(x11-utils)
    command -v curl >/dev/null || packages+=(curl)
    command -v openssl >/dev/null || packages+=(openssl)
    command -v prometheus >/dev/null || { packages+=(prometheus); services+=(prometheus); }
    command -v prometheus-node-exporter >/dev/null ||
        { packages+=(prometheus-node-exporter); services+=(prometheus-node-exporter); }
    [ -e /usr/share/dbench/client.txt ] || packages+=(dbench)
    if [ ${#packages[@]} -eq 0 ]; then return 0; fi
    install_packages "${packages[@]}"
    # The packages start a public file server and a scanner that downloads updates. Tests start private ones instead.
    if [ ${#services[@]} -gt 0 ] && command -v systemctl >/dev/null; then
        local sudo=()
        [ "$(id -u)" = 0 ] || sudo=(sudo -n)
        "${sudo[@]}" systemctl disable --quiet --now "${services[@]}" 2>/dev/null || true
    fi
}

if [ "${1:-}" = --source-only ]; then return 0; fi

cd "$(dirname "$0")/.."
parts=(build python web servers packages)
if [ "${1:-}" = --only ]; then
    shift
    parts=("$@")
    set --
fi
# Returns success if a part was requested.
wants() { [[ " ${parts[*]} " = *" $1 "* ]]; }

packages=()
command -v cc >/dev/null || packages+=(gcc libc6-dev)
python=$(command -v python3 || true)
if wants python; then
    command -v zstd >/dev/null || packages+=(zstd)
    if [ -z "$python" ]; then
        packages+=(python3 python3-venv)
    elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        packages+=(python3-venv)
    fi
fi
node_suits() {
    command -v npm >/dev/null && node -e 'const [a, b] = process.versions.node.split(".").map(Number);
        process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null
}
if wants web; then node_suits || packages+=(nodejs npm); fi
# The same names as in web/scripts/chromium.mjs.
chromium=${SMBSCOPE_CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
# Chromium draws no text without fonts, and recommended packages are not installed.
if wants web && [ -z "$chromium" ]; then packages+=(chromium fonts-liberation); fi
# Some tests use kill(1).
if wants servers && [ ! -x /bin/kill ]; then packages+=(procps); fi
if wants page; then [ -n "$python" ] || packages+=(python3); fi
# For building the .deb and .rpm packages and the container image, and for testing them in a minimal Debian.
if wants packages; then
    [ -n "$python" ] || packages+=(python3)
    command -v dpkg-shlibdeps >/dev/null || packages+=(dpkg-dev)
    command -v rpmbuild >/dev/null || packages+=(rpm)
    PATH=$PATH:/usr/sbin command -v debootstrap >/dev/null || packages+=(debootstrap)
    command -v buildah >/dev/null || packages+=(buildah)
fi
if [ "${1:-}" = --with-tshark ] && ! command -v tshark >/dev/null; then packages+=(tshark); fi
if wants kerberos; then
    PATH=$PATH:/usr/sbin command -v krb5kdc >/dev/null || packages+=(krb5-kdc)
    PATH=$PATH:/usr/sbin command -v kadmin.local >/dev/null || packages+=(krb5-admin-server)
    command -v kinit >/dev/null || packages+=(krb5-user)
fi
if [ ${#packages[@]} -gt 0 ]; then install_packages "${packages[@]}"; fi
if wants servers; then install_laboratory; fi

# Installs the compilers for `make page`, and Firefox for its tests. The rustup target spares Debian's half a gigabyte and
# the compilation of the standard library. Each package by itself, as Ubuntu lacks some.
install_page_tools() {
    local std=lib/rustlib/wasm32-unknown-unknown source=lib/rustlib/src/rust/library/std/Cargo.toml
    has_std() { command -v rustc >/dev/null && [ -e "$(rustc --print sysroot)/$std" ]; }
    has_source() { [ -e "$(/usr/bin/rustc --print sysroot 2>/dev/null)/$source" ]; }
    if ! has_std && ! has_source && command -v rustup >/dev/null; then
        rustup target add wasm32-unknown-unknown </dev/null || true
    fi
    if ! has_std && ! has_source; then
        # rustc-web would replace Debian's own rustc and rustup.
        if dpkg-query -W -f '${db:Status-Abbrev}' rustc rustup 2>/dev/null | grep -q '^ii'; then
            problems+=("WebAssembly can't be compiled: rustup target add wasm32-unknown-unknown")
        else
            install_packages rustc-web rust-web-src
        fi
    fi
    # The same names as in scripts/page.sh.
    has_tool() { compgen -c "$1" | grep -xE "$1(-[0-9]+)?" >/dev/null; }
    has_std || has_tool wasm-ld || install_packages lld
    has_tool clang || install_packages clang
    has_tool llvm-ar || install_packages llvm
    command -v firefox-esr >/dev/null || command -v firefox >/dev/null || install_packages firefox-esr
}

problems=()
if wants page; then install_page_tools; fi
if [ ${#wanting[@]} -gt 0 ]; then
    problems+=("these packages are missing: sudo apt-get install ${wanting[*]}")
fi

if ! command -v cargo >/dev/null; then
    problems+=("Rust is missing: see https://rustup.rs (any stable version from the rust-version in Cargo.toml on)")
elif ! cargo fmt --version >/dev/null 2>&1 || ! cargo clippy --version >/dev/null 2>&1; then
    if command -v rustup >/dev/null; then
        say "adding rustfmt and clippy"
        rustup component add rustfmt clippy </dev/null || problems+=("rustfmt and clippy are missing: rustup component add rustfmt clippy")
    else
        problems+=("rustfmt and clippy are missing: install them the way Rust was installed")
    fi
fi

install_python_tools() {
    say "making .venv with the tools of scripts/requirements-dev.txt"
    rm -rf .venv
    "$python" -m venv .venv &&
        .venv/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r scripts/requirements-dev.txt ||
        { problems+=("the Python tools could not be installed into .venv (see above)") && return 1; }
}
install_web_tools() {
    say "installing the packages of web/package-lock.json"
    (cd web && npm ci --no-audit --no-fund --loglevel=error </dev/null >/dev/null) ||
        { problems+=("the packages of the HTML report could not be installed into web/node_modules (see above)") && return 1; }
}
# Runs the installer of a directory unless its stamp is the wanted one.
update() {
    local directory=$1 wanted=$2 installer=$3
    is_current() { [ "$(cat "$directory/smbscope-stamp" 2>/dev/null)" = "$wanted" ]; }
    if is_current; then return 0; fi
    lock
    if ! is_current && "$installer"; then echo "$wanted" >"$directory/smbscope-stamp"; fi
    unlock
}

python=$(command -v python3 || true)
if ! wants python; then
    :
elif [ -z "$python" ] || ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    problems+=("Python 3.11 or later is needed for the scripts and their checks")
else
    update .venv "$(cat scripts/requirements-dev.txt <("$python" --version) | sha256sum | cut -c1-16)" install_python_tools
fi

if ! wants web; then
    :
elif ! node_suits; then
    problems+=("Node 20.19 or later, with npm, is needed to build and test the HTML report: see https://nodejs.org")
else
    update web/node_modules "$(cat web/package-lock.json <(node --version) | sha256sum | cut -c1-16)" install_web_tools
fi

if [ ${#problems[@]} -gt 0 ]; then
    say "not everything is there:" >&2
    printf '  - %s\n' "${problems[@]}" >&2
    say "what does not need it works all the same" >&2
fi
exit 0

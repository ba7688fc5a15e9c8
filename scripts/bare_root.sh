#!/usr/bin/env bash
# Runs `make demo` and `make test` on a minimal Debian, in a root directory freshly made by debootstrap. Needs root.
#
#   sudo scripts/bare_root.sh DIR [--suite NAME] [--mirror URL] [--again] [--remove] [demo|test|COMMAND ...]
#   sudo scripts/bare_root.sh DIR [--suite NAME] [--mirror URL] --plain
#
# DIR must be empty or not exist, and needs 20 GB for both. It receives Debian's smallest system (variant minbase) with
# make and ca-certificates, and a fresh clone of the current commit. scripts/setup.sh must install everything else. Only
# the Rust toolchain, Node and npm come from this machine, read-only, as if a developer had installed them. Python is
# Debian's, so the suite must have 3.11 or later. Access to registries is configured as on this machine: name servers,
# certificates, proxies and the settings of apt, cargo, npm and pip are passed on. Settings with secrets are only mounted
# during the run.
#
# The run has separate process ids and mounts, so that no process or mount is left, however it ends. It shares this
# machine's network and network namespaces. DIR remains, with the pages in DIR/home/smbscope/out; --remove deletes it
# afterwards. --again reuses an existing root with everything that earlier runs installed. --plain only makes the
# minimal Debian, in which chroot(8) sees nothing of this machine or of smbscope.
set -euo pipefail

# This machine's programs, as seen inside the root.
TOOLS=/opt/tools
CLONE=/home/smbscope
MARK=.smbscope-bare-root
# Registry client settings in the home folder, and pip's settings for all users.
SETTINGS=(.npmrc .config/pip/pip.conf .pip/pip.conf .cargo/config.toml /etc/pip.conf)
# Variables that configure access to the registries. Those with secrets are not passed on.
VARIABLES='^(https?_proxy|no_proxy|all_proxy|HTTPS?_PROXY|NO_PROXY|ALL_PROXY|SSL_CERT_(FILE|DIR)|CURL_CA_BUNDLE'
VARIABLES+='|REQUESTS_CA_BUNDLE|NODE_EXTRA_CA_CERTS|CARGO_(HTTP|NET|SOURCE|REGISTRIES)_[A-Z0-9_]+'
VARIABLES+='|PIP_(INDEX_URL|EXTRA_INDEX_URL|CERT|TRUSTED_HOST|DEFAULT_TIMEOUT)|(npm_config|NPM_CONFIG)_[A-Za-z_]+'
VARIABLES+='|CI)='

say() { echo "bare_root: $*"; }
fail() {
    echo "bare_root: $*" >&2
    exit 1
}

usage() { sed -n '4,5p' "$0" | cut -c3-; }

# Runs a command with separate mounts and process ids. The first process in the namespace dies with this script, and all
# others die with it, so the kernel removes the mounts.
alone() {
    setpriv --pdeathsig KILL -- \
        unshare --mount --propagation private --pid --fork --kill-child=KILL --mount-proc -- "$@"
}

# Prints `URI|suite|components|key` of each Debian archive that this machine uses.
archives() {
    command -v apt-get >/dev/null || return 0
    apt-get indextargets --format '$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)' 'Created-By: Packages' 2>/dev/null |
        awk -F'|' '$4 == "Debian" || $4 ~ /ORIGIN/' | cut -d'|' -f1-3 | sort -u
}

make_root() {
    command -v debootstrap >/dev/null || (
        . scripts/setup.sh --source-only
        install_packages debootstrap
    )
    command -v debootstrap >/dev/null || fail "debootstrap is missing: apt-get install debootstrap"
    local key=/usr/share/keyrings/debian-archive-keyring.gpg options=() log
    log=$(mktemp)
    [ ! -e "$key" ] || options=(--keyring="$key")
    say "making a minimal Debian ($suite) in $root"
    alone debootstrap --variant=minbase "${options[@]}" "$suite" "$root" "$mirror" >"$log" 2>&1 ||
        fail "debootstrap failed: $(tail -n 1 "$log") (all of it: $log)"
    mv "$log" "$root/$MARK"
    # Add security and other updates if this machine has them for the same suite.
    archives | awk -F'|' -v suite="$suite" '$2 == suite || index($2, suite "-") == 1 { print "deb " $1, $2, $3 }' \
        >"$root/etc/apt/sources.list"
    [ -s "$root/etc/apt/sources.list" ] || echo "deb $mirror $suite main" >"$root/etc/apt/sources.list"
    # Prevents packages from starting services.
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
    chmod 755 "$root/usr/sbin/policy-rc.d"
}

# Copies name servers, certificates and proxies on every run, because they may change.
pass_network_on() {
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    if command -v apt-config >/dev/null; then
        apt-config dump 2>/dev/null | grep -E '^Acquire::https?::(Proxy|Verify|CaInfo)' >"$root/etc/apt/apt.conf.d/90host" || true
    fi
    if compgen -G '/usr/local/share/ca-certificates/*.crt' >/dev/null; then
        mkdir -p "$root/usr/local/share/ca-certificates"
        cp -L /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/"
    fi
    local value
    env | grep -E "$VARIABLES" | grep -viE '^[^=]*(token|password|auth)' >"$root/$MARK.env" || true
    while IFS= read -r value; do
        value=${value#*=}
        # Also copy files named in variables, such as certificates.
        if [[ $value == /* && -f $value && ! -e $root$value ]]; then
            mkdir -p "$root$(dirname "$value")"
            cp -L "$value" "$root$value"
        fi
    done <"$root/$MARK.env"
}

# Runs inside the namespaces: mounts this machine's programs in the root and runs the commands there.
inside() {
    mount --bind "$root" "$root"
    cd "$root"
    mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
    mount -t sysfs -o nosuid,nodev,noexec sysfs "$root/sys"
    mount -t tmpfs -o mode=755,nosuid tmpfs "$root/run"
    mount -t tmpfs -o mode=755,nosuid tmpfs "$root/dev"
    local device
    for device in null zero full random urandom tty; do
        touch "$root/dev/$device"
        mount --bind "/dev/$device" "$root/dev/$device"
    done
    mkdir "$root/dev/shm" "$root/dev/pts"
    mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    for device in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${device%:*}" "$root/dev/${device#*:}"; done

    bind_read_only "$(rustc --print sysroot)" "$TOOLS/rust"
    bind_read_only "$(readlink -f "$(command -v node)")" "$TOOLS/node/bin/node"
    bind_read_only "$(npm root --global)/npm" "$TOOLS/node/lib/node_modules/npm"
    ln -sf ../lib/node_modules/npm/bin/npm-cli.js "$root$TOOLS/node/bin/npm"
    ln -sf ../lib/node_modules/npm/bin/npx-cli.js "$root$TOOLS/node/bin/npx"
    local settings
    for settings in "${SETTINGS[@]}"; do
        case $settings in
            /*) [ ! -f "$settings" ] || bind_read_only "$settings" "$settings" ;;
            *) [ ! -f "$HOME/$settings" ] || bind_read_only "$HOME/$settings" "/root/$settings" ;;
        esac
    done

    local path=$TOOLS/rust/bin:$TOOLS/node/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    local environment=(HOME=/root USER=root LANG=C.UTF-8 TERM=dumb "PATH=$path")
    readarray -t -O "${#environment[@]}" environment <"$root/$MARK.env"
    enter() { chroot "$root" /usr/bin/env -i "${environment[@]}" bash -euo pipefail -c "$1" </dev/null; }

    say "installing make and ca-certificates"
    enter 'export DEBIAN_FRONTEND=noninteractive
        apt-get update -qq && apt-get install -y -qq --no-install-recommends make ca-certificates >/dev/null'
    local status=0 done=() began what
    for what in "$@"; do
        case $what in demo | test) what="make $what" ;; esac
        say "$what"
        began=$EPOCHREALTIME
        if enter "cd $CLONE && $what"; then
            done+=("$(printf '%-20s passed after %s' "$what" "$(since "$began")")")
        else
            status=1
            done+=("$(printf '%-20s FAILED after %s' "$what" "$(since "$began")")")
        fi
    done
    say "Debian $(cat "$root/etc/debian_version"), $(nproc) cores, commit $commit, set-up included:"
    printf '    %s\n' "${done[@]}"
    return $status
}

since() {
    local seconds=$((${EPOCHREALTIME%[.,]*} - ${1%[.,]*}))
    echo "$((seconds / 60)) min $((seconds % 60)) s"
}

bind_read_only() {
    local target=$root$2
    if [ -d "$1" ]; then
        mkdir -p "$target"
    else
        mkdir -p "$(dirname "$target")"
        touch "$target"
    fi
    mount --bind "$1" "$target"
    mount -o remount,bind,ro "$target"
}

root='' suite='' mirror='' again='' remove='' plain='' commands=() inside=''
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" && exit 0 ;;
        --inside) inside=1 ;;
        --suite) suite=${2:?$(usage)} && shift ;;
        --mirror) mirror=${2:?$(usage)} && shift ;;
        --again) again=1 ;;
        --remove) remove=1 ;;
        --plain) plain=1 ;;
        -*) fail "no such option: $1; $(usage)" ;;
        *) if [ -z "$root" ]; then root=$1; else commands+=("$1"); fi ;;
    esac
    shift
done
[ -n "$root" ] || fail "no directory was given; $(usage)"
[ "$(id -u)" = 0 ] || fail "it needs root, for debootstrap and mounts"
[ ${#commands[@]} -gt 0 ] || commands=(demo test)
script=$(readlink -f "$0")
cd "$(dirname "$script")/.."
if [ -n "$inside" ]; then
    commit=$(git -C "$root$CLONE" rev-parse --short HEAD)
    inside "${commands[@]}"
    exit
fi

tools=(unshare setpriv)
[ -n "$plain" ] || tools+=(rustc node npm git)
for tool in "${tools[@]}"; do
    command -v "$tool" >/dev/null || fail "$tool is missing on this machine"
done
mkdir -p "$root"
root=$(readlink -f "$root")
[ "$root" != / ] || fail "the root of this machine is no place for it"
# Other users need access.
chmod 755 "$root"
. /etc/os-release
if [ -z "$suite" ]; then
    if [ "${ID:-}" = debian ]; then suite=${VERSION_CODENAME:-stable}; else suite=stable; fi
fi
if [ -z "$mirror" ]; then
    mirror=$(archives | awk -F'|' -v suite="$suite" '$2 == suite { print $1; exit }')
    [ -n "$mirror" ] || [ -e "$root/$MARK" ] || fail "this machine uses no archive of $suite: name one with --mirror"
fi
if [ -e "$root/$MARK" ]; then
    [ -n "$again" ] || fail "$root holds a root of an earlier run: remove it, or use it --again"
else
    [ -z "$(ls -A "$root")" ] || fail "$root is not empty"
    make_root
fi
if [ -n "$plain" ]; then exit; fi
pass_network_on
[ -z "$(git status --porcelain --untracked-files=no)" ] || say "there are changes that are not committed: they are left out"
rm -rf --one-file-system "${root:?}$CLONE"
commit=$(git rev-parse HEAD)
git -c safe.directory='*' clone --quiet --no-checkout "file://$PWD" "$root$CLONE"
git -C "$root$CLONE" -c advice.detachedHead=false checkout --quiet "$commit"

status=0
alone "$script" --inside "$root" "${commands[@]}" || status=$?
if [ -n "$remove" ]; then rm -rf --one-file-system "$root"; fi
exit $status

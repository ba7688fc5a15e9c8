#!/usr/bin/env bash
# Tests the packages of `make packages`: compares their contents with what was installed, installs, runs and removes each
# in a minimal Debian that has nothing else, and builds and runs the image of packaging/Containerfile.
#
#   packaging/test.sh PACKAGES STAGE ROOT NOTE
#
# STAGE holds the files that the packages were made from. ROOT is where the minimal Debian is, or is made (root only).
# NOTE gets a line for each part that can't be tested here: CONTRIBUTING.md says what may be skipped.
set -euo pipefail

# The size that the binary must stay below.
MOST_BYTES=40000000

packages=$1 stage=$(readlink -f "$2") root=$(readlink -m "$3") note=$4
here=$(dirname "$(readlink -f "$0")")
scratch=$(mktemp -d)
# Half a gigabyte, for as long as the test runs.
images=$root-images
mark=$root/.smbscope-bare-root
trap 'rm -rf "$scratch" "$images"' EXIT

say() { echo "test-packages: $*"; }
fail() {
    echo "test-packages: $*" >&2
    exit 1
}
# What this machine does not let us do; and what set-up should have installed.
unable() {
    say "SKIPPED: $*"
    echo "$*" >>"$note"
}
missing() {
    [ "${SMBSCOPE_MISSING:-}" != fail ] || fail "SMBSCOPE_MISSING=fail, and this is missing: $*"
    unable "$*"
}
has() { PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null; }

# The digest and path of each file below a directory.
digests() { (cd "$1" && find . -type f -exec sha256sum {} + | sed 's#  \./#  /#' | sort -k 2); }

same_files() {
    local size
    size=$(stat -c %s "$stage/usr/bin/smbscope")
    [ "$size" -lt "$MOST_BYTES" ] || fail "the binary has $size bytes, and $MOST_BYTES or more are too many"
    ! readelf -S "$stage/usr/bin/smbscope" | grep -qE '\.(symtab|debug_info)' || fail "the binary is not stripped"
    say "the binary has $size bytes, stripped"

    digests "$stage" >"$scratch/stage"
    sha256sum <"$here/copyright" | sed 's#-$#/usr/share/doc/smbscope/copyright#' >>"$scratch/stage"
    sort -o "$scratch/stage" -k 2 "$scratch/stage"
    dpkg-deb -x "$deb" "$scratch/deb"
    digests "$scratch/deb" | diff "$scratch/stage" - || fail "$deb has other files than were installed (<)"
    say "$(wc -l <"$scratch/stage") files in ${deb##*/}, those that make install installs"
    if ! has rpmbuild; then return; fi
    rpm -K --nosignature "$rpm" >"$scratch/digests" || fail "$rpm: $(cat "$scratch/digests")"
    # Directories have no digest.
    rpm -qp --qf '[%{FILEDIGESTS}  %{FILENAMES}\n]' "$rpm" | grep -v '^ ' | sort -k 2 | diff "$scratch/stage" - ||
        fail "$rpm has other files than were installed (<)"
    rpm -qp --requires "$rpm" | grep -vE '^(rpmlib|rtld)\(' | sort | diff <(libraries) - ||
        fail "$rpm does not require (>) the libraries and versions that the binary names (<)"
    say "the same in ${rpm##*/}, which requires the $(libraries | wc -l) libraries and versions that the binary names"
}

# The libraries that the binary is linked with and the versions of their symbols, as an .rpm names them.
libraries() {
    LC_ALL=C readelf -W --dynamic --version-info "$stage/usr/bin/smbscope" | awk '
        /\(NEEDED\)/ { gsub(/.*\[|\]/, ""); print $0 "()(64bit)" }
        /Version: .* File: / { library = $5 }
        / Name: .* Version: / && library { print library "(" $3 ")(64bit)" }' | sort -u
}

# A minimal Debian in ROOT. Another run uses it again, unless one that ended early has left something in it.
make_root() {
    if [ ! -e "$mark" ]; then
        rm -rf --one-file-system "$root"
        "$here/../scripts/bare_root.sh" "$root" --plain 2>&1 | tee "$scratch/made"
    fi
}

# Runs a program in the minimal Debian, with nothing of this machine.
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 chroot "$root" "$@"; }

# Milliseconds since a value of EPOCHREALTIME.
since() { echo $(((${EPOCHREALTIME//[.,]/} - ${1//[.,]/}) / 1000)); }

# All that is in there, apart from what dpkg remembers of itself.
everything() { find "$root" -xdev \( -path "$root/var/lib/dpkg" -o -path "$root/var/log" \) -prune -o -print | sort; }

# Each capture that a package has put there, as a user without any rights, who has no place to write either.
analyse_captures() {
    local capture captures=0
    for capture in "$root"/usr/share/smbscope/captures/*; do
        inside setpriv --reuid=65534 --regid=65534 --clear-groups smbscope analyze --format json "${capture#"$root"}" |
            grep -m 1 '^ *"headline": "..*"'
        captures=$((captures + 1))
    done
    [ "$captures" -ge 4 ] || fail "$captures captures are in the package"
    say "$captures captures analysed"
}

install_deb() {
    cp "$deb" "$root/smbscope.deb"
    everything >"$scratch/before"
    local began=$EPOCHREALTIME command
    inside dpkg -i /smbscope.deb >"$scratch/dpkg" 2>&1 || fail "the package can't be installed: $(cat "$scratch/dpkg")"
    # The first command of README.md, as it stands there.
    command=$(sed -n '/^\$ smbscope /{s/^\$ //p;q}' "$here/../README.md")
    inside sh -c "$command" >"$scratch/answer" || fail "$command"
    say "$(since "$began") ms from the package to the first answer: $(head -n 1 "$scratch/answer")"
    say "installed in a Debian $(cat "$root/etc/debian_version") of $(inside dpkg-query -W | wc -l) packages: $(inside smbscope --version)"

    analyse_captures
    inside smbscope man --output /tmp/pages
    diff <(ls "$root/tmp/pages") <(ls "$root/usr/share/man/man1" | grep '^smbscope' | sed 's/\.gz$//') ||
        fail "other manual pages are in the package than smbscope has"
    rm -r "$root/tmp/pages"
    inside zgrep -q '^\.TH ' /usr/share/man/man1/smbscope-analyze.1.gz || fail "smbscope-analyze.1 is no manual page"
    inside bash -c '. /usr/share/bash-completion/completions/smbscope && complete -p smbscope' >/dev/null
    local completion
    for completion in zsh/site-functions/_smbscope fish/vendor_completions.d/smbscope.fish; do
        grep -q analyze "$root/usr/share/$completion" || fail "/usr/share/$completion completes nothing"
    done
    say "manual pages and completions are in place"

    "$here/../scripts/check_readme.py" --root "$root" "$here"/../README.md "$here"/../docs/tutorial*.md |
        grep -v '^check_readme: ok'

    inside dpkg --purge smbscope >"$scratch/dpkg" 2>&1 || fail "the package can't be removed: $(cat "$scratch/dpkg")"
    everything | diff "$scratch/before" - || fail "this was left behind (>) or taken away (<)"
    rm "$root/smbscope.deb"
    say "removed, and nothing is left"
}

# rpm with a database of its own in the minimal Debian.
rpm_inside() { rpm --root "$root" --dbpath /var/lib/rpm "$@"; }

install_rpm() {
    # On Fedora these belong to the package filesystem, so smbscope's must not remove them.
    local shells=(bash-completion/completions fish/vendor_completions.d zsh/site-functions)
    (cd "$root/usr/share" && mkdir -p "${shells[@]}")
    everything >"$scratch/before"
    # --nodeps, since rpm does not know which libraries dpkg installed. That the package requires the right ones is compared
    # above; that they are enough shows when smbscope runs.
    rpm_inside -i --nodeps "$rpm" >"$scratch/rpm" 2>&1 || fail "the .rpm can't be installed: $(cat "$scratch/rpm")"
    rpm_inside -V --nodeps smbscope || fail "the files installed from the .rpm are not those in it"
    say "the .rpm installed in it: $(inside smbscope --version)"
    analyse_captures
    rpm_inside -e smbscope >"$scratch/rpm" 2>&1 || fail "the .rpm can't be removed: $(cat "$scratch/rpm")"
    rm -r "$root/var/lib/rpm"
    everything | diff "$scratch/before" - || fail "this was left behind (>) or taken away (<) by the .rpm"
    (cd "$root/usr/share" && rmdir -p --ignore-fail-on-non-empty "${shells[@]}")
    say "removed, and nothing is left"
}

# Builds packaging/Containerfile and runs the image. The minimal Debian stands in for the registry's image, which installs no
# documents and manual pages either. Isolation by chroot needs neither a daemon nor cgroups.
build_image() {
    local suite container entry version
    suite=$(. "$root/etc/os-release" && echo "$VERSION_CODENAME")
    export BUILDAH_ISOLATION=chroot
    in_store() { buildah --root "$images/store" --runroot "$images/run" --storage-driver vfs "$@"; }

    container=$(in_store from scratch)
    in_store copy --quiet "$container" "$root" / >/dev/null
    printf 'path-exclude /usr/share/%s/*\n' doc man >"$scratch/docker"
    in_store copy --quiet "$container" "$scratch/docker" /etc/dpkg/dpkg.cfg.d/ >/dev/null
    in_store commit --quiet --rm "$container" "docker.io/library/debian:$suite-slim" >/dev/null
    in_store build --quiet --pull-never --build-arg "DEBIAN=$suite" -t smbscope -f "$here/Containerfile" "$packages" \
        >"$scratch/image" 2>&1 || fail "the image can't be built: $(cat "$scratch/image")"

    # As podman run does: the entry point with the arguments, in the image's working directory.
    entry=$(in_store inspect --type image --format '{{index .OCIv1.Config.Entrypoint 0}}' smbscope)
    container=$(in_store from --pull-never smbscope)
    version=$(in_store run "$container" "$entry" --version)
    in_store run --volume "$here/../tests/data:/captures:ro" "$container" "$entry" analyze --format json \
        demo-slow-server.pcap.zst >"$scratch/report"
    grep '^ *"headline": "..*"' "$scratch/report"
    in_store run "$container" ls /usr/share/smbscope/captures/demo-slow-server.pcap.zst >/dev/null
    say "an image on debian:$suite-slim built with $(buildah --version | cut -d' ' -f1-3), and run: $version"
}

rm -f "$note"
mkdir -p "$(dirname "$note")"
deb=$(echo "$packages"/*.deb) rpm=$(echo "$packages"/*.rpm)
if ! has dpkg-shlibdeps; then
    missing "the packages: there is no dpkg-shlibdeps (Debian: dpkg-dev)"
    exit
fi
has rpmbuild || missing "the .rpm: there is no rpmbuild (Debian: rpm)"
same_files
# What the rest is, for the notes of what is skipped.
rest="installing the packages in a minimal Debian, and the image"
if [ "$(id -u)" != 0 ]; then
    unable "$rest: it needs root"
elif ! has debootstrap; then
    missing "$rest: there is no debootstrap (Debian: debootstrap)"
elif ! unshare --mount --pid --fork true 2>/dev/null; then
    unable "$rest: no right to mounts, as in many containers"
elif ! make_root; then
    unable "$rest: it can't be made here ($(tail -n 1 "$scratch/made" | sed 's/^bare_root: //'))"
else
    mv "$mark" "$scratch/mark"
    install_deb
    if has rpmbuild; then install_rpm; fi
    mv "$scratch/mark" "$mark"
    if has buildah; then
        build_image
    else
        missing "building the image of packaging/Containerfile: there is no buildah (Debian: buildah)"
    fi
fi

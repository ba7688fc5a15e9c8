#!/usr/bin/env bash
# Packs the files of `make install` as a .deb (with dpkg-deb) and an .rpm (with rpmbuild).
#
#   packaging/build.sh STAGE PACKAGES
#
# STAGE holds the files as `make install DESTDIR=STAGE PREFIX=/usr` puts them. A format without its tools is not packed;
# packaging/test.sh then says what is missing.
set -euo pipefail

NAME=smbscope
# Increase it for a new package of the same version.
REVISION=1
AUTHORS="The smbscope authors"
SUMMARY="Measures what an SMB file server makes its users wait for, and why"
DESCRIPTION="smbscope measures what an SMB/CIFS file server makes its users wait for, and why:
from packet captures of any dialect (SMB1 to SMB 3.1.1), or by loading a server
with users of a workload. It names the server, the network or the client."
# Without it, `watch` needs tcpdump or dumpcap.
DEB_RECOMMENDS=libpcap0.8
RPM_RECOMMENDS=libpcap
# Programs that `lab` and `bench` on a private server start, and those that slow it down.
DEB_SUGGESTS="libgssapi-krb5-2, samba, iproute2, ethtool, clamav-daemon, samba-vfs-modules"
RPM_SUGGESTS="krb5-libs samba iproute ethtool"

here=$(dirname "$(readlink -f "$0")")
HOMEPAGE=$(sed -n 's/^homepage = "\(.*\)"$/\1/p' "$here/../Cargo.toml")
stage=$(readlink -f "$1") packages=$(readlink -f "$2")
version=$("$stage/usr/bin/smbscope" --version | awk '{ print $2 }')
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Directories and files with the owner and access rights that they get.
root=$scratch/root
mkdir "$root"
cp -a "$stage/." "$root"
install -D -m 644 "$here/copyright" "$root/usr/share/doc/$NAME/copyright"
chmod -R u=rwX,go=rX "$root"

build_deb() {
    local tree=$scratch/debian/$NAME architecture depends
    architecture=$(dpkg --print-architecture)
    mkdir "$scratch/debian"
    cp -al "$root" "$tree"
    mkdir "$tree/DEBIAN"
    # The libraries that the binary is linked with, in the versions that it needs.
    printf 'Source: %s\n\nPackage: %s\nArchitecture: any\n' "$NAME" "$NAME" >"$scratch/debian/control"
    depends=$(cd "$scratch" && dpkg-shlibdeps -O "debian/$NAME/usr/bin/$NAME" | sed -n 's/^shlibs:Depends=//p')
    (cd "$root" && find . -type f -printf '%P\0' | sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
    cat >"$tree/DEBIAN/control" <<EOF
Package: $NAME
Version: $version-$REVISION
Architecture: $architecture
Maintainer: $AUTHORS
Installed-Size: $(du -sk --apparent-size "$root" | cut -f 1)
Depends: $depends
Recommends: $DEB_RECOMMENDS
Suggests: $DEB_SUGGESTS
Section: net
Priority: optional
Homepage: $HOMEPAGE
Description: $SUMMARY
$(sed 's/^/ /' <<<"$DESCRIPTION")
EOF
    dpkg-deb --build --root-owner-group "$tree" "$packages/${NAME}_$version-${REVISION}_$architecture.deb" >/dev/null
}

# rpm finds the libraries that the binary needs. Directories below are named to be removed with the package.
build_rpm() {
    cat >"$scratch/$NAME.spec" <<EOF
Name: $NAME
Version: $version
Release: $REVISION
Summary: $SUMMARY
License: MIT OR Apache-2.0
URL: $HOMEPAGE
Recommends: $RPM_RECOMMENDS
$(printf 'Suggests: %s\n' $RPM_SUGGESTS)
%description
$DESCRIPTION
%install
cp -a $root/. %{buildroot}
%files
%defattr(-,root,root)
/usr/bin/$NAME
/usr/share/$NAME
/usr/share/doc/$NAME
/usr/share/man/man1/$NAME*
/usr/share/bash-completion/completions/$NAME
/usr/share/zsh/site-functions/_$NAME
/usr/share/fish/vendor_completions.d/$NAME.fish
/usr/lib/systemd/system/$NAME-watch.service
EOF
    local options=("_topdir $scratch/rpm" "_rpmdir $packages" "_rpmfilename %{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm")
    # Files are packed as they are: nothing is stripped, compressed or linked.
    options+=('__os_install_post %{nil}' 'debug_package %{nil}' '_build_id_links none' '_binary_payload w10.zstdio')
    rpmbuild -bb --quiet "${options[@]/#/--define=}" "$scratch/$NAME.spec"
}

if command -v dpkg-shlibdeps >/dev/null; then build_deb; else echo "no .deb: there is no dpkg-shlibdeps (Debian: dpkg-dev)"; fi
if command -v rpmbuild >/dev/null; then build_rpm; else echo "no .rpm: there is no rpmbuild (Debian: rpm; Fedora: rpm-build)"; fi

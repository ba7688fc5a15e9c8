#!/usr/bin/env python3
"""Writes the manifests of a release for package managers: winget, Scoop and Homebrew.

    packaging/manifests.py VERSION WINDOWS_ZIP MACOS_ARCHIVE FOLDER

The archives are those of the release; their names and SHA-256 go into the manifests. A pull request to
microsoft/winget-pkgs, a Scoop bucket or a Homebrew tap takes them as they are.
"""

import hashlib
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOMEPAGE = re.search(r'^homepage = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE).group(1)
SUMMARY = "Measures what an SMB file server makes its users wait for, and why"
LICENCE = "MIT OR Apache-2.0"
WINGET_VERSION = "1.9.0"
IDENTIFIER = "smbscope.smbscope"


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def url(version: str, file: Path) -> str:
    return f"{HOMEPAGE}/releases/download/v{version}/{file.name}"


def scoop(version: str, archive: Path) -> dict[str, str]:
    manifest = {
        "version": version,
        "description": SUMMARY,
        "homepage": HOMEPAGE,
        "license": LICENCE.replace(" OR ", "|"),
        "architecture": {"64bit": {"url": url(version, archive), "hash": sha256(archive)}},
        "extract_dir": f"smbscope-{version}",
        "bin": "smbscope.exe",
        "checkver": "github",
    }
    return {"scoop/smbscope.json": json.dumps(manifest, indent=4) + "\n"}


def winget(version: str, archive: Path) -> dict[str, str]:
    head = f"PackageIdentifier: {IDENTIFIER}\nPackageVersion: {version}\n"

    def manifest(kind: str, text: str) -> str:
        return f"{head}{text}ManifestType: {kind}\nManifestVersion: {WINGET_VERSION}\n"

    installer = f"""InstallerType: zip
NestedInstallerType: portable
NestedInstallerFiles:
  - RelativeFilePath: smbscope-{version}\\smbscope.exe
    PortableCommandAlias: smbscope
Installers:
  - Architecture: x64
    InstallerUrl: {url(version, archive)}
    InstallerSha256: {sha256(archive).upper()}
"""
    locale = f"""PackageLocale: en-US
Publisher: The smbscope authors
PackageName: smbscope
PackageUrl: {HOMEPAGE}
License: {LICENCE}
ShortDescription: {SUMMARY}
"""
    return {
        f"winget/{IDENTIFIER}.yaml": manifest("version", "DefaultLocale: en-US\n"),
        f"winget/{IDENTIFIER}.installer.yaml": manifest("installer", installer),
        f"winget/{IDENTIFIER}.locale.en-US.yaml": manifest("defaultLocale", locale),
    }


def homebrew(version: str, archive: Path) -> dict[str, str]:
    formula = f"""class Smbscope < Formula
  desc "{SUMMARY}"
  homepage "{HOMEPAGE}"
  url "{url(version, archive)}"
  sha256 "{sha256(archive)}"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on :macos

  def install
    bin.install "smbscope"
    generate_completions_from_executable(bin/"smbscope", "completions")
    system bin/"smbscope", "man", "--output", man1
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/smbscope --version")
  end
end
"""
    return {"homebrew/smbscope.rb": formula}


def main() -> int:
    if len(sys.argv) != 5:
        print(__doc__, file=sys.stderr)
        return 2
    version, windows, macos, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4])
    for name, text in (scoop(version, windows) | winget(version, windows) | homebrew(version, macos)).items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

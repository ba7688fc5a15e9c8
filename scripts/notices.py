#!/usr/bin/env python3
"""Writes the licence texts of everything compiled into the smbscope binary, for the packages (gzip).

    scripts/notices.py OUTPUT [TARGET]

The crates are those that Cargo.lock resolves for the target, or else this machine's, without build and test
dependencies. A text shared by several crates is written once.
"""

import gzip
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# Names of licence files in a crate and in bundled C sources.
NAMES = ("LICENSE*", "LICENCE*", "COPYING*", "NOTICE*", "UNLICENSE*", "COPYRIGHT*")


def run(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def compiled_in(metadata: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the packages in the binary, other than those of this workspace."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    packages = {package["id"]: package for package in metadata["packages"]}
    todo = [id_ for id_ in metadata["workspace_members"] if packages[id_]["name"] == "smbscope-cli"]
    seen = set(todo)
    while todo:
        for dependency in nodes[todo.pop()]["deps"]:
            normal = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if normal and dependency["pkg"] not in seen:
                seen.add(dependency["pkg"])
                todo.append(dependency["pkg"])
    ours = set(metadata["workspace_members"])
    return sorted((packages[id_] for id_ in seen - ours), key=lambda package: (package["name"], package["version"]))


def texts(package: dict[str, Any]) -> set[str]:
    """Returns the licence texts of a package, without trailing blanks."""
    folder = Path(package["manifest_path"]).parent
    found = {file for name in NAMES for pattern in (name, f"*/{name}") for file in folder.glob(pattern)}
    return {tidy(file.read_text(encoding="utf-8", errors="replace")) for file in found if file.is_file()}


def tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def main() -> int:
    if len(sys.argv) not in (2, 3):
        print("usage: notices.py OUTPUT [TARGET]", file=sys.stderr)
        return 2
    host = next(line.split()[1] for line in run("rustc", "-vV").splitlines() if line.startswith("host:"))
    target = (sys.argv[2:] or [host])[0]
    packages = compiled_in(
        json.loads(run("cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target))
    )
    by_text: dict[str, list[str]] = defaultdict(list)
    lines = ["The smbscope binary contains these libraries, under these licences:", ""]
    for package in packages:
        name = f"{package['name']} {package['version']}"
        lines.append(f"  {name}: {package['license'] or 'see its licence below'}")
        for text in texts(package):
            by_text[text].append(name)
    for text, names in sorted(by_text.items(), key=lambda item: item[1]):
        lines += ["", "-" * 80, ", ".join(names), "", text]
    # No timestamp, so that the same sources give the same file.
    Path(sys.argv[1]).write_bytes(gzip.compress("\n".join([*lines, ""]).encode(), mtime=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Writes the licence texts of everything compiled into a crate (gzip): into the binary in the packages, or into the
analysis in the page into which captures are dropped.

    scripts/notices.py CRATE TARGET OUTPUT

The crates are those that Cargo.lock resolves for the target, such as wasm32-unknown-unknown or `host`, without build
and test dependencies. A text shared by several crates is written once.
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


def compiled_in(crate: str, metadata: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the packages in a crate of this workspace, other than the workspace's own."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    packages = {package["id"]: package for package in metadata["packages"]}
    todo = [id_ for id_ in metadata["workspace_members"] if packages[id_]["name"] == crate]
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
    if len(sys.argv) != 4:
        print("usage: notices.py CRATE TARGET OUTPUT", file=sys.stderr)
        return 2
    crate, target, output = sys.argv[1:]
    if target == "host":
        target = next(line.split()[1] for line in run("rustc", "-vV").splitlines() if line.startswith("host:"))
    metadata = run("cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target)
    packages = compiled_in(crate, json.loads(metadata))
    by_text: dict[str, list[str]] = defaultdict(list)
    lines = ["smbscope contains these libraries, under these licences:", ""]
    for package in packages:
        name = f"{package['name']} {package['version']}"
        lines.append(f"  {name}: {package['license'] or 'see its licence below'}")
        for text in texts(package):
            by_text[text].append(name)
    lines.append("  The standard library of Rust: MIT OR Apache-2.0")
    for text, names in sorted(by_text.items(), key=lambda item: item[1]):
        lines += ["", "-" * 80, ", ".join(names), "", text]
    # No timestamp, so that the same sources give the same file.
    Path(output).write_bytes(gzip.compress("\n".join([*lines, ""]).encode(), mtime=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())

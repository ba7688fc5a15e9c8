#!/usr/bin/env python3
"""Checks the licence and the source of every crate in Cargo.lock against deny.toml. Fast and offline.

Reads `licenses.allow`, `licenses.exceptions` and `sources.allow-registry` as cargo-deny does.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TOKEN = re.compile(r"\(|\)|[^\s()]+")


class Expression:
    """An SPDX licence expression: `A OR B`, `A AND B`, `A WITH exception`, parentheses; old crates write `A/B`."""

    def __init__(self, text: str, allowed: set[str]) -> None:
        self.tokens = TOKEN.findall(text.replace("/", " OR "))
        self.allowed = allowed

    def accepted(self) -> bool:
        result = self.alternatives()
        if self.tokens:
            raise ValueError(f"unexpected {self.tokens[0]!r}")
        return result

    def alternatives(self) -> bool:
        result = self.conjunction()
        while self.tokens and self.tokens[0] == "OR":
            self.tokens.pop(0)
            result = self.conjunction() or result
        return result

    def conjunction(self) -> bool:
        result = self.single()
        while self.tokens and self.tokens[0] == "AND":
            self.tokens.pop(0)
            result = self.single() and result
        return result

    def single(self) -> bool:
        if not self.tokens:
            raise ValueError("unexpected end")
        name = self.tokens.pop(0)
        if name == "(":
            result = self.alternatives()
            if not self.tokens or self.tokens.pop(0) != ")":
                raise ValueError("missing )")
            return result
        if self.tokens and self.tokens[0] == "WITH":
            self.tokens.pop(0)
            name = f"{name} WITH {self.tokens.pop(0)}"
        return name in self.allowed


def problem(package: dict[str, Any], allowed: set[str], registries: list[str]) -> str | None:
    source = package["source"]
    if source is not None and source.removeprefix("registry+") not in registries:
        return f"comes from {source}"
    licence = package["license"]
    if not licence:
        return "states no licence"
    try:
        return None if Expression(licence, allowed).accepted() else f"licence {licence} is not allowed"
    except ValueError as error:
        return f"licence {licence!r} cannot be read: {error}"


def main() -> int:
    settings = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))
    allowed = set(settings["licenses"]["allow"])
    exceptions = {
        entry.get("crate") or entry["name"]: set(entry["allow"]) for entry in settings["licenses"].get("exceptions", [])
    }
    registries = settings["sources"]["allow-registry"]
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--format-version", "1", "--locked"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if run.returncode:
        print(run.stderr.strip(), file=sys.stderr)
        return 1
    packages = json.loads(run.stdout)["packages"]
    failures = 0
    for package in sorted(packages, key=lambda package: (package["name"], package["version"])):
        found = problem(package, allowed | exceptions.get(package["name"], set()), registries)
        if found:
            failures += 1
            print(f"check_licences: {package['name']} {package['version']}: {found}", file=sys.stderr)
    print(f"check_licences: {len(packages)} crates, {failures} refused")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())

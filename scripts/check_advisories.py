#!/usr/bin/env python3
"""Checks every crate of Cargo.lock against the RustSec advisory database.

The database is looked for where cargo-audit, cargo-deny and distributions put it, and in `--database DIR` or
$ADVISORY_DB; failing that, it is fetched from `db-urls` of deny.toml into .cache. Where it can't be had, that is said
in a line, and nothing fails: no registry of packages ships it. A vulnerable crate fails unless deny.toml names the
advisory in `advisories.ignore`; crates that are unmaintained or unsound are listed. (cargo-deny checks the same, and
takes minutes to build.)
"""

import argparse
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "advisory-db"
# Longest wait for the database, in seconds.
FETCH_S = 60
# An advisory is Markdown that begins with a block of TOML.
FRONT = re.compile(r"\A\s*```toml\n(.*?)\n```", re.DOTALL)
COMPARATOR = re.compile(r"(<=|>=|<|>|=|\^|~)?\s*(\d[0-9A-Za-z.+-]*)")


# A version's order (semver.org, 11): numbers, whether it is a release, identifiers of the pre-release.
Version = tuple[tuple[int, ...], bool, tuple[tuple[bool, int, str], ...]]


def version(text: str) -> Version:
    core, _, pre = text.partition("+")[0].partition("-")
    numbers = [int(number) for number in core.split(".")]
    identifiers = tuple(
        (not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in pre.split(".") if part
    )
    return tuple(numbers + [0] * (3 - len(numbers))), not pre, identifiers


def holds(comparator: str, text: str, found: Version) -> bool:
    """One of Cargo's comparators: the caret is the default one."""
    low = version(text)
    if comparator in ("", "^", "~"):
        given = text.partition("+")[0].partition("-")[0].count(".") + 1
        numbers = list(low[0])
        # The first number that may not change, and none behind those that are given.
        kept = 2 if comparator == "~" else next((i + 1 for i, number in enumerate(numbers) if number), given)
        kept = min(kept, given)
        high = numbers[: kept - 1] + [numbers[kept - 1] + 1] + [0] * (3 - kept)
        return low <= found and found[0] < tuple(high)
    return {
        "<": found < low,
        "<=": found <= low,
        ">": found > low,
        ">=": found >= low,
        "=": found == low,
    }[comparator]


def matches(requirement: str, found: Version) -> bool:
    parts = [part.strip() for part in requirement.split(",")]
    if parts == ["*"]:
        return True
    read = [COMPARATOR.fullmatch(part) for part in parts]
    if None in read:
        raise ValueError(f"requirement {requirement!r}")
    return all(holds(part[1] or "", part[2], found) for part in read if part is not None)


@dataclass(frozen=True)
class Advisory:
    name: str
    package: str
    # What it is about where it is no vulnerability: `unmaintained`, `unsound`, `notice`.
    informational: str | None
    safe: tuple[str, ...]

    def hits(self, package: str, found: str) -> bool:
        number = version(found)
        return package == self.package and not any(matches(requirement, number) for requirement in self.safe)


def advisories(database: Path) -> Iterator[Advisory]:
    """Those that have not been withdrawn."""
    for file in sorted((database / "crates").glob("*/RUSTSEC-*.md")):
        front = FRONT.match(file.read_text(encoding="utf-8"))
        if front is None:
            raise ValueError(f"{file} does not begin with TOML")
        fields = tomllib.loads(front[1])
        about, versions = fields["advisory"], fields.get("versions", {})
        if "withdrawn" not in about:
            safe = (*versions.get("patched", ()), *versions.get("unaffected", ()))
            yield Advisory(about["id"], about["package"], about.get("informational"), safe)


def find_database(given: Path | None, urls: Sequence[str]) -> Path | None:
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    places = [given] if given else [home / "advisory-db", *sorted(home.glob("advisory-dbs/*"))]
    places += [] if given else [Path("/usr/share/cargo-audit-advisory-db")]
    for place in places:
        if place is not None and (place / "crates").is_dir():
            return place
    return None if given else fetched(urls)


def fetched(urls: Sequence[str]) -> Path | None:
    """A copy of our own, renewed; an older one where it can't be."""
    for url in urls:
        if (CACHE / "crates").is_dir():
            command = ["git", "-C", str(CACHE), "pull", "--quiet", "--ff-only"]
        else:
            command = ["git", "clone", "--quiet", "--depth", "1", url, str(CACHE)]
        # No question is asked.
        environment = os.environ | {"GIT_TERMINAL_PROMPT": "0"}
        try:
            subprocess.run(command, check=True, capture_output=True, env=environment, timeout=FETCH_S)
        except (OSError, subprocess.SubprocessError):
            continue
        break
    return CACHE if (CACHE / "crates").is_dir() else None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    environment = os.environ.get("ADVISORY_DB")
    given = Path(environment) if environment else None
    parser.add_argument("--database", type=Path, default=given, metavar="DIR", help="a copy of the advisory database")
    parser.add_argument("--lock", type=Path, default=ROOT / "Cargo.lock", metavar="FILE", help="what to check")
    parser.add_argument("--skip-note", type=Path, metavar="FILE", help="write here why it was skipped, if it was")
    options = parser.parse_args()
    settings = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))["advisories"]
    if options.skip_note is not None:
        options.skip_note.unlink(missing_ok=True)
    database = find_database(options.database, settings["db-urls"])
    if database is None:
        print("advisories: skipped, database not reachable")
        if options.skip_note is not None:
            options.skip_note.parent.mkdir(parents=True, exist_ok=True)
            options.skip_note.write_text("the advisory database is not reachable\n", encoding="utf-8")
        return 0
    packages = tomllib.loads(options.lock.read_text(encoding="utf-8"))["package"]
    known = list(advisories(database))
    failures = 0
    for package in packages:
        if "source" not in package:
            continue
        for advisory in known:
            if not advisory.hits(package["name"], package["version"]):
                continue
            ignored = advisory.name in settings.get("ignore", [])
            word = advisory.informational or ("ignored" if ignored else "VULNERABLE")
            failures += word == "VULNERABLE"
            print(f"advisories: {package['name']} {package['version']}: {advisory.name}, {word}", file=sys.stderr)
    print(f"advisories: {len(packages)} crates, {len(known)} advisories in {database}, {failures} vulnerable")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())

#!/usr/bin/env python3
"""Slims captures and prints, as a Markdown table, their size and whether the report stays the same.

Each capture below a folder is slimmed, once plainly and once with --anonymize. The JSON report on the plain copy must
equal that on the original, except for the description of the file. The report on the anonymous copy must have the same
commands, times and counts. Differences are listed and give exit status 1.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Fields that describe the file and the captured length of packets.
OF_THE_FILE = ("captured_bytes", "snapped_packets", "longest_cut_packet", "truncated_captures", "unreadable_records")
# Parts of the report without names, which must be the same for an anonymous copy.
NAMELESS = ("commands", "groups")
SUFFIXES = (".pcap", ".pcapng", ".snoop")


@dataclass
class Row:
    captures: int = 0
    original: int = 0
    captured: int = 0
    slim: int = 0
    compressed: int = 0
    differing: list[str] = field(default_factory=list)


def captures(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        name = path.name.removesuffix(".zst").removesuffix(".gz").removesuffix(".xz").removesuffix(".lz4")
        if path.is_file() and name.endswith(SUFFIXES):
            yield path


def report(smbscope: str, capture: Path) -> dict[str, Any] | None:
    """Returns the report on a capture, or None if it contains no SMB."""
    done = subprocess.run(
        [smbscope, "analyze", "--quiet", "--format", "json", str(capture)], capture_output=True, check=False
    )
    if done.returncode != 0:
        return None
    # Proposed commands contain the file name.
    report: dict[str, Any] = json.loads(done.stdout.decode().replace(str(capture), "CAPTURE"))
    return report


def without_the_file(report: dict[str, Any] | None) -> dict[str, Any] | None:
    if report is None:
        return None
    rest = {key: value for key, value in report.items() if key != "captures"}
    rest["quality"] = {key: value for key, value in report["quality"].items() if key not in OF_THE_FILE}
    return rest


def counts(report: dict[str, Any] | None) -> Any:
    """Returns what an anonymous report must repeat: figures without names, and the number of names."""
    if report is None:
        return None
    return [report.get(key) for key in NAMELESS] + [len(report.get(key, [])) for key in ("connections", "clients")]


def slim(smbscope: str, capture: Path, out: Path, *options: str) -> None:
    subprocess.run([smbscope, "slim", "--quiet", *options, "-o", str(out), str(capture)], check=True)


def measure(smbscope: str, capture: Path, place: Path, row: Row) -> None:
    before = report(smbscope, capture)
    plain, compressed, hidden = (place / name for name in ("a.pcapng", "a.pcapng.zst", "hidden.pcapng"))
    slim(smbscope, capture, plain)
    slim(smbscope, capture, compressed)
    slim(smbscope, capture, hidden, "--anonymize", "--keep", "depth,extensions")
    row.captures += 1
    row.original += capture.stat().st_size
    row.captured += before["quality"]["captured_bytes"] if before else 0
    row.slim += plain.stat().st_size if before else 0
    row.compressed += compressed.stat().st_size if before else 0
    if without_the_file(report(smbscope, plain)) != without_the_file(before):
        row.differing.append(f"{capture}: another report")
    if counts(report(smbscope, hidden)) != counts(before):
        row.differing.append(f"{capture}: other figures in the anonymous report")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smbscope", default="smbscope", help="the program")
    parser.add_argument("folders", nargs="+", type=Path)
    arguments = parser.parse_args()
    print("| captures | number | packets | slim | slim, zstd | ratio | ratio, zstd | reports |")
    print("|---|---:|---:|---:|---:|---:|---:|---|")
    differing: list[str] = []
    for folder in arguments.folders:
        row = Row()
        with tempfile.TemporaryDirectory() as place:
            for capture in captures(folder):
                measure(arguments.smbscope, capture, Path(place), row)
        if row.captures == 0:
            continue
        same = "all equal" if not row.differing else f"{len(row.differing)} differ"
        ratios = [row.captured / max(size, 1) for size in (row.slim, row.compressed)]
        sizes = " | ".join(f"{size / 1e6:.2f} MB" for size in (row.captured, row.slim, row.compressed))
        print(f"| {folder.name} | {row.captures} | {sizes} | {ratios[0]:.1f} | {ratios[1]:.1f} | {same} |", flush=True)
        differing += row.differing
    for problem in differing:
        print(problem, file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())

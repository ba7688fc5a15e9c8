#!/usr/bin/env python3
"""Measures speed and memory of `smbscope analyze` on large generated captures, against tshark and the physical limit.

    scripts/bench.py --smbscope target/release/smbscope --examples target/release/examples --scratch target/bench \\
        -o docs/performance.md

Each capture is generated from a seed, measured with every program in turn and deleted. The programs are smbscope;
tshark with its service response times; `cat`, which only reads; and a bare walk through a memory map that touches each
record header and the first 80 bytes of each packet. The captures are in the page cache.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import bench_guard
import bench_page
import measure
from measure import Run

ROOT = Path(__file__).resolve().parent.parent
WORKERS = (2, 4, 8, 16)
DAMAGE = ("--drop", "0.001", "--duplicate", "0.001", "--reorder", "0.002")


@dataclass(slots=True)
class Case:
    """A capture to generate."""

    name: str
    mix: str
    flows: int = 100
    snap: int | None = None
    extra: Sequence[str] = ()

    @property
    def is_damaged(self) -> bool:
        return bool(self.extra) and self.extra[0] == "--drop"

    @property
    def shows_every_exchange(self) -> bool:
        """False for damaged captures, and for short snap lengths, which hide all but the first member of a compound."""
        return not self.is_damaged and (self.snap is None or self.mix not in ("office", "site"))


@dataclass(slots=True)
class Measured:
    """Results of a case by program."""

    case: Case
    size: int
    packets: int
    flows: int
    """Number of generated connections."""
    answered: int
    """Number of requests with a complete response."""
    runs: dict[str, Run] = field(default_factory=dict)
    by_thread: dict[int, list[float]] = field(default_factory=dict)
    """CPU time of each thread by number of workers, the reading thread first."""


CASES = (
    Case("bulk", "bulk", flows=8),
    Case("office", "office"),
    Case("netbench", "netbench"),
    Case("office-256", "office", snap=256),
    Case("netbench-256", "netbench", snap=256),
    Case("office-128", "office", snap=128),
    Case("netbench-128", "netbench", snap=128),
    Case("office-damaged", "office", extra=DAMAGE),
    Case("bulk-offload", "bulk", flows=8, extra=("--offload",)),
    Case("site", "site", flows=1536),
    Case("site-128", "site", flows=1536, snap=128),
)


def number(text: str) -> int:
    """Parses a number of bytes such as 1G, 500M or 64k."""
    match = re.fullmatch(r"(\d+)([kMG]?)", text)
    if not match:
        raise argparse.ArgumentTypeError("a number, or one with k, M or G")
    return int(match[1]) * {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}[match[2]]


class Bench:
    """The programs, and the directory for captures."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.smbscope: Path = options.smbscope
        self.examples: Path = options.examples
        self.scratch: Path = options.scratch
        self.rounds: int = options.rounds
        self.with_tshark: bool = not options.without_tshark
        self.against: Path | None = None
        shown = subprocess.run([self.smbscope, "analyze", "--help"], capture_output=True, text=True, check=True)
        self.has_threads = "--threads" in shown.stdout
        self.cores = os.cpu_count() or 1

    def generate(self, case: Case, size: int, path: Path) -> Measured:
        """Writes the capture and waits until it is on disk, so that no write disturbs the measurements."""
        arguments = ["--mix", case.mix, "--flows", str(case.flows), "--bytes", str(size)]
        arguments += [] if case.snap is None else ["--snap", str(case.snap)]
        arguments += case.extra
        command = [str(self.examples / "generate"), *arguments, "-o", str(path)]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        truth = dict(line.rsplit(" ", 1) for line in printed.splitlines())
        with path.open("rb") as file:
            os.fsync(file.fileno())
        return Measured(
            case,
            path.stat().st_size,
            int(truth["packets"]),
            flows=int(truth["flows"]),
            answered=int(truth["responses"]),
        )

    def check(self, measured: Measured, path: Path) -> None:
        """Checks that smbscope finds every generated exchange."""
        command = [str(self.smbscope), "analyze", "--quiet", "--format", "json", str(path)]
        report = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        found = sum(command["outcomes"].get("complete", 0) for command in report["commands"])
        if found != measured.answered:
            raise SystemExit(f"bench: {path.name}: {found} exchanges found, {measured.answered} written")

    def smbscope_commands(self, path: Path) -> dict[str, Sequence[str]]:
        command = [str(self.smbscope), "analyze", "--quiet", str(path)]
        if not self.has_threads:
            return {"smbscope": command}
        one_thread = [*command, "--threads", "1"]
        return {
            bench_page.ONE_THREAD: one_thread,
            bench_page.WITHOUT_FINDINGS: [*one_thread, "--no-findings"],
            "smbscope": command,
        }

    def measure(self, case: Case, size: int) -> Measured:
        """Measures all programs on one capture."""
        print(f"bench: {case.name}", file=sys.stderr)
        path = self.scratch / f"{case.name}.pcap"
        try:
            measured = self.generate(case, size, path)
            if case.shows_every_exchange:
                self.check(measured, path)
            commands = self.smbscope_commands(path)
            if self.against:
                commands[bench_guard.AGAINST] = [str(self.against), "analyze", "--quiet", str(path)]
            if self.with_tshark:
                srt = "smb,srt" if case.mix == "netbench" else "smb2,srt"
                commands["tshark"] = ["tshark", "-q", "-z", srt, "-r", str(path)]
            commands["cat"] = ["cat", str(path)]
            commands["bare walk"] = [str(self.examples / "walk"), str(path)]
            measured.runs = measure.interleaved(commands, rounds=self.rounds, once=frozenset({"tshark"}))
            if self.has_threads and case.mix == "site":
                ours = commands["smbscope"]
                measured.by_thread = {n: measure.by_thread([*ours, "--threads", str(n)]) for n in WORKERS}
        finally:
            path.unlink(missing_ok=True)
        return measured

    def scale(self, case: Case, size: int) -> Measured:
        """Measures smbscope and the bare walk on one capture."""
        print(f"bench: scaling, {size / 1e6:,.0f} MB, {case.flows} flows", file=sys.stderr)
        path = self.scratch / "scaling.pcap"
        try:
            measured = self.generate(case, size, path)
            commands = self.smbscope_commands(path)
            if self.has_threads and self.cores > 1:
                commands["smbscope --threads 2"] = [*commands["smbscope"], "--threads", "2"]
            commands["bare walk"] = [str(self.examples / "walk"), str(path)]
            measured.runs = measure.interleaved(commands, rounds=self.rounds, once=frozenset())
        finally:
            path.unlink(missing_ok=True)
        return measured


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smbscope", type=Path, required=True)
    parser.add_argument("--examples", type=Path, required=True, help="directory with `generate` and `walk`")
    parser.add_argument("--scratch", type=Path, required=True, help="directory for captures, one at a time")
    parser.add_argument("--bytes", type=number, default=10**9, help="size of each capture (default: 1G)")
    parser.add_argument("--scaling-bytes", type=number, help="smallest capture of the scaling table (default: an 8th)")
    parser.add_argument("--cases", help="some of: " + ",".join(case.name for case in CASES))
    parser.add_argument("--rounds", type=int, default=5, help="timed runs; tshark runs once (default: 5)")
    parser.add_argument("--without-tshark", action="store_true")
    parser.add_argument("--against", help="a commit whose binary takes turns; `release` for the last release, if any")
    parser.add_argument("--without-scaling", action="store_true")
    parser.add_argument("-o", "--output", type=Path, help="default: standard output")
    options = parser.parse_args()

    names = options.cases.split(",") if options.cases else [case.name for case in CASES]
    unknown = set(names) - {case.name for case in CASES}
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    options.scratch.mkdir(parents=True, exist_ok=True)
    bench = Bench(options)
    older = bench_guard.commit(options.against) if options.against else ""
    if older:
        bench.against = bench_guard.build(older, options.scratch.resolve())
    load = os.getloadavg()[0]
    measured = [bench.measure(case, options.bytes) for case in CASES if case.name in names]
    sizes: list[Measured] = []
    flows: list[Measured] = []
    if not options.without_scaling:
        base = options.scaling_bytes or options.bytes // 8
        sizes = [bench.scale(Case("scaling", "office"), base * factor) for factor in (1, 4, 16)]
        flows = [bench.scale(Case("scaling", "site", flows=count), base * 4) for count in (100, 1_000, 10_000, 100_000)]
    page = bench_page.page(measured, sizes, flows, rounds=bench.rounds, smbscope=bench.smbscope, load=load)
    if older:
        page += "\n" + "\n".join(bench_guard.against(measured, older))
        for name in bench_guard.got_slower(measured):
            print(f"bench: {name} got slower since {older[:12]}", file=sys.stderr)
    for line in bench_guard.since_committed(measured):
        print(f"bench: {line}", file=sys.stderr)
    print(page)
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(page, encoding="utf-8")
        bench_guard.keep(measured)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

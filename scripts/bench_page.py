"""The page that bench.py writes: machine, method, a row per capture, targets, scaling."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench import Measured
    from measure import Run

# Intended readers of the page.
READERS = "For anyone who plans to analyse large captures: speed and memory, next to tshark and a bare walk."
# Targets.
TIMES_TSHARK_FULL = 100
TIMES_TSHARK_SNAPPED = 40
TIMES_WALK_FULL = 2
FINDINGS_PERCENT = 15
ONE_THREAD = "smbscope --threads 1"
WITHOUT_FINDINGS = "smbscope --threads 1 --no-findings"
ANONYMOUS_BYTES = 150 * 10**6

# Limits above which the machine counts as busy: load average at the start, and ratio of wall to CPU time of a
# single-threaded program.
BUSY_LOAD = 0.8
BUSY_WAIT = 1.1


def machine() -> str:
    model = platform.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    kernel = platform.release().split("-")[0]
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB of memory, {platform.system()} {kernel}"


def version(program: str) -> str:
    try:
        lines = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.splitlines()
    except OSError:
        return f"no {program}"
    return lines[0].rstrip(".") if lines else program


def megabytes(count: int | None) -> str:
    return "" if count is None else f"{count / 1e6:,.0f} MB"


def times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Formats a table with text in the first column and figures in the others."""
    lines = ["|" + "|".join(head) + "|", "|---|" + "---:|" * (len(head) - 1)]
    return lines + ["|" + "|".join(row) + "|" for row in rows] + [""]


def fastest(measured: Measured) -> Run:
    """Returns the run of smbscope with default options."""
    return measured.runs["smbscope"]


def summary(all_measured: Sequence[Measured]) -> list[str]:
    rows = []
    for measured in all_measured:
        ours, walk = fastest(measured), measured.runs["bare walk"]
        theirs = measured.runs.get("tshark")
        rows.append(
            [
                measured.case.name,
                f"{ours.wall:.2f} s",
                f"{measured.packets / ours.wall / 1e6:.2f}M",
                megabytes(ours.anonymous),
                f"{theirs.wall:.1f} s" if theirs else "",
                times(theirs.wall / ours.wall) if theirs else "",
                times(theirs.cpu / ours.cpu) if theirs else "",
                times(ours.wall / walk.wall),
            ]
        )
    head = ["capture", "smbscope", "packets/s", "memory", "tshark", "× faster", "× less CPU", "× the walk"]
    return table(head, rows)


def targets(all_measured: Sequence[Measured]) -> list[str]:
    """Lists each target with the worst capture it applies to."""
    full = [one for one in all_measured if one.case.snap is None and not one.case.is_damaged]
    narrow = [one for one in all_measured if one.case.snap == 128]
    rows: list[list[str]] = []

    def add(target: str, figures: dict[str, float], bound: float, *, at_least: bool, unit: str = "") -> None:
        if not figures:
            return
        worst = (min if at_least else max)(figures, key=lambda name: figures[name])
        value = figures[worst]
        met = value >= bound if at_least else value <= bound
        met_by = sum((figure >= bound) if at_least else (figure <= bound) for figure in figures.values())
        verdict = "met" if met else f"missed ({met_by} of {len(figures)} captures meet it)"
        rows.append([target, f"{times(value)}{unit} ({worst})", verdict])

    def ratios(some: Sequence[Measured]) -> dict[str, float]:
        return {one.case.name: one.runs["tshark"].wall / fastest(one).wall for one in some if "tshark" in one.runs}

    add(f"full payload: {TIMES_TSHARK_FULL} times tshark's speed", ratios(full), TIMES_TSHARK_FULL, at_least=True)
    add(
        f"128 bytes of each packet: {TIMES_TSHARK_SNAPPED} times tshark's speed",
        ratios(narrow),
        TIMES_TSHARK_SNAPPED,
        at_least=True,
    )
    walks = {one.case.name: fastest(one).wall / one.runs["bare walk"].wall for one in full}
    add(f"full payload: {TIMES_WALK_FULL} times a bare walk at most", walks, TIMES_WALK_FULL, at_least=False)
    findings = {
        one.case.name: 100 * (one.runs[ONE_THREAD].cpu / one.runs[WITHOUT_FINDINGS].cpu - 1)
        for one in all_measured
        if WITHOUT_FINDINGS in one.runs and ONE_THREAD in one.runs
    }
    add(
        f"{FINDINGS_PERCENT}% more processor time at most for causes and episodes, one thread",
        findings,
        FINDINGS_PERCENT,
        at_least=False,
        unit="%",
    )
    memory = {one.case.name: (fastest(one).anonymous or 0) / 1e6 for one in all_measured}
    add(
        f"{ANONYMOUS_BYTES / 1e6:.0f} MB of anonymous memory at most",
        memory,
        ANONYMOUS_BYTES / 1e6,
        at_least=False,
        unit=" MB",
    )
    return table(["target", "worst", ""], rows)


def scaling(all_measured: Sequence[Measured]) -> list[str]:
    """Compares captures that differ in size or connections."""
    rows = []
    for measured in all_measured:
        ours = fastest(measured)
        rows.append(
            [
                f"{measured.size / 1e6:,.0f} MB {measured.case.mix}",
                f"{measured.flows:,}",
                f"{ours.wall:.2f} s",
                f"{measured.packets / ours.wall / 1e6:.2f}M",
                megabytes(ours.anonymous),
                times(ours.wall / measured.runs["bare walk"].wall),
            ]
        )
    return table(["capture", "connections", "smbscope", "packets/s", "memory", "× the walk"], rows)


def shares(measured: Sequence[Measured]) -> list[str]:
    """States the reading thread's share of the processor time, which limits what more threads gain."""
    lines = []
    for one in measured:
        if one.by_thread:
            read = [reading / (reading + sum(working)) for reading, *working in one.by_thread.values()]
            most = max(sum(seconds) / max(seconds) for seconds in one.by_thread.values())
            lines.append(
                f"`{one.case.name}` with {min(one.by_thread)} to {max(one.by_thread)} workers: reading takes "
                f"{min(read):.0%} to {max(read):.0%} of the processor time; with a core per thread, the busiest thread "
                f"allows {times(most)} times the speed of one."
            )
    return [text for line in lines for text in (line, "")]


def disturbance(measured: Sequence[Measured], load: float) -> list[str]:
    """Warns that wall times are unreliable if the machine was busy."""
    waits = [run.wall / run.cpu for one in measured for name, run in one.runs.items() if name == "tshark" and run.cpu]
    longest = max(waits, default=1.0)
    if load <= BUSY_LOAD and longest <= BUSY_WAIT:
        return []
    text = f"**The machine was busy** (load {load:.1f} at the start; tshark, which uses one core, waited up to"
    return [f"{text} {1 - 1 / longest:.0%}", "of its time): go by the processor times.", ""]


def page(
    measured: Sequence[Measured],
    sizes: Sequence[Measured],
    flows: Sequence[Measured],
    *,
    rounds: int,
    smbscope: Path,
    load: float,
) -> str:
    """Returns the whole page."""
    text = [
        "# Performance",
        "",
        READERS,
        "",
        "Generated by `make bench`; do not edit.",
        "",
        f"Measured on {datetime.date.today()}: {machine()}. {version(str(smbscope))}, {version('tshark')}.",
        "",
        "`smbscope analyze --quiet FILE`, `tshark -q -z smb2,srt -r FILE` (`smb,srt` for netbench) and a walk through",
        "a memory map, which touches each record header and 80 bytes of each packet, take turns on generated captures",
        f"in the page cache: {rounds} runs (median), one of tshark. Memory is anonymous memory; mapped pages of the",
        "capture come on top, and the kernel takes them back. `bulk` copies large files over SMB 3.1.1, `office` is",
        "SMB 2.1 and 3.1.1, `netbench` SMB1, `site` many hosts with twelve connections each; a number is the snap",
        "length. `scripts/bench.py` has sizes and seeds.",
        "",
    ]
    text += disturbance(measured, load)
    if measured:
        text += [*summary(measured), "## Targets", "", *targets(measured)]
    if sizes or flows:
        text += ["## Scaling", "", *scaling([*sizes, *flows])]
    text += shares(measured)
    return "\n".join(text).rstrip() + "\n"

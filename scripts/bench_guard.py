"""Finds slowdowns, against the binary of an older commit and against the figures committed last.

Wall and CPU times from different days or machines can't be compared. So the older binary takes turns with the current
one on the same captures, and committed figures are compared by their ratio to the bare walk of the same run.
"""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench import Measured

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "docs" / "performance.json"
AGAINST = "smbscope of the older commit"
# Smallest slowdown to report: median ratio, confirmed in every round.
SLOWER = 1.03
# The ratio to the walk varies by about this much between runs of the same binary.
SLOWER_THAN_COMMITTED = 1.15


def commit(name: str) -> str:
    """Returns the full name of a commit. `release` means the last release; returns an empty string if there is none."""
    if name == "release":
        tags = run(["git", "tag", "--list", "v*", "--merged", "HEAD", "--sort=-v:refname"]).split()
        if not tags:
            return ""
        name = tags[0]
    return run(["git", "rev-parse", "--verify", f"{name}^{{commit}}"]).strip()


def run(command: Sequence[str], cwd: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"bench: {' '.join(command)} failed: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout


def build(name: str, scratch: Path) -> Path:
    """Builds the release binary of a commit next to the captures, and keeps it for later runs."""
    tree = scratch / f"tree-{name[:12]}"
    binary = tree / "target" / "release" / "smbscope"
    if not binary.exists():
        if not tree.exists():
            run(["git", "worktree", "prune"])
            run(["git", "worktree", "add", "--detach", str(tree), name])
        # In a separate target directory, so that the current binary is not overwritten.
        run(["cargo", "build", "--release", "--locked", "-p", "smbscope-cli", "--target-dir", "target"], cwd=tree)
    return binary


def ratio(now: Sequence[float], before: Sequence[float]) -> float:
    """Returns the median of the per-round ratios."""
    return statistics.median(new / old for new, old in zip(now, before, strict=True))


def got_slower(measured: Sequence[Measured]) -> list[str]:
    """Returns the captures on which the current binary takes more CPU time than the older one in every round."""
    slower = []
    for one in measured:
        now, before = one.runs["smbscope"].rounds, one.runs[AGAINST].rounds
        if ratio(now, before) >= SLOWER and all(new > old for new, old in zip(now, before, strict=True)):
            slower.append(one.case.name)
    return slower


def against(measured: Sequence[Measured], name: str) -> list[str]:
    """Returns the section that compares with the older commit."""
    ratios = []
    for one in measured:
        rounds = zip(one.runs["smbscope"].rounds, one.runs[AGAINST].rounds, strict=True)
        each = [new / old for new, old in rounds]
        ratios.append(f"{one.case.name} {statistics.median(each):.2f} ({min(each):.2f}–{max(each):.2f})")
    slower = got_slower(measured)
    verdict = f"Slower: {', '.join(slower)}." if slower else "Nothing got slower."
    text = "Processor time, as a ratio to that commit's (range of the rounds): "
    return [f"## Against {name[:12]}", "", f"{text}{', '.join(ratios)}. {verdict}", ""]


def figures(measured: Sequence[Measured]) -> dict[str, dict[str, float]]:
    """Returns the figures to commit with the page, which depend little on the machine."""
    return {
        one.case.name: {
            "times_the_walk": round(one.runs["smbscope"].wall / one.runs["bare walk"].wall, 2),
            "cpu_times_the_walk": round(one.runs["smbscope"].cpu / one.runs["bare walk"].cpu, 2),
            "anonymous_mb": round((one.runs["smbscope"].anonymous or 0) / 1e6, 1),
        }
        for one in measured
    }


def since_committed(measured: Sequence[Measured]) -> list[str]:
    """Returns one line per capture whose ratio to the walk has grown."""
    if not FIGURES.exists():
        return []
    known: dict[str, dict[str, float]] = json.loads(FIGURES.read_text(encoding="utf-8"))
    lines = []
    for name, now in figures(measured).items():
        before = known.get(name, {})
        for key, value in now.items():
            if key in before and value > before[key] * SLOWER_THAN_COMMITTED:
                lines.append(f"{name}: {key.replace('_', ' ')} was {before[key]:,.2f} and is {value:,.2f}")
    return lines


def keep(measured: Sequence[Measured]) -> None:
    """Saves the figures for later comparisons. Captures that were not measured keep theirs."""
    known = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    FIGURES.write_text(json.dumps(known | figures(measured), indent=2) + "\n", encoding="utf-8")

"""The page that load_figures.py writes: a table for each part, each with when and how it was measured.

What was not measured anew is kept as it is on the page.
"""

import datetime
import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

# Share of the processors that others may take on a machine that counts as quiet, and how long that is looked at.
QUIET = 0.05
LOOK_S = 2.0

HEAD = """\
# What the load generator does and costs

For whoever wants to know what the load generator can do: which dialects, signatures and ciphers it handles, what it
costs the client, and how it compares with smbtorture.

`make load-figures` wrote it. Client and server share the processors of one machine, so compare the rows of a table with
each other and with nothing else.

All rows of a table are measured in turns, several times each. A figure is the median, ± half of the range as a share of
it. Where that is more than 15%, noise decides, and only the range is shown. `≈` marks a figure whose range overlaps
that of the first row of its dialect or number of users: no difference was found.
"""


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    left = "|" + "|".join(["---"] + ["---:"] * (len(headings) - 1)) + "|"
    lines = ["| " + " | ".join(headings) + " |", left, *("| " + " | ".join(row) + " |" for row in rows)]
    return "\n".join(lines)


def busy() -> float:
    """The share of the processors that is in use now (proc(5), stat)."""

    def times() -> tuple[int, int]:
        fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
        return sum(fields[:8]), fields[3] + fields[4]

    total, idle = times()
    time.sleep(LOOK_S)
    total_then, idle_then = times()
    return 1 - (idle_then - idle) / max(total_then - total, 1)


def measured(length: str, *, others: float) -> str:
    """The line beneath a heading: when, on what, beside what, and how long each figure was measured. `others` is the
    share of the processors that was in use before."""
    said = subprocess.run(["smbd", "-V"], capture_output=True, text=True, check=False).stdout
    samba = said.strip().removeprefix("Version ").split("-")[0]
    system = f"{platform.system()} {platform.release().split('-')[0]}"
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    cores = os.cpu_count() or 1
    beside = "" if others <= QUIET else f", beside other work ({others:.0%} of the processors)"
    return f"Measured on {today}, on {cores} cores, {system}, Samba {samba}{beside}: {length}."


def sections(text: str) -> dict[str, str]:
    """What is below each heading of a page."""
    found: dict[str, str] = {}
    for section in f"\n{text}".split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        found[title.strip()] = body.strip("\n")
    return found


def page(before: str, titles: Sequence[str], anew: Mapping[str, str]) -> str:
    """The page as it was, with the sections that were measured anew; those in `titles` come first, in their order."""
    parts = sections(before) | dict(anew)
    order = [title for title in titles if title in parts] + [title for title in parts if title not in titles]
    return HEAD + "".join(f"\n## {title}\n\n{parts[title]}\n" for title in order)

"""The page that load_figures.py writes: a table for each part, each with when and how it was measured.

What was not measured anew is kept as it is on the page.
"""

import datetime
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence

HEAD = """\
# What the load generator does and costs

This page answers: does it work with every dialect, signature and cipher, what does it cost, and how does it
compare with smbtorture?

`make load-figures` wrote it. Client and server share the processors of one machine, so compare the rows of a table with
each other and with nothing else.
"""


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    left = "|" + "|".join(["---"] + ["---:"] * (len(headings) - 1)) + "|"
    lines = ["| " + " | ".join(headings) + " |", left, *("| " + " | ".join(row) + " |" for row in rows)]
    return "\n".join(lines)


def measured(length: str) -> str:
    """The line beneath a heading: when, on what, and how long each figure was measured."""
    said = subprocess.run(["smbd", "-V"], capture_output=True, text=True, check=False).stdout
    samba = said.strip().removeprefix("Version ").split("-")[0]
    system = f"{platform.system()} {platform.release().split('-')[0]}"
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return f"Measured on {today}, on {os.cpu_count()} cores, {system}, Samba {samba}: {length}."


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

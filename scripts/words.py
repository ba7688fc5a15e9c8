#!/usr/bin/env python3
"""Checks that comments and documentation use plain English.

Searches comments of Rust files, comments and texts of the HTML page, and the prose of Markdown pages, for phrases that
give away a translated sentence.
words-allowed.txt lists the files that still have some, with their number; a file with more than its number fails, so
new text has none. `--update` lowers the numbers after a clean-up and never raises one. A phrase that is right where it
is can be excused in EXCUSED, with the reason.
"""

import argparse
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = ROOT / "scripts" / "words-allowed.txt"

# A doc comment starts with a verb or a noun phrase.
OPENINGS = [
    r"what\b",
    r"how\b",
    r"whether\b",
    r"when\b",
    r"where\b",
    r"who(?:se|m)?\b",
    r"(?:which|why)\b",
    r"(?:until|since)\b",
    r"as (?:it|long|far|much|many|the)\b",
    r"(?:its?|they|their)\b",
    r"(?:that|those) (?:that|of|which|in|with)\b",
    r"of (?:an?|the|each|which|its|all|those)\b",
    r"the same(?:[,.]| (?:of|with|by|where|as|for|under|in|but|without)\b)",
]
PHRASES = [
    r"(?<!there )\b(?:is|are|was|were) no\b(?! (?:longer|more|reason|larger|other|such|fewer|less|need))",
    r"\bwhat (?:is|was|are|were)\b",
    r"\b(?:by|for|of|with|in|from|to|on|at) what\b",
    r"\bso (?:many|much|often|few|soon)\b(?! that| as)",
    r"\b(?:is|are|was|were) to (?!the\b|an?\b)[a-z]+\b",
    r"\b(?:that|those) of\b",
    r"\b(?:of|as|by) which\b",
    r"; (?:how|whether)\b",
    r"\b(?:told|tells?) (?:apart|from|of)\b",
    r"\b(?:given up|passed over|put off|taken away|takes away|the like)\b",
    r"\b(?:beside|behind|but for|in the place of|meanwhile|anew|likewise|of late)\b",
    r"\b(?:nobody|somebody|everybody|anybody|whoever)\b",
    r"\b(?:absent|null|none|zero|empty|nothing) where\b",
    r"\bwhere (?:there|it|that|they) (?:is|are|was|were)\b",
    r"\bthere (?:is|are) (?:none|one|any)\b",
    r"\b(?:again and again|over and over|now and then)\b",
]
ANYWHERE = re.compile("|".join(PHRASES), re.IGNORECASE)
AT_START = re.compile(rf"^(?:{'|'.join(OPENINGS)})", re.IGNORECASE)

# Part of a path or phrase: why it may stay.
EXCUSED = {
    ("web/src/types/", ""): "made from the schemas",
    ("docs/causes.md", ""): "made from the catalogue of causes",
    ("docs/accuracy.md", ""): "made by `make accuracy`",
    ("docs/performance.md", ""): "made by `make bench`",
}

RUST = re.compile(
    r"""(?P<doc>//[/!](?!/)[^\n]*)|(?P<comment>//[^\n]*)|r(?P<hashes>\#*)".*?"(?P=hashes)|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\\n])'""",
    re.DOTALL,
)


# Comments, and strings, which may be shown to a reader. A regular expression with a quote or a comment in it would need
# a real parser; there is none so far.
TYPESCRIPT = re.compile(
    r"""/\*(?P<doc>\*)?(?P<block>.*?)\*/|(?<!:)//(?P<line>[^\n]*)|(?P<text>"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`)""",
    re.DOTALL,
)
WEB = ["web/src/*.ts", "web/src/*.css", "web/tests/*.ts", "web/scripts/*.mjs", "web/*.ts", "web/index.html"]


class Hit(NamedTuple):
    """A phrase that should be rewritten."""

    path: str
    line: int
    phrase: str


def rust_hits(path: str, text: str) -> Iterator[Hit]:
    """Phrases in comments. A comment that starts a paragraph is checked for its opening, too."""
    previous_line = -1
    for token in RUST.finditer(text):
        comment = token["doc"] or token["comment"]
        if not comment:
            continue
        line = text.count("\n", 0, token.start()) + 1
        words = comment.lstrip("/!").strip()
        starts = token["doc"] is not None and line != previous_line + 1
        previous_line = line if words else -1
        if starts and (opening := AT_START.search(words)):
            yield Hit(path, line, opening[0])
        yield from (Hit(path, line, hit[0]) for hit in ANYWHERE.finditer(words))


def web_hits(path: str, text: str) -> Iterator[Hit]:
    """Phrases in comments and strings; a documentation comment is checked for its opening, too."""
    for token in TYPESCRIPT.finditer(text):
        first_line = text.count("\n", 0, token.start()) + 1
        if token["text"] is None:
            words = token["block"] if token["block"] is not None else token["line"]
            starts = token["doc"] is not None or (token["line"] is not None and first_line == 1)
            if starts and (opening := AT_START.search(words.lstrip(" *\n"))):
                yield Hit(path, first_line, opening[0])
        else:
            words = token["text"]
        for hit in ANYWHERE.finditer(words):
            yield Hit(path, first_line + words.count("\n", 0, hit.start()), hit[0])


def page_hits(path: str, text: str) -> Iterator[Hit]:
    """Phrases outside of code blocks."""
    prose = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE)
    for number, line in enumerate(prose.splitlines(), 1):
        yield from (Hit(path, number, hit[0]) for hit in ANYWHERE.finditer(line))


HITS = {".rs": rust_hits, ".md": page_hits}


def all_hits() -> list[Hit]:
    """Every phrase in files that git tracks."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.rs", "*.md", *WEB], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found: list[Hit] = []
    for path in filter(None, listed.stdout.split("\0")):
        file = ROOT / path
        if path == "CHANGELOG.md" or not file.is_file():
            continue
        text = file.read_text(encoding="utf-8")
        hits = HITS.get(file.suffix, web_hits)(path, text)
        found += (hit for hit in hits if not is_excused(hit))
    return found


def is_excused(hit: Hit) -> bool:
    return any(path in hit.path and phrase in hit.phrase for path, phrase in EXCUSED)


def allowed() -> dict[str, int]:
    """Number of phrases that each listed file may have."""
    numbers = {}
    for line in ALLOWED.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            number, path = line.split(" ", 1)
            numbers[path] = int(number)
    return numbers


def update(counts: Counter[str], numbers: dict[str, int] | None) -> None:
    """Writes the numbers of today, none above that of before; without numbers of before, all."""
    lines = ["# Phrases that scripts/words.py allows a file to have, until it is rewritten: number, path."]
    for path, count in sorted(counts.items()):
        number = count if numbers is None else min(count, numbers.get(path, 0))
        if number:
            lines.append(f"{number} {path}")
    ALLOWED.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="Check comments and pages for phrases that are not plain English.")
    parser.add_argument("--update", action="store_true", help="lower the allowed numbers to those of today")
    parser.add_argument("--list", action="store_true", help="list all phrases, allowed or not")
    options = parser.parse_args()
    hits = all_hits()
    counts = Counter(hit.path for hit in hits)
    if options.update:
        update(counts, allowed() if ALLOWED.exists() else None)
        return 0
    numbers = allowed()
    shown = [hit for hit in hits if options.list or counts[hit.path] > numbers.get(hit.path, 0)]
    for hit in shown:
        print(f"{hit.path}:{hit.line}: {hit.phrase}")
    wrong = [path for path, count in counts.items() if count > numbers.get(path, 0)]
    for path in wrong:
        print(
            f"{path}: {counts[path]} phrases that are not plain English, {numbers.get(path, 0)} allowed; rewrite yours"
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

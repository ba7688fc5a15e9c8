"""Reads the Markdown pages of the repository (headings, links, text) with a CommonMark parser."""

import re
import subprocess
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parent.parent
PATTERNS = ("*.md", "docs/**/*.md", "fuzz/*.md", "tests/data/*.md", "web/*.md")
# Command reference. It is generated from the program's help and not committed, so it can't become outdated.
COMMANDS = ROOT / "docs" / "commands.md"


@dataclass(frozen=True)
class Heading:
    level: int
    text: str
    anchor: str
    line: int


@dataclass(frozen=True)
class Link:
    target: str
    text: str
    line: int
    is_image: bool


@dataclass
class Page:
    path: Path
    tokens: list[Token]
    headings: list[Heading] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    # Text outside of code, with its line number.
    texts: list[tuple[int, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def title(self) -> str:
        return self.headings[0].text if self.headings else self.name


def parser() -> MarkdownIt:
    """Returns a CommonMark parser with tables. HTML is disabled and would appear as text."""
    return MarkdownIt("commonmark", {"html": False}).enable("table")


def load() -> dict[Path, Page]:
    """Returns all pages by path, in sorted order."""
    paths = {path for pattern in PATTERNS for path in ROOT.glob(pattern)}
    return {path: read(path, path.read_text(encoding="utf-8")) for path in sorted(paths)}


def command_reference(smbscope: Path) -> Page:
    """Builds a page from the help of every command."""
    text = [
        "# Command reference",
        "",
        "For anyone who knows what to do and looks for the option: every command with its options, as the program's",
        "own `--help` prints them.",
    ]
    for command in verbs(smbscope, []):
        text += ["", f"## {' '.join(['smbscope', *command])}", "", "```text", help_of(smbscope, command), "```"]
    return read(COMMANDS, "\n".join(text))


def verbs(smbscope: Path, command: list[str]) -> Iterator[list[str]]:
    """Yields the command and its subcommands, found in its help."""
    yield command
    listed = help_of(smbscope, command).partition("\nCommands:\n")[2].partition("\n\n")[0]
    for name in re.findall(r"^  (\w+) ", listed, re.M):
        if name != "help":
            yield from verbs(smbscope, [*command, name])


def help_of(smbscope: Path, command: list[str]) -> str:
    run = subprocess.run([smbscope, *command, "--help"], stdout=subprocess.PIPE, text=True, check=True)
    return run.stdout.rstrip()


def read(path: Path, text: str) -> Page:
    page = Page(path, parser().parse(text))
    anchors: Counter[str] = Counter()
    for token, following in zip(page.tokens, [*page.tokens[1:], None], strict=True):
        if token.type == "heading_open" and following is not None:
            title = plain(following)
            anchor = slug(title)
            number = anchors[anchor]
            anchors[anchor] += 1
            anchor = f"{anchor}-{number}" if number else anchor
            token.attrSet("id", anchor)
            page.headings.append(Heading(int(token.tag[1:]), title, anchor, line_of(token)))
        if token.type == "inline":
            page.links.extend(links(token))
            page.texts.extend((line_of(token), child.content) for child in token.children or [] if child.type == "text")
    return page


def links(inline: Token) -> Iterator[Link]:
    children = inline.children or []
    for place, child in enumerate(children):
        if child.type == "image":
            yield Link(str(child.attrs["src"]), child.content, line_of(inline), is_image=True)
        elif child.type == "link_open":
            label = "".join(part.content for part in children[place + 1 :])
            yield Link(str(child.attrs["href"]), label, line_of(inline), is_image=False)


def line_of(token: Token) -> int:
    return token.map[0] + 1 if token.map else 0


def plain(inline: Token) -> str:
    """Returns the text of a heading without markup."""
    return "".join(child.content for child in inline.children or [])


def slug(title: str) -> str:
    """Returns GitHub's anchor for a heading: lower case, no punctuation, dashes for spaces."""
    kept = (char for char in title.strip().lower() if char in "-_ " or unicodedata.category(char)[0] in "LN")
    return re.sub(r" ", "-", "".join(kept))

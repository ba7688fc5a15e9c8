#!/usr/bin/env python3
"""Checks the Markdown pages of the repository and builds them as HTML.

Rules: one title per page; in docs/, the intended readers below it ("For anyone who records traffic: …"); no skipped
heading levels; relative links to existing files and headings; alternative text for images; well-formed URLs (without
network access); and an index, docs/README.md, that links to every page of docs/. With --output, the pages are written
as HTML in the layout of the repository, and all links and images in the result must lead to existing files. With
--smbscope, the HTML includes a command reference generated from the program's help.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from docs_pages import COMMANDS, ROOT, Page, command_reference, load
from docs_site import LinkReader, build

SCHEMES = {"https", "http", "mailto"}
# Unparsed link or image syntax in text.
LEFTOVER = re.compile(r"\]\(|\]\[")


# Required start of a page's first paragraph.
READER = re.compile(r"For [^.:]+: \S")


def heading_problems(page: Page) -> Iterator[str]:
    levels = [heading.level for heading in page.headings]
    if levels[:1] != [1] or levels.count(1) != 1:
        yield f"{page.name}: wants one title, at the top; has {levels.count(1)}"
    for above, heading in zip(page.headings, page.headings[1:], strict=False):
        if heading.level > above.level + 1:
            yield f"{page.name}:{heading.line}: '{heading.text}' skips a level"


def reader_problem(page: Page) -> str | None:
    """Requires that a page of docs/ starts with its intended readers."""
    if page.path.parent != ROOT / "docs":
        return None
    # The title takes the first three tokens.
    kinds, text = [token.type for token in page.tokens[3:5]], page.tokens[4].content if len(page.tokens) > 4 else ""
    if kinds != ["paragraph_open", "inline"] or not READER.match(" ".join(text.split())):
        return f"{page.name}: the first paragraph wants to begin with who needs the page: 'For anyone who …: …'"
    return None


def link_problem(page: Page, target: str, pages: dict[Path, Page]) -> str | None:
    """Returns the problem with a link or image target, or None."""
    parts = urlsplit(target)
    if parts.scheme:
        if parts.scheme not in SCHEMES:
            return f"scheme {parts.scheme} is not one of {', '.join(sorted(SCHEMES))}"
        if parts.scheme != "mailto" and not re.fullmatch(r"[a-z0-9.-]+\.[a-z]{2,}(:\d+)?", parts.netloc, re.I):
            return "the address has no host"
        return None
    if parts.netloc or parts.path.startswith("/"):
        return "give a path relative to the page"
    path = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
    if not path.is_relative_to(ROOT):
        return "leads out of the repository"
    if parts.path and not path.is_file():
        return "there is no such file"
    if not parts.fragment:
        return None
    linked = pages.get(path)
    if linked is None:
        return "only pages have headings to link to"
    if parts.fragment not in {heading.anchor for heading in linked.headings}:
        return f"{linked.name} has no heading for #{parts.fragment}"
    return None


def problems(pages: dict[Path, Page]) -> Iterator[str]:
    for page in pages.values():
        yield from heading_problems(page)
        problem = reader_problem(page)
        if problem:
            yield problem
        for link in page.links:
            problem = link_problem(page, link.target, pages)
            if problem:
                yield f"{page.name}:{link.line}: {link.target}: {problem}"
            if link.is_image and not link.text.strip():
                yield f"{page.name}:{link.line}: {link.target}: a picture needs a text that says what it shows"
        for line, text in page.texts:
            if LEFTOVER.search(text):
                yield f"{page.name}:{line}: looks like a link that is not understood: {text.strip()[:60]}"
    index = pages.get(ROOT / "docs" / "README.md")
    if index is None:
        yield "docs/README.md is missing: it is the index"
        return
    reached = {(index.path.parent / urlsplit(link.target).path).resolve() for link in index.links}
    for page in pages.values():
        if page.path.parent == index.path.parent and page.path not in {index.path, COMMANDS, *reached}:
            yield f"{page.name}: docs/README.md does not link to it"


def site_problems(output: Path) -> Iterator[str]:
    """Yields broken links in the built pages."""
    readers: dict[Path, LinkReader] = {}
    for path in sorted(output.rglob("*.html")):
        readers[path.resolve()] = reader = LinkReader()
        reader.feed(path.read_text(encoding="utf-8"))
    for path, reader in readers.items():
        for target in reader.targets:
            parts = urlsplit(target)
            if parts.scheme:
                continue
            linked = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not linked.is_file():
                yield f"{path}: {target}: there is no such file"
            elif parts.fragment and linked in readers and parts.fragment not in readers[linked].ids:
                yield f"{path}: {target}: there is no such place"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("-o", "--output", type=Path, help="directory for the pages as HTML")
    parser.add_argument("--smbscope", type=Path, help="the program, for the command reference")
    options = parser.parse_args()
    pages = load()
    if options.smbscope:
        pages[COMMANDS] = command_reference(options.smbscope.resolve())
    found = list(problems(pages))
    if not found and options.output:
        build(pages, options.output)
        found = list(site_problems(options.output))
    for problem in found:
        print(f"check_docs: {problem}", file=sys.stderr)
    links = sum(len(page.links) for page in pages.values())
    print(f"check_docs: {len(pages)} pages, {links} links, {len(found)} problems")
    if options.output and not found:
        print(f"check_docs: open {options.output / 'index.html'}")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())

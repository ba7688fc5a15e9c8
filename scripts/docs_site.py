"""Writes the pages as HTML in one style, light and dark. The pages of docs/ form a book in the order of its index."""

import html
import os
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

from markdown_it.token import Token

from docs_pages import COMMANDS, ROOT, Page, parser

# Section of the index that contains the command reference.
REFERENCE_PART = "Part IV: reference"

STYLE = """
:root {
  color-scheme: light dark;
  --text: #1f2328; --ground: #ffffff; --soft: #f4f5f7; --line: #d4d8dd; --link: #0a58ca;
}
@media (prefers-color-scheme: dark) {
  :root { --text: #e3e6ea; --ground: #15181c; --soft: #20252b; --line: #3a4149; --link: #7db3ff; }
}
* { box-sizing: border-box; }
body { margin: 0; color: var(--text); background: var(--ground); font: 16px/1.6 system-ui, sans-serif; }
a { color: var(--link); }
.page { display: flex; flex-wrap: wrap; max-width: 76rem; margin: 0 auto; }
nav { flex: 1 1 12rem; padding: 2rem 1.5rem; font-size: .95rem; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li { margin: .3rem 0; }
nav a { text-decoration: none; }
nav a[aria-current] { font-weight: 600; color: inherit; }
nav h2 { font-size: inherit; margin: 1.2rem 0 .3rem; border: 0; }
nav.turn { display: flex; justify-content: space-between; gap: 1rem; margin-top: 3rem; padding: 1rem 0 0; }
nav.turn { border-top: 1px solid var(--line); }
nav.turn [rel=next] { margin-left: auto; text-align: right; }
main { flex: 4 1 30rem; min-width: 0; padding: 1rem 1.5rem 4rem; }
h1, h2, h3, h4 { line-height: 1.25; margin: 2em 0 .6em; }
h1 { margin-top: .8em; }
h2 { border-bottom: 1px solid var(--line); padding-bottom: .2em; }
pre, code { font: .875em/1.5 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
code { background: var(--soft); border-radius: 4px; padding: .1em .3em; }
pre { background: var(--soft); border-radius: 6px; padding: .8rem 1rem; overflow-x: auto; line-height: 1.35; }
pre code { padding: 0; background: none; font-size: inherit; line-height: inherit; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border: 1px solid var(--line); padding: .35rem .7rem; text-align: left; vertical-align: top; }
img { max-width: 100%; height: auto; }
blockquote { margin: 1em 0; padding-left: 1em; border-left: 4px solid var(--line); }
""".strip()

PAGE = """<!doctype html>
<html lang="en-GB">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<div class="page">
<nav aria-label="Pages">
{navigation}
</nav>
<main>
{content}{turn}</main>
</div>
</body>
</html>
"""


class LinkReader(HTMLParser):
    """Collects the link and image targets of a page, and its anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is not None and (tag, name) in {("a", "href"), ("img", "src")}:
                self.targets.append(value)
            elif value is not None and name == "id":
                self.ids.add(value)


def build(pages: dict[Path, Page], output: Path) -> None:
    """Empties the output directory, and writes the pages and the files that they link to."""
    if output.exists():
        shutil.rmtree(output)
    book = parts(pages)
    order = [page for _, chapters in book for page in chapters]
    copied: set[Path] = set()
    for page in pages.values():
        for token in page.tokens:
            for child in token.children or []:
                retarget(page, child, pages, copied)
        content = parser().renderer.render(page.tokens, parser().options, {})
        written = output / as_html(page.path).relative_to(ROOT)
        written.parent.mkdir(parents=True, exist_ok=True)
        title = page.title if "smbscope" in page.title else f"{page.title} – smbscope"
        written.write_text(
            PAGE.format(
                title=html.escape(title),
                style=STYLE,
                navigation="\n".join(entries(page, book)),
                content=content,
                turn=turn(page, order),
            ),
            encoding="utf-8",
        )
    for path in copied:
        copy = output / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    (output / "index.html").write_text(
        '<!doctype html><html lang="en-GB"><meta charset="utf-8"><title>smbscope</title>'
        '<meta http-equiv="refresh" content="0; url=docs/README.html"><a href="docs/README.html">smbscope</a></html>\n',
        encoding="utf-8",
    )


def parts(pages: dict[Path, Page]) -> list[tuple[str, list[Page]]]:
    """Returns the pages of docs/ in the order of their index: the index itself, then each section with its pages."""
    index = pages[ROOT / "docs" / "README.md"]
    book: list[tuple[str, list[Page]]] = [("", [index])]
    sections = [heading for heading in index.headings if heading.level == 2]
    for section, following in zip(sections, [*sections[1:], None], strict=True):
        chapters: list[Page] = []
        for link in index.links:
            page = pages.get((index.path.parent / urlsplit(link.target).path).resolve())
            is_here = section.line < link.line and (following is None or link.line < following.line)
            if is_here and page is not None and page.path.parent == index.path.parent and page not in chapters:
                chapters.append(page)
        if section.text == REFERENCE_PART and COMMANDS in pages:
            chapters.append(pages[COMMANDS])
        if chapters:
            book.append((section.text, chapters))
    return book


def entries(page: Page, book: list[tuple[str, list[Page]]]) -> list[str]:
    """Returns the navigation list for a page."""
    lines = []
    for part, chapters in book:
        lines += [f"<h2>{html.escape(part)}</h2>"] if part else []
        lines.append("<ul>")
        for other in chapters:
            current = ' aria-current="page"' if other is page else ""
            lines.append(f'<li><a href="{address(page, other)}"{current}>{html.escape(other.title)}</a></li>')
        lines.append("</ul>")
    return lines


def turn(page: Page, order: list[Page]) -> str:
    """Returns links to the previous and the next page of the book."""
    if page not in order:
        return ""
    place = order.index(page)
    previous = order[place - 1] if place else None
    following = order[place + 1] if place + 1 < len(order) else None
    links = ""
    if previous:
        links += f'<a rel="prev" href="{address(page, previous)}">← {html.escape(previous.title)}</a>'
    if following:
        links += f'<a rel="next" href="{address(page, following)}">{html.escape(following.title)} →</a>'
    return f'<nav class="turn" aria-label="Previous and next page">{links}</nav>\n'


def address(page: Page, other: Page) -> str:
    """Returns the relative link from a page to another, escaped as an attribute value."""
    return html.escape(os.path.relpath(as_html(other.path), page.path.parent))


def retarget(page: Page, token: Token, pages: dict[Path, Page], copied: set[Path]) -> None:
    """Redirects links between pages to the HTML files, and collects other linked files of the repository."""
    attribute = {"link_open": "href", "image": "src"}.get(token.type)
    if attribute is None:
        return
    target = str(token.attrs[attribute])
    parts = urlsplit(target)
    if parts.scheme or not parts.path:
        return
    path = (page.path.parent / parts.path).resolve()
    if path in pages:
        token.attrSet(
            attribute, re.sub(r"\.md$", ".html", parts.path) + (f"#{parts.fragment}" if parts.fragment else "")
        )
    else:
        copied.add(path)


def as_html(path: Path) -> Path:
    return path.with_suffix(".html")

"""What a notebook shows: the answer first, then the main tables. Text from captures is always escaped."""

from __future__ import annotations

import unicodedata

from smbscope._smbscope import Analysis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from smbscope._smbscope import Document, Table

# Tables to show, with their columns, as far as a document has them.
_TABLES: dict[str, tuple[str, ...]] = {
    "causes": ("title", "subject_client", "subject_server", "lost_ns_best", "share", "confidence"),
    "columns": ("name", "source", "runs", "quality"),
    "groups": (
        "group",
        "count",
        "response_time_p50",
        "response_time_mean",
        "response_time_p95",
        "response_time_p99",
        "response_time_max",
    ),
    "runs": (
        "users",
        "operations_per_second",
        "total_client_p50",
        "total_client_p95",
        "total_client_p99",
        "total_client_max",
    ),
    "predictions": ("change", "duration_ns_low", "duration_ns_best", "duration_ns_high", "saved_commands"),
    "variants": ("name", "baseline"),
    "results": ("measure", "unit", "users", "variant", "mean", "factor_ratio", "factor_interval", "verdict"),
}

# Categories of Unicode: control, format, line and paragraph separators.
_UNSEEN = ("Cc", "Cf", "Zl", "Zp")


def summary(document: Document) -> str:
    """Return a document as HTML: its answer, then tables of it."""
    more = "<p>All tables: <code>.tables</code>; the page: <code>smbscope.Page(…)</code></p>"
    return f"<div>{''.join([*_answer(document), *_tables(document), more])}</div>"


def _answer(document: Document) -> Iterator[str]:
    """Yield the headline, what to do, the evidence and the limits."""
    known = document.tables
    table = next((name for name in ("answer", "answers") if name in known), None)
    if table is None and (headline := document.to_dict().get("headline")):
        yield f"<p><strong>{_escaped(headline)}</strong></p>"
    for row in document.table(table).to_pylist() if table else []:
        yield f"<p><strong>{_escaped(row['headline'])}</strong></p>"
        yield from (f"<p>{_escaped(cause['advice'])}</p>" for cause in _causes(document, row)[:1])
        yield _bullets([*row["evidence"], *row["caveats"]])
    if isinstance(document, Analysis):
        yield _bullets(document.notes)


def _causes(document: Document, answer: dict[str, object]) -> list[dict[str, str]]:
    """Return the causes of an answer, worst first."""
    causes = answer.get("causes")
    return causes if isinstance(causes, list) else document.table("causes").to_pylist()


def _bullets(sentences: Iterable[str]) -> str:
    items = "".join(f"<li>{_escaped(sentence)}</li>" for sentence in sentences)
    return f"<ul>{items}</ul>" if items else ""


def _tables(document: Document) -> Iterator[str]:
    known = document.tables
    for name, columns in _TABLES.items():
        table = document.table(name) if name in known else None
        if table is not None and (shown := _shown(table, columns)):
            yield f"<p><code>{name}</code></p>{shown}"


def _shown(table: Table, columns: tuple[str, ...]) -> str:
    """Return those of the columns that a table has, or nothing if it has few of them, or no rows."""
    present = [column for column in columns if column in table.column_names]
    return table.to_html(columns=present) if len(table) and len(present) > 1 else ""


class Page:
    """The page of a document, with its charts, for the last line of a notebook's cell.

    It runs in a sandboxed frame, so its scripts can't reach the notebook.
    """

    def __init__(self, document: Document, *, height: str = "40em") -> None:
        self._html = document.to_html()
        self._height = height

    def _repr_html_(self) -> str:
        style = f"width:100%;height:{self._height};border:0"
        return f'<iframe sandbox="allow-scripts" style="{_quoted(style)}" srcdoc="{_quoted(self._html)}"></iframe>'


def _escaped(text: str) -> str:
    """Return text as HTML. Control and invisible characters, which a name may hold, become U+FFFD."""
    return _quoted("".join("\ufffd" if unicodedata.category(char) in _UNSEEN else char for char in text))


def _quoted(text: str) -> str:
    import html

    return html.escape(text)

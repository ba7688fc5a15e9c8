"""The native module. Its public part is exported by `smbscope`."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, final

from typing_extensions import disjoint_base

__all__ = [
    "Analysis",
    "ArgumentError",
    "Batches",
    "CaptureError",
    "Document",
    "Exchanges",
    "LimitError",
    "LoadHost",
    "RunError",
    "SmbscopeError",
    "Table",
    "__version__",
    "analyze",
    "divide",
    "follow",
    "main",
    "merge",
    "plan",
    "shared_sessions",
]

__version__: str

class SmbscopeError(Exception):
    """Base class of all exceptions of this package."""

class ArgumentError(SmbscopeError):
    """The request is invalid or impossible."""

class CaptureError(SmbscopeError):
    """A capture is unusable or contains no SMB."""

class RunError(SmbscopeError):
    """The command failed."""

class LimitError(RunError):
    """A limit in fail_if was exceeded."""

@final
class Table:
    """A table in memory, which other libraries import through Arrow's PyCapsule interface."""

    @property
    def column_names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def to_pylist(self) -> list[dict[str, Any]]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def _repr_html_(self) -> str: ...

@final
class Batches:
    """Iterator over the batches of the exchange table."""

    def __iter__(self) -> Batches: ...
    def __next__(self) -> Table: ...

@final
class Exchanges:
    """The exchange table of captures, read from them each time it is used."""

    def __iter__(self) -> Batches: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@disjoint_base
class Document:
    """A JSON document as written by the command line, with its tables."""

    def __new__(cls, json: str) -> Document: ...
    @property
    def tables(self) -> list[str]: ...
    def table(self, name: str) -> Table: ...
    def to_json(self) -> str: ...
    def to_dict(self) -> Any: ...
    def to_html(self) -> str: ...
    def save(self, path: str | PathLike[str]) -> None: ...
    def _repr_html_(self) -> str: ...

@final
class Analysis(Document):
    """The report of `smbscope analyze`, with its tables."""

    @property
    def commands(self) -> Table: ...
    @property
    def groups(self) -> Table: ...
    @property
    def files(self) -> Table: ...
    @property
    def clients(self) -> Table: ...
    @property
    def servers(self) -> Table: ...
    @property
    def shares(self) -> Table: ...
    @property
    def users(self) -> Table: ...
    @property
    def connections(self) -> Table: ...
    @property
    def episodes(self) -> Table: ...
    @property
    def answer(self) -> Table: ...
    @property
    def causes(self) -> Table: ...
    @property
    def quality(self) -> Table: ...
    @property
    def slowest(self) -> Table: ...
    @property
    def notes(self) -> list[str]: ...
    def exchanges(self) -> Exchanges: ...
    def to_text(self, *, width: int = 100, full: bool = False, top: int = 20) -> str: ...
    def to_html(self) -> str: ...
    def save(self, path: str | PathLike[str]) -> None: ...
    def _repr_html_(self) -> str: ...

def analyze(options: Mapping[str, Sequence[str]], files: Sequence[str]) -> Analysis: ...
def divide(options: Mapping[str, Sequence[str]], file: str, name: str, pieces: Sequence[str], times: str) -> bytes: ...
def plan(files: Sequence[bytes]) -> bytes: ...
def follow(
    options: Mapping[str, Sequence[str]],
    plan: bytes,
    files: Sequence[tuple[str, Sequence[str]]],
    exchanges: str | None,
    first_id: int,
) -> bytes: ...
def shared_sessions(parts: Sequence[bytes]) -> list[list[int]]: ...
def merge(
    options: Mapping[str, Sequence[str]],
    files: Sequence[str],
    plan: bytes,
    divided: Sequence[bytes],
    parts: Sequence[bytes],
    unread: Sequence[str],
) -> Analysis: ...

@final
class LoadHost:
    """Load generator of a host, which answers its driver's requests."""

    def __new__(cls) -> LoadHost: ...
    def answer(self, request: bytes) -> bytes: ...

def main(
    program: Sequence[str],
    arguments: Sequence[str],
    hosts: Callable[[str, int], Sequence[tuple[str, bool, Callable[[bytes], bytes]]]] | None = None,
) -> int: ...

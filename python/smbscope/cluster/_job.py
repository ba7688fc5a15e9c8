"""The job: divide each file, follow each part through all files, merge."""

from __future__ import annotations

import sys
import tempfile
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from smbscope import _command, _smbscope
from smbscope._smbscope import Analysis, ArgumentError, CaptureError, RunError

if TYPE_CHECKING:
    from smbscope._command import Path

    Several: TypeAlias = str | Sequence[str]

try:
    import ray

    from smbscope.cluster._store import Store, expand, fetched, size, within
except ImportError as missing:
    message = f"smbscope.cluster needs Ray and pyarrow ({missing}): pip install 'smbscope[ray]'"
    raise ImportError(message) from missing

Options: TypeAlias = dict[str, list[str]]
"""Options by name, each with its values as text."""

PARTS = 16
"""Parts that the pairs of hosts are divided into, unless it is said otherwise."""

TASK_MEMORY = 768 << 20
"""Bytes that a task is declared to take beside its budget for connection state, which is 512 MiB at most."""


@dataclass(frozen=True)
class Progress:
    """How far a job is."""

    files: int
    files_divided: int = 0
    parts: int = 0
    parts_followed: int = 0

    def __str__(self) -> str:
        return (
            f"divided {self.files_divided} of {self.files} files, followed {self.parts_followed} of {self.parts} parts"
        )


def analyze(
    files: Path | Iterable[Path],
    *,
    address: str | None = None,
    parts: int = PARTS,
    scratch: str | None = None,
    exchanges: str | None = None,
    task_memory: int = TASK_MEMORY,
    max_retries: int = 3,
    progress: Callable[[Progress], None] | None = None,
    # Options of `smbscope analyze`, written by `make keywords`.
    port: int | Sequence[int] = (),
    tunnel_port: Several = (),
    memory: int | None = None,
    keys: Path | Sequence[Path] = (),
    password_file: Path | Sequence[Path] = (),
    filter: str | None = None,  # noqa: A002 - the name of the command line
    interval: str | None = None,
    slow: str | None = None,
    no_findings: bool = False,
    thresholds: Path | None = None,
    beside: str | None = None,
    sides: str | Path | Sequence[str | Path] = (),
    title: str | None = None,
    # End of the options.
) -> Analysis:
    """Analyse captures on a Ray cluster; the report is that of one process, whatever they are divided into.

    Files are paths, URIs and patterns. Without an address, Ray is started on this machine, unless it runs already.
    `scratch` is a folder or URI that all hosts see, for pieces of about the size of the captures; on one host it may be
    left out. `exchanges` is a folder or URI for the exchange table, a Parquet file a part. A file that cannot be read
    is left out and named in the report's warnings. A task whose process dies is tried again `max_retries` times.
    """
    own = ["files", "address", "parts", "scratch", "exchanges", "task_memory", "max_retries", "progress", "own"]
    options = _command.given(_command.options(locals(), *own))
    if parts < 1:
        message = f"parts={parts}: there is at least one part"
        raise ArgumentError(message)
    names = expand(files)
    started = _connect(address)
    try:
        store = Store(within(scratch, f"smbscope-{uuid.uuid4().hex}") if scratch else _own_scratch())
        store.prepare()
        try:
            how = {"num_cpus": 1, "memory": task_memory, "max_retries": max_retries}
            return _Job(names, parts, options, store, exchanges, how, progress or _show).run()
        finally:
            store.remove()
    finally:
        if started:
            ray.shutdown()


def _connect(address: str | None) -> bool:
    """Use the Ray that runs, or start one; tells whether it is ours to end."""
    if ray.is_initialized():
        return False
    ray.init(address=address, include_dashboard=False if address is None else None, log_to_driver=False)
    return True


def _own_scratch() -> str:
    """A temporary folder, where all tasks run on this host."""
    hosts = {node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}  # type: ignore[no-untyped-call]
    if len(hosts) > 1:
        message = f"scratch: the cluster has {len(hosts)} hosts: name a folder or URI that all of them see"
        raise ArgumentError(message)
    return tempfile.mkdtemp(prefix="smbscope-")


def _show(progress: Progress) -> None:
    """Show how far a job is, on a terminal."""
    if sys.stderr.isatty():
        end = "\n" if progress.parts and progress.parts_followed == progress.parts else "\r"
        print(f"smbscope: {progress}", end=end, file=sys.stderr, flush=True)


def _piece(file: int, part: int) -> str:
    return f"{file:05}-{part:05}.piece"


def _times(file: int) -> str:
    return f"{file:05}.times"


def _divide(name: str, file: int, parts: int, options: Options, store: Store) -> tuple[bytes | None, str]:
    """What a file holds beside its pieces; or none, and why it cannot be read."""
    names = [*(_piece(file, part) for part in range(parts)), _times(file)]
    try:
        with fetched(name) as local, store.writing(names) as paths:
            return _smbscope.divide(options, str(local), name, [str(path) for path in paths[:-1]], str(paths[-1])), ""
    except CaptureError as error:
        return None, str(error)
    except FileNotFoundError as error:
        return None, f"cannot open {name}: {error.strerror or error}"


def _follow(
    plan: bytes, files: list[int], group: list[int], options: Options, store: Store, table: str | None
) -> bytes:
    """What is found about the pairs of hosts of some parts."""
    wanted = [name for file in files for name in [_times(file), *(_piece(file, part) for part in group)]]
    with store.reading(wanted) as paths:
        local = [str(path) for path in paths]
        each = len(group) + 1
        pieces = [(local[at], local[at + 1 : at + each]) for at in range(0, len(local), each)]
        # Ids are those of no other part.
        first_id = group[0] << 40
        if table is None:
            return _smbscope.follow(options, plan, pieces, None, first_id)
        with Store(table).writing([_table(group[0])]) as [path]:
            return _smbscope.follow(options, plan, pieces, str(path), first_id)


def _table(part: int) -> str:
    return f"part-{part:05}.parquet"


@dataclass
class _Job:
    names: list[str]
    parts: int
    options: Options
    store: Store
    exchanges: str | None
    how: dict[str, Any]
    tell: Callable[[Progress], None]

    def run(self) -> Analysis:
        self.progress = Progress(files=len(self.names), parts=self.parts)
        self.tell(self.progress)
        files, unread = self._divided()
        if not files:
            raise CaptureError(unread[0])
        if self.exchanges is not None:
            Store(self.exchanges).prepare()
        held = [part for _, part in files]
        plan = _smbscope.plan(held)
        followed = self._followed(plan, [file for file, _ in files])
        names = [self.names[file] for file, _ in files]
        return _smbscope.merge(self.options, names, (plan, held, followed), unread)

    def _divided(self) -> tuple[list[tuple[int, bytes]], list[str]]:
        """The files that can be read, with what they hold beside their pieces; and why others cannot."""
        divide = ray.remote(**self.how)(_divide)
        tasks = {
            divide.remote(name, file, self.parts, self.options, self.store): file
            for file, name in enumerate(self.names)
        }
        results = self._results(tasks, lambda done: replace(self.progress, files_divided=done))
        files = [(file, part) for file, (part, _) in sorted(results.items()) if part is not None]
        lost = [(self.names[file], why) for file, (part, why) in sorted(results.items()) if part is None]
        return files, [f"{why} ({size(name):,} bytes were left out)" for name, why in lost]

    def _followed(self, plan: bytes, files: list[int]) -> list[bytes]:
        follow = ray.remote(**self.how)(_follow)
        shared = ray.put(plan)

        def task(group: list[int]) -> Any:
            return follow.remote(shared, files, group, self.options, self.store, self.exchanges)

        tasks = {task([part]): part for part in range(self.parts)}
        results = self._results(tasks, lambda done: replace(self.progress, parts_followed=done))
        found = [results[part] for part in range(self.parts)]
        # Parts that share sessions are followed again, as one.
        groups = _smbscope.shared_sessions(found)
        together = {task(group): group[0] for group in groups if len(group) > 1}
        again = self._results(together, lambda _: self.progress)
        for group in groups:
            for part in group[1:]:
                if self.exchanges is not None:
                    Store(self.exchanges).discard(_table(part))
        return [again.get(group[0], found[group[0]]) for group in groups]

    def _results(self, tasks: dict[Any, int], told: Callable[[int], Progress]) -> dict[int, Any]:
        """The result of each task, as they come."""
        results: dict[int, Any] = {}
        waiting = list(tasks)
        while waiting:
            [done], waiting = ray.wait(waiting, num_returns=1)
            try:
                results[tasks[done]] = ray.get(done)
            except ray.exceptions.RayTaskError as error:
                raise error.as_instanceof_cause() from None  # type: ignore[no-untyped-call]
            except ray.exceptions.RayError as error:
                message = f"a task of the cluster failed: {error}"
                raise RunError(message) from error
            self.progress = told(len(results))
            self.tell(self.progress)
        return results

"""What users call. Options have the names of the command line's, with _ for -."""

from __future__ import annotations

from smbscope import _command, _smbscope
from smbscope._smbscope import Analysis, Document, Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    from smbscope._command import Path

    Several: TypeAlias = str | Sequence[str]


class Bench(Document):
    """What a run of `bench` measured: `smbscope.bench/1`."""

    @property
    def runs(self) -> Table:
        """A row a load point."""
        return self.table("runs")


class Comparison(Document):
    """Sides beside each other: `smbscope.compare/1`."""

    @property
    def answers(self) -> Table:
        """What is slower or faster, and how sure that is."""
        return self.table("answers")

    @property
    def groups(self) -> Table:
        """By operation group."""
        return self.table("groups")

    @property
    def commands(self) -> Table:
        """By command."""
        return self.table("commands")


class Prediction(Document):
    """What changes would make of the captured commands: `smbscope.prediction/1`."""

    @property
    def predictions(self) -> Table:
        """A row a change."""
        return self.table("predictions")

    @property
    def users(self) -> Table:
        """A row a number of users."""
        return self.table("users")


class Study(Document):
    """The runs of a study, and what came of them: `smbscope.study/1`."""

    @property
    def variants(self) -> Table:
        """What was compared."""
        return self.table("variants")

    @property
    def runs(self) -> Table:
        """A row a run."""
        return self.table("runs")

    @property
    def results(self) -> Table:
        """A row a measure of a variant, with its factor and interval."""
        return self.table("results")


# A run prints its document, and nothing else.
_PRINTED = {"format": "json", "quiet": True}


def analyze(
    paths: Path | Iterable[Path],
    *,
    # Options of `smbscope analyze`, written by `make keywords`.
    port: int | Sequence[int] = (),
    tunnel_port: Several = (),
    threads: int | None = None,
    memory: int | None = None,
    keys: Path | Sequence[Path] = (),
    password_file: Path | Sequence[Path] = (),
    filter: str | None = None,  # noqa: A002 - the name of the command line
    from_: str | None = None,
    to: str | None = None,
    episode: int | None = None,
    by: Several = (),
    sort: str | None = None,
    interval: str | None = None,
    slow: str | None = None,
    no_findings: bool = False,
    thresholds: Path | None = None,
    beside: str | None = None,
    sides: str | Path | Sequence[str | Path] = (),
    title: str | None = None,
    # End of the options.
) -> Analysis:
    """Analyse captures: the response time of every SMB command in them. Several captures are one, in time order.

    The options are those of `smbscope analyze`. Python's lock is released, and Ctrl-C ends it.

    >>> import smbscope
    >>> slow = smbscope.analyze(
    ...     "tests/data/demo-slow-server.pcap.zst", filter="command == CREATE and path ~ *.*", by="extension"
    ... )
    >>> for entry in slow.table("slices.entries").to_pylist():
    ...     print(entry["key_extension"], entry["count"])
    pptx 46
    txt 44
    """
    options = _command.options(locals(), "paths")
    return _smbscope.analyze(_command.given(options), _command.paths(paths))


def bench(
    target: str | None = None,
    *,
    password: str | None = None,
    # Options of `smbscope bench`, written by `make keywords`.
    dialect: str | None = None,
    signing: str | None = None,
    signing_algorithm: str | None = None,
    encryption: str | None = None,
    transport: str | None = None,
    login: str | None = None,
    password_file: Path | None = None,
    timeout: str | None = None,
    prepare_timeout: str | None = None,
    compound: bool = False,
    raw: bool = False,
    leases: bool = False,
    workload: str | Path | None = None,
    loadfile: Path | None = None,
    set: Mapping[str, object] | None = None,  # noqa: A002 - the name of the command line
    users: int | str | None = None,
    duration: str | None = None,
    warmup: str | None = None,
    rate: float | str | None = None,
    rate_per_user: float | str | None = None,
    rates: str | None = None,
    arrivals: str | None = None,
    think: str | None = None,
    find_capacity: str | None = None,
    no_prepare: bool = False,
    settle: str | None = None,
    sessions_per_user: int | None = None,
    connections_per_session: int | None = None,
    connect_rate: int | None = None,
    seed: int | None = None,
    busy_poll: bool = False,
    threads: int | None = None,
    operations: int | None = None,
    passes: int | None = None,
    stop_on_errors: int | None = None,
    max_errors: float | str | None = None,
    on_failure: str | None = None,
    cluster: str | None = None,
    slots: int | None = None,
    on_lost_host: str | None = None,
    capture: bool | str = False,
    keep_keys: bool = False,
    server_metrics: str | None = None,
    metrics: str | None = None,
    metrics_config: Path | None = None,
    storage_latency: str | None = None,
    storage_iops: int | None = None,
    storage_bandwidth: str | None = None,
    by: Several = (),
    output: Path | None = None,
    title: str | None = None,
    # End of the options.
) -> Bench:
    """Load a server with users of a workload, and measure the response time of every command.

    The target is `smb://[user@]host[:port]/share[/dir]`; without one, a private Samba server is started. The options
    are those of `smbscope bench`, which runs as a process of its own. A password never stands on a command line.
    """
    options = _command.options(locals(), "target", "password")
    given = [*_command.arguments(options | _PRINTED), *(["--", target] if target is not None else [])]
    return Bench(_command.run("bench", given, password=password))


def compare(
    *sides: Path | Sequence[Path],
    # Options of `smbscope compare`, written by `make keywords`.
    name: Several = (),
    by: Several = (),
    fail_if: Several = (),
    strict: bool = False,
    junit: Path | None = None,
    title: str | None = None,
    port: int | Sequence[int] = (),
    tunnel_port: Several = (),
    threads: int | None = None,
    memory: int | None = None,
    keys: Path | Sequence[Path] = (),
    password_file: Path | Sequence[Path] = (),
    # End of the options.
) -> Comparison:
    """Compare captures, saved reports, runs or studies; the first side is the base.

    A side is a path, or a list of the paths of its repetitions. The options are those of `smbscope compare`. Where a
    limit of `fail_if` is exceeded, LimitError is raised.

    >>> import smbscope
    >>> before, after = (f"tests/data/demo-{name}.pcap.zst" for name in ("before-scanner", "slow-server"))
    >>> comparison = smbscope.compare(before, after)
    >>> [side["name"] for side in comparison.table("columns").to_pylist()]
    ['demo-before-scanner', 'demo-slow-server']
    >>> smbscope.compare(before, after, fail_if="p95(Open/Close) > 2x", strict=True)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    smbscope.LimitError: p95(Open/Close) > 2x: demo-slow-server is 32.8 times demo-before-scanner...
    """
    options = _command.options(locals(), "sides")
    files = [_command.paths(side) for side in sides]
    given = _command.arguments(options | _PRINTED)
    if files:
        given.extend(["--", *files[0]])
    for side in files[1:]:
        # Where no side has repetitions, each file is a side.
        given.extend(side if all(len(side) == 1 for side in files) else ["vs", *side])
    return Comparison(_command.run("compare", given))


def predict(
    paths: Path | Iterable[Path],
    *,
    # Options of `smbscope predict`, written by `make keywords`.
    if_: Several = (),
    users: str | None = None,
    user_is: str | None = None,
    episode: int | None = None,
    prove: bool = False,
    target: str | None = None,
    target_password_file: Path | None = None,
    repetitions: int | None = None,
    filter: str | None = None,  # noqa: A002 - the name of the command line
    port: int | Sequence[int] = (),
    tunnel_port: Several = (),
    threads: int | None = None,
    memory: int | None = None,
    keys: Path | Sequence[Path] = (),
    password_file: Path | Sequence[Path] = (),
    # End of the options.
    password: str | None = None,
) -> Prediction:
    """Predict how long captured commands would take with a change, or with more users; `prove` replays them.

    The options are those of `smbscope predict`, which runs as a process of its own. The password is that of `target`.

    >>> import smbscope
    >>> far = smbscope.predict("tests/data/demo-smb311-office.pcap.zst", if_="rtt=20ms")
    >>> [row] = far.predictions.to_pylist()
    >>> row["duration_ns_low"] < row["duration_ns_best"] < row["duration_ns_high"]
    True
    """
    options = _command.options(locals(), "paths", "password")
    given = [*_command.arguments(options | _PRINTED), "--", *_command.paths(paths)]
    return Prediction(_command.run("predict", given, password=password))


def study(
    file: Path,
    *,
    # Options of `smbscope study`, written by `make keywords`.
    output: Path,
    quick: bool = False,
    target: Several = (),
    about: Several = (),
    repetitions: int | None = None,
    cluster: str | None = None,
    slots: int | None = None,
    allow_commands: bool = False,
    # End of the options.
    password: str | None = None,
) -> Study:
    """Run a study, or go on with one that was interrupted, and compare its variants.

    The options are those of `smbscope study`, which runs as a process of its own.
    """
    options = _command.options(locals(), "file", "password")
    given = [*_command.arguments(options | _PRINTED), "--", *_command.paths(file)]
    return Study(_command.run("study", given, password=password))

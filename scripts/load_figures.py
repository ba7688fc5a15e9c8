#!/usr/bin/env python3
"""Measures the load generator and writes docs/load.md: all combinations of dialect, signing and encryption; dbench's
client.txt in every dialect, and compared with smbtorture's bench.nbench; client cost of an operation; thousands of
sessions.

Everything runs on this machine: private Samba servers (`smbscope lab`) and a scripted server. The figures of a table
come from one run of this script and can only be compared with each other. Each figure is the median of several rounds,
in which all rows of a table take turns (load_rounds.py). `--budget 10m` sets the number and length of the rounds. The
page is written after each table; tables that are not measured again are kept.
"""

import argparse
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import load_page
from load_page import table
from load_rounds import (
    ROUNDS_MIN,
    ROUNDS_USUAL,
    BudgetError,
    Case,
    Column,
    Cost,
    Figures,
    duration,
    measure,
    plan,
    rows,
)

CLIENT_TXT = Path("/usr/share/dbench/client.txt")
DIALECTS = ["nt1", "2.0.2", "2.1", "3.0", "3.0.2", "3.1.1"]
# Encryption options by dialect: since 3.0, with a choice of ciphers since 3.1.1.
CIPHERS = {
    "3.0": ["required"],
    "3.0.2": ["required"],
    "3.1.1": ["aes-128-ccm", "aes-128-gcm", "aes-256-ccm", "aes-256-gcm"],
}
# Signing algorithm of dialects without a choice (MS-SMB 3.1.5.1, MS-SMB2 3.1.4.1).
SIGNATURES = {"nt1": "md5", "2.0.2": "hmac-sha256", "2.1": "hmac-sha256", "3.0": "aes-cmac", "3.0.2": "aes-cmac"}
# Warm-up of each measurement.
WARMUP = "500ms"
# Shortest comparison with smbtorture, which has its own warm-up.
SIDE_BY_SIDE_S = 10
# Duration of each measurement with many sessions.
MANY_S = 5
# Interval between two memory samples.
LOOK_S = 0.05
# Longest wait for a program to exit after a request.
PATIENCE_S = 30

Document = dict[str, Any]
BEGUN = time.monotonic()


class FiguresError(Exception):
    """A program failed or gave an unexpected result."""


@dataclass
class Tools:
    smbscope: str
    scripted: str


@dataclass
class Server:
    url: str
    port: int
    user: str
    password: str


@dataclass
class Asked:
    """Extent of the measurements."""

    seconds: int
    rounds: int
    loadfile: Path
    pass_users: list[int]


def say(what: str) -> None:
    """Prints the progress."""
    print(f"{time.monotonic() - BEGUN:6.0f} s  {what}", file=sys.stderr, flush=True)


@contextmanager
def running(command: Sequence[str], **how: Any) -> Iterator[subprocess.Popen[str]]:
    """Runs a program until the end of the block, even after an exception."""
    process = subprocess.Popen(command, text=True, **how)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


@contextmanager
def until_closed(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Runs a program that exits at the end of its standard input, which the kernel closes even if this process is
    killed. Only this process receives Ctrl-C; it then stops the others in order."""
    with running(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdin is not None
        try:
            yield process
        finally:
            process.stdin.close()
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                pass


@contextmanager
def samba(tools: Tools) -> Iterator[Server]:
    """Runs a private server. Its lab command exits at the end of standard input."""
    tell = 'printf "%s\\n" "$SMBSCOPE_LAB_URL" "$SMBSCOPE_LAB_PORT" "$SMBSCOPE_LAB_USER" "$SMBSCOPE_PASSWORD"; exec cat'
    with until_closed([tools.smbscope, "lab", "run", "--", "sh", "-c", tell]) as process:
        assert process.stdout is not None
        url, port, user, password = (process.stdout.readline().strip() for _ in range(4))
        if not password:
            raise FiguresError("the private server did not start")
        yield Server(url, int(port), user, password)


@contextmanager
def scripted(tools: Tools) -> Iterator[str]:
    """Runs a scripted server in a separate process and yields its URL."""
    with until_closed([tools.scripted]) as process:
        assert process.stdout is not None
        yield f"smb://{process.stdout.readline().strip()}/share"


def bench(tools: Tools, *arguments: str, password: str = "") -> Document:
    """Runs `bench` and returns its JSON document."""
    return measured(tools, *arguments, password=password)[0]


def measured(tools: Tools, *arguments: str, password: str = "", look: float | None = None) -> tuple[Document, int]:
    """Runs `bench` and returns its JSON document and its peak resident memory in KiB, sampled every `look` seconds
    (0 without)."""
    command = [tools.smbscope, "bench", "--quiet", "--format", "json", *arguments]
    environment = os.environ | {"SMBSCOPE_PASSWORD": password}
    most = 0
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        with running(command, stdout=out, stderr=errors, env=environment) as process:
            while process.poll() is None:
                try:
                    process.wait(look)
                except subprocess.TimeoutExpired:
                    most = max(most, peak_kib(process.pid))
        out.seek(0)
        errors.seek(0)
        if process.returncode != 0:
            raise FiguresError(f"{' '.join(command)}: {errors.read().strip()}")
        document: Document = json.loads(out.read())
        return document, most


def peak_kib(pid: int) -> int:
    """Returns the peak resident memory of a process (proc(5), status)."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        # The process has exited in the meantime.
        return 0
    return int(found[1]) if found else 0


def seconds_of(run: Document) -> float:
    """Returns the measured duration in seconds."""
    return float(run["duration_ns"]) / 1e9


def unexpected(run: Document) -> int:
    return sum(sum(operation["unexpected"].values()) for operation in run["workload_operations"])


def as_expected(run: Document) -> None:
    if unexpected(run) != 0:
        raise FiguresError(f"the server did not answer as expected: {run['errors']}")


def operations(run: Document) -> int:
    """Returns the number of workload operations, each of one or more commands."""
    return sum(int(operation["service_time"]["count"]) for operation in run["workload_operations"])


def matrix(tools: Tools, server: Server, asked: Asked) -> list[Case]:
    """All combinations of dialect, signing and encryption, with one user of open-read-close and of read."""

    def measure(dialect: str, protection: list[str]) -> Figures | None:
        figures: dict[str, float] = {}
        for workload, prefix in (("open-read-close", "open"), ("read", "read")):
            load = ["--workload", workload, "--users", "1", "--duration", f"{asked.seconds}s", "--warmup", WARMUP]
            try:
                document = bench(tools, *load, "--dialect", dialect, *protection, server.url, password=server.password)
            except FiguresError as error:
                # Older versions of Samba may lack some combinations.
                if "cannot connect" not in str(error):
                    raise
                say(str(error))
                return None
            run = document["runs"][0]
            as_expected(run)
            figures |= {f"{prefix}_{key}": value for key, value in rates(run).items()}
        return figures

    return [
        Case([dialect, protection], partial(measure, dialect, options), group=dialect)
        for dialect, protection, options in protections()
    ]


def protections() -> list[tuple[str, str, list[str]]]:
    """Dialect, signing algorithm or cipher, and options of each row. The first row of each dialect is unprotected."""
    kinds: list[tuple[str, str, list[str]]] = []
    for dialect in DIALECTS:
        kinds.append((dialect, "none", ["--signing", "off"]))
        if dialect == "3.1.1":
            for algorithm in ("hmac-sha256", "aes-cmac", "aes-gmac"):
                options = ["--signing", "required", "--signing-algorithm", algorithm]
                kinds.append((dialect, algorithm, options))
        else:
            kinds.append((dialect, SIGNATURES[dialect], ["--signing", "required"]))
        for cipher in CIPHERS.get(dialect, []):
            name = "aes-128-ccm" if cipher == "required" else cipher
            kinds.append((dialect, name, ["--encryption", cipher]))
    return kinds


def loadfile(tools: Tools, server: Server, asked: Asked) -> str:
    """Runs a whole pass of client.txt in every dialect and checks that the results are as the file expects. It runs
    only once, so no throughput is given."""
    total = 0
    wrong = []
    cases = [(dialect, users) for dialect in DIALECTS for users in asked.pass_users]
    for number, (dialect, users) in enumerate(cases, 1):
        say(f"loadfile {number}/{len(cases)}: {dialect}, users: {users}")
        load = ["--loadfile", str(asked.loadfile), "--users", str(users), "--passes", "1"]
        load += ["--duration", "3600s", "--warmup", "0s", "--dialect", dialect]
        run = bench(tools, *load, server.url, password=server.password)["runs"][0]
        total += operations(run)
        if unexpected(run):
            wrong.append(f"{dialect} with users {users}: {unexpected(run)}")
    users_of = " and ".join(str(users) for users in asked.pass_users)
    return passes(DIALECTS, users_of, total, wrong)


def passes(dialects: Sequence[str], users: str, total: int, wrong: Sequence[str]) -> str:
    """States the results of the passes, with the numbers of unexpected ones."""
    found = f"unexpected results: {', '.join(wrong)}" if wrong else "no unexpected result"
    return f"Dialects {', '.join(dialects)}, each with {users} users: {total:,} operations, {found}."


def side_by_side(tools: Tools, server: Server, asked: Asked) -> list[Case]:
    """smbtorture and smbscope with the same load file on the same server, in turns."""
    length = max(asked.seconds, SIDE_BY_SIDE_S)

    def measure(dialect: str, users: int) -> Figures:
        load = ["--loadfile", str(asked.loadfile), "--users", str(users), "--duration", f"{length}s", "--warmup", "2s"]
        run = bench(tools, *load, "--dialect", dialect, server.url, password=server.password)["runs"][0]
        as_expected(run)
        return rates(run)

    cases = []
    for users in (1, 8):
        torturing = partial(torture, server, asked.loadfile, users, length)
        cases.append(Case(["smbtorture bench.nbench, NT1", str(users)], torturing, group=str(users)))
        for dialect in ("nt1", "3.1.1"):
            labels = [f"smbscope bench, {dialect}", str(users)]
            cases.append(Case(labels, partial(measure, dialect, users), group=str(users)))
    return cases


def rates(run: Document) -> dict[str, float]:
    """Returns the figures of a run by column key."""
    count, seconds = operations(run), seconds_of(run)
    cpu = run["client_cpu"]
    figures = {
        "rate": count / seconds,
        "megabytes": (run["bytes_read"] + run["bytes_written"]) / 1e6 / seconds,
        "cpu": float(cpu["user_ns"] + cpu["system_ns"]) / 1000 / max(count, 1),
    }
    times = {"p50": run["workload_operations"][0]["service_time"]["p50"], "command_p95": run["total"]["client"]["p95"]}
    return figures | {key: value / 1000 for key, value in times.items() if value is not None}


def torture(server: Server, file: Path, users: int, seconds: int) -> Figures:
    """Runs smbtorture and returns its figures. Its latencies are too coarse to show."""
    host, share = server.url.removeprefix("smb://").split("@")[-1].split("/", 1)
    command = ["smbtorture", f"//{host.split(':')[0]}/{share}", "-p", str(server.port)]
    command += ["-U", f"{server.user}%{server.password}", f"--num-progs={users}", f"--loadfile={file}"]
    command += ["--option=client min protocol=NT1", "--option=client max protocol=NT1", "-t", str(seconds)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile("w+") as out:
        with running([*command, "bench.nbench"], stdout=out, stderr=subprocess.STDOUT) as process:
            process.wait()
        out.seek(0)
        said = out.read()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    throughput = re.findall(r"Throughput ([\d.]+) MB/sec", said)
    if not throughput:
        raise FiguresError(f"smbtorture did not run: {said[-800:]}")
    # smbtorture prints the average position of its clients in the file.
    lines = re.findall(r"^\s+\d+\s+(\d+)\s+[\d.]+ MB/sec", said, re.MULTILINE)
    counted = int(lines[-1]) * users if lines else 0
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    figures = {"megabytes": float(throughput[-1])}
    if counted:
        figures |= {"rate": counted / seconds, "cpu": cpu * 1e6 / counted}
    return figures


def costs(tools: Tools, server: Server, asked: Asked) -> list[Case]:
    """Client cost of open, read and close."""

    def measure(kind: str, dialect: str, users: int) -> Figures:
        load = ["--workload", "open-read-close", "--users", str(users), "--dialect", dialect, "--signing", "off"]
        load += ["--duration", f"{asked.seconds}s", "--warmup", WARMUP]
        if kind == "scripted":
            with scripted(tools) as url:
                run = bench(tools, *load, "--no-prepare", url)["runs"][0]
        else:
            run = bench(tools, *load, server.url, password=server.password)["runs"][0]
        as_expected(run)
        return rates(run)

    servers = [("scripted", "2.1"), ("scripted", "3.1.1"), ("Samba", "2.1")]
    return [
        Case([f"{kind}, {dialect}", str(users)], partial(measure, kind, dialect, users))
        for users in (1, 8, 64)
        for kind, dialect in servers
    ]


def many(tools: Tools, server: Server, asked: Asked) -> list[Case]:
    """Thousands of sessions in one process, and their memory."""
    load = ["--workload", "echo", "--duration", f"{MANY_S}s", "--warmup", "1s", "--rate", "500/s", "--dialect", "3.1.1"]

    def measure(kind: str, users: int) -> Figures:
        arguments = [*load, "--users", str(users), "--no-prepare"]
        if kind == "scripted":
            with scripted(tools) as url:
                document, memory = measured(tools, *arguments, "--connect-rate", "2000", url, look=LOOK_S)
        else:
            # Samba starts one process per session.
            arguments += ["--connect-rate", "50", server.url]
            document, memory = measured(tools, *arguments, password=server.password, look=LOOK_S)
        run = document["runs"][0]
        made = {"made": run["connects"]["count"], "failed": sum(run["failures"].values())}
        return rates(run) | made | {"memory": memory / 1024}

    kinds = [("scripted", 1), ("scripted", 1_000), ("scripted", 5_000), ("Samba", 1_000)]
    return [Case([kind, f"{users:,}"], partial(measure, kind, users)) for kind, users in kinds]


@dataclass(frozen=True)
class Part:
    """A table of the page that is measured in rounds."""

    title: str
    labels: list[str]
    columns: list[Column]
    cases: Callable[[Tools, Server, Asked], list[Case]]
    cost: Cost
    # Required programs and files.
    needs: tuple[str, ...] = ()

    def text(self, tools: Tools, server: Server, asked: Asked, name: str) -> str:
        cases = self.cases(tools, server, asked)
        measure(cases, asked.rounds, lambda what: say(f"{name} {what}"))
        headings = [*self.labels, *(column.heading for column in self.columns)]
        return table(headings, rows(cases, self.columns))

    def length(self, asked: Asked) -> str:
        seconds = max(asked.seconds, int(self.cost.least))
        return f"{asked.rounds} rounds of {seconds} s"


@dataclass(frozen=True)
class Check:
    """A part of the page with results but no timings, so it is produced only once."""

    title: str
    make: Callable[[Tools, Server, Asked], str]
    needs: tuple[str, ...] = ()

    def text(self, tools: Tools, server: Server, asked: Asked, _name: str) -> str:
        return self.make(tools, server, asked)

    def length(self, _asked: Asked) -> str:
        return "one pass per user"


RATE = Column("operations/s", "rate")
CPU = Column("client CPU µs an operation", "cpu", 1)
PARTS: dict[str, Part | Check] = {
    "costs": Part(
        "What open, read one byte, close costs the client",
        ["server", "users"],
        [RATE, CPU, Column("p50 µs", "p50")],
        costs,
        Cost(cases=9, beside=1.5),
    ),
    "side-by-side": Part(
        "Next to smbtorture, with dbench's client.txt",
        ["program", "users"],
        [RATE, Column("MB/s", "megabytes", 1), CPU],
        side_by_side,
        Cost(cases=6, beside=4, least=SIDE_BY_SIDE_S),
        ("smbtorture", "client.txt"),
    ),
    "matrix": Part(
        "Dialect, signing, encryption",
        ["dialect", "protection"],
        [
            Column("open-read-close/s", "open_rate"),
            Column("read MB/s", "read_megabytes"),
            Column("client CPU µs a read", "read_cpu"),
        ],
        matrix,
        # Each case takes two measurements.
        Cost(cases=2 * len(protections()), beside=1.2),
    ),
    "many": Part(
        "Thousands of sessions",
        ["server", "sessions"],
        [
            Column("made", "made"),
            Column("failed", "failed"),
            Column("p95 of an echo µs", "command_p95"),
            Column("resident MiB", "memory"),
        ],
        many,
        Cost(cases=4, beside=8, least=MANY_S),
    ),
    "loadfile": Check("A whole pass of dbench's client.txt", loadfile, ("client.txt",)),
}


def lacking(wanted: Sequence[str], asked: Asked) -> str | None:
    """Returns a message that lists missing programs and files of these parts, or None."""
    needs = {"smbd", *(need for name in wanted for need in PARTS[name].needs)}
    missing = sorted(tool for tool in needs - {"client.txt"} if shutil.which(tool) is None)
    if "client.txt" in needs and not asked.loadfile.is_file():
        missing.append(str(asked.loadfile))
    return f"{', '.join(missing)} missing: install samba, samba-testsuite and dbench" if missing else None


def end(signal_number: int, _frame: object) -> None:
    """Exits in order, so that all programs are stopped and no server is left."""
    raise SystemExit(128 + signal_number)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smbscope", default="target/release/smbscope")
    parser.add_argument("--scripted", default="target/release/examples/scripted_server")
    parser.add_argument("--seconds", type=int, default=5, help="length of each measurement")
    parser.add_argument("--rounds", type=int, default=ROUNDS_USUAL, help="how often each figure is measured")
    parser.add_argument(
        "--budget",
        type=duration,
        metavar="TIME",
        help="choose both so that it takes about this long: 10m, 1h; tables that are made once are left out",
    )
    parser.add_argument(
        "--parts", default=",".join(PARTS), help="which tables; the others stay as they are on the page"
    )
    parser.add_argument("--loadfile", type=Path, default=CLIENT_TXT, help="to try things out with a shorter one")
    parser.add_argument(
        "--pass-users", type=int, nargs="+", default=[1, 8], help="users who do a whole pass of client.txt"
    )
    parser.add_argument("-o", "--output", type=Path, help="the page; default: standard output")
    options = parser.parse_args()
    os.environ["PATH"] = f"{os.environ.get('PATH', '')}:/usr/sbin"
    asked = Asked(options.seconds, options.rounds, options.loadfile, options.pass_users)
    wanted = options.parts.split(",")
    if unknown := [name for name in wanted if name not in PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    if asked.rounds < ROUNDS_MIN:
        parser.error(f"fewer than {ROUNDS_MIN} rounds have no spread")
    if options.budget is not None:
        wanted = [name for name in wanted if isinstance(PARTS[name], Part)]
        try:
            chosen = plan(options.budget, [part.cost for part in map(PARTS.get, wanted) if isinstance(part, Part)])
        except BudgetError as error:
            parser.error(str(error))
        asked.seconds, asked.rounds = chosen.seconds, chosen.rounds
        say(f"{asked.rounds} rounds of {asked.seconds} s of {', '.join(wanted)}")
    if why := lacking(wanted, asked):
        raise SystemExit(why)
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGHUP, end)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 20_000)), hard))
    tools = Tools(options.smbscope, options.scripted)
    try:
        figures(tools, asked, [name for name in PARTS if name in wanted], options.output)
    except FiguresError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


def figures(tools: Tools, asked: Asked, wanted: Sequence[str], output: Path | None) -> None:
    """Measures, and writes the page after each table."""
    page = output.read_text(encoding="utf-8") if output and output.exists() else ""
    titles = [part.title for part in PARTS.values()]
    before = load_page.busy()
    if before > load_page.QUIET:
        say(f"this machine does other work ({before:.0%} of its processors): the page will say so")
    for name in wanted:
        part = PARTS[name]
        # Each part has its own server with an empty share.
        with samba(tools) as server:
            # The load of the machine before the measurement.
            made = load_page.measured(part.length(asked), others=before)
            text = f"{made}\n\n{part.text(tools, server, asked, name)}"
        page = load_page.page(page, titles, {part.title: text})
        if output:
            output.write_text(page, encoding="utf-8")
            say(f"{name}: written to {output}")
    if not output:
        sys.stdout.write(page)


if __name__ == "__main__":
    raise SystemExit(main())

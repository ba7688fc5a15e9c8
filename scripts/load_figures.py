#!/usr/bin/env python3
"""Measures the load generator, and writes docs/load.md: the matrix of dialects, signing and encryption; dbench's
client.txt on every dialect and next to smbtorture's bench.nbench; what an operation costs the client; thousands of
sessions.

Everything runs on this machine: private Samba servers (`smbscope lab`) and a server that answers by a script. Figures
of one table come from one run of this script, so that they can be compared with each other, and with nothing else.
The page is written after each table; tables that are not measured stay as they are on it.
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
from pathlib import Path
from typing import Any, TypeVar

import load_page
from load_page import table

CLIENT_TXT = Path("/usr/share/dbench/client.txt")
DIALECTS = ["nt1", "2.0.2", "2.1", "3.0", "3.0.2", "3.1.1"]
# What each dialect can: encryption since 3.0, a choice of ciphers and AES-GMAC since 3.1.1.
CIPHERS = {
    "3.0": ["required"],
    "3.0.2": ["required"],
    "3.1.1": ["aes-128-ccm", "aes-128-gcm", "aes-256-ccm", "aes-256-gcm"],
}
# Shortest comparison with smbtorture, which has a warm-up of its own.
SIDE_BY_SIDE_S = 10
# Each figure of many sessions.
MANY_S = 5
# How often memory is looked at.
LOOK_S = 0.05
# Longest wait for a program to end that was asked to.
PATIENCE_S = 30

Document = dict[str, Any]
Case = TypeVar("Case")
BEGUN = time.monotonic()


class FiguresError(Exception):
    """A program did not do what it was to do."""


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
    """How much is to be measured."""

    seconds: int
    loadfile: Path
    pass_users: list[int]


def say(what: str) -> None:
    """How far it is."""
    print(f"{time.monotonic() - BEGUN:6.0f} s  {what}", file=sys.stderr, flush=True)


def told(part: str, cases: Sequence[Case], words: Callable[[Case], str]) -> Iterator[Case]:
    """The cases one after the other, each said before it is measured."""
    for number, case in enumerate(cases, 1):
        say(f"{part} {number}/{len(cases)}: {words(case)}")
        yield case


@contextmanager
def running(command: Sequence[str], **how: Any) -> Iterator[subprocess.Popen[str]]:
    """A program that ends with the block, however that comes about."""
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
    """A program that ends when its standard input does: also where this one is killed, for the kernel closes it then.
    Ctrl-C reaches this program alone, which then ends the others in order."""
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
    """A private server. It ends with a command that waits for the end of its standard input."""
    tell = 'printf "%s\\n" "$SMBSCOPE_LAB_URL" "$SMBSCOPE_LAB_PORT" "$SMBSCOPE_LAB_USER" "$SMBSCOPE_PASSWORD"; exec cat'
    with until_closed([tools.smbscope, "lab", "run", "--", "sh", "-c", tell]) as process:
        assert process.stdout is not None
        url, port, user, password = (process.stdout.readline().strip() for _ in range(4))
        if not password:
            raise FiguresError("the private server did not start")
        yield Server(url, int(port), user, password)


@contextmanager
def scripted(tools: Tools) -> Iterator[str]:
    """The URL of a server that answers by a script, in a process of its own."""
    with until_closed([tools.scripted]) as process:
        assert process.stdout is not None
        yield f"smb://{process.stdout.readline().strip()}/share"


def bench(tools: Tools, *arguments: str, password: str = "") -> Document:
    """A run, as its document."""
    return measured(tools, *arguments, password=password)[0]


def measured(tools: Tools, *arguments: str, password: str = "", look: float | None = None) -> tuple[Document, int]:
    """A run, as its document, and the peak of its resident memory in KiB where that is looked at every so often."""
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
    """The peak of a process's resident memory (proc(5), status)."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        # It has ended in between.
        return 0
    return int(found[1]) if found else 0


def seconds_of(run: Document) -> float:
    """How long it was measured."""
    return float(run["duration_ns"]) / 1e9


def unexpected(run: Document) -> int:
    return sum(sum(operation["unexpected"].values()) for operation in run["workload_operations"])


def as_expected(run: Document) -> None:
    if unexpected(run) != 0:
        raise FiguresError(f"the server did not answer as expected: {run['errors']}")


def operations(run: Document) -> int:
    """Operations of the workload, each one command or several."""
    return sum(int(operation["service_time"]["count"]) for operation in run["workload_operations"])


def cpu_us(run: Document, count: int) -> float:
    cpu = run["client_cpu"]
    return float(cpu["user_ns"] + cpu["system_ns"]) / 1000 / max(count, 1)


def us(value: int | None) -> str:
    return "–" if value is None else f"{value / 1000:,.0f}"


def matrix(tools: Tools, server: Server, asked: Asked) -> str:
    """Dialect by signing by encryption, with one user of open-read-close."""
    kinds: list[tuple[str, list[str]]] = []
    for dialect in DIALECTS:
        kinds.append((dialect, ["--signing", "off"]))
        if dialect == "3.1.1":
            for algorithm in ("hmac-sha256", "aes-cmac", "aes-gmac"):
                kinds.append((dialect, ["--signing", "required", "--signing-algorithm", algorithm]))
        else:
            kinds.append((dialect, ["--signing", "required"]))
        kinds.extend((dialect, ["--encryption", cipher]) for cipher in CIPHERS.get(dialect, []))
    rows = []
    for dialect, protection in told("matrix", kinds, lambda kind: " ".join([kind[0], *kind[1]])):
        cells = []
        for workload in ("open-read-close", "read"):
            load = ["--workload", workload, "--users", "1", "--duration", f"{asked.seconds}s", "--warmup", "1s"]
            try:
                document = bench(tools, *load, "--dialect", dialect, *protection, server.url, password=server.password)
            except FiguresError as error:
                # An older Samba may not have all of them.
                if "cannot connect" not in str(error):
                    raise
                say(str(error))
                cells = [" ".join(protection[1::2]), "not on this server", *[""] * 7]
                break
            run, target = document["runs"][0], document["target"]
            count, seconds = operations(run), seconds_of(run)
            as_expected(run)
            if workload == "open-read-close":
                cells += [target["signing_algorithm"] or "none", target["cipher"] or "none"]
            else:
                cells.append(f"{run['bytes_read'] / 1e6 / seconds:,.0f}")
            time_of = run["workload_operations"][0]["service_time"]
            cells += [f"{count / seconds:,.0f}", us(time_of["p50"]), f"{cpu_us(run, count):.0f}"]
        rows.append([dialect, *cells])
    headings = [
        "dialect",
        "signing",
        "cipher",
        "open-read-close/s",
        "p50 µs",
        "client CPU µs",
        "read MB/s",
        "reads/s",
        "p50 µs",
    ]
    return table([*headings, "client CPU µs"], rows)


def loadfile(tools: Tools, server: Server, asked: Asked) -> str:
    """A whole pass of client.txt by so many users on every dialect."""
    rows = []
    cases = [(dialect, users) for dialect in DIALECTS for users in asked.pass_users]
    for dialect, users in told("loadfile", cases, lambda case: f"{case[0]}, users: {case[1]}"):
        load = ["--loadfile", str(asked.loadfile), "--users", str(users), "--passes", "1"]
        load += ["--duration", "3600s", "--warmup", "0s", "--dialect", dialect]
        run = bench(tools, *load, server.url, password=server.password)["runs"][0]
        count, seconds = operations(run), seconds_of(run)
        megabytes = (run["bytes_read"] + run["bytes_written"]) / 1e6
        figures = [f"{count:,}", str(unexpected(run)), f"{seconds:,.0f}", f"{count / seconds:,.0f}"]
        figures += [f"{megabytes / seconds:,.1f}", us(run["total"]["client"]["p50"]), us(run["total"]["client"]["p95"])]
        rows.append([dialect, str(users), *figures])
    headings = ["dialect", "users", "operations", "unexpected", "seconds", "operations/s", "MB/s", "p50 µs", "p95 µs"]
    return table(headings, rows)


def side_by_side(tools: Tools, server: Server, asked: Asked) -> str:
    """smbtorture and smbscope with the same file on the same server, in turns."""
    rows = []
    length = max(asked.seconds, SIDE_BY_SIDE_S)
    cases = [(program, users) for users in (1, 8) for program in ("smbtorture", "nt1", "3.1.1")]
    for program, users in told("side-by-side", cases, lambda case: f"{case[0]}, users: {case[1]}"):
        if program == "smbtorture":
            rows.append(["smbtorture bench.nbench, NT1", str(users), *torture(server, asked.loadfile, users, length)])
            continue
        load = ["--loadfile", str(asked.loadfile), "--users", str(users), "--duration", f"{length}s", "--warmup", "2s"]
        run = bench(tools, *load, "--dialect", program, server.url, password=server.password)["runs"][0]
        as_expected(run)
        count, seconds = operations(run), seconds_of(run)
        megabytes = (run["bytes_read"] + run["bytes_written"]) / 1e6 / seconds
        figures = [f"{count / seconds:,.0f}", f"{megabytes:.2f}", f"{cpu_us(run, count):.0f}"]
        rows.append([f"smbscope bench, {program}", str(users), *figures, us(run["total"]["client"]["p50"])])
    return table(
        ["program", "users", "operations/s", "MB/s", "client CPU µs an operation", "p50 of a command µs"], rows
    )


def torture(server: Server, file: Path, users: int, seconds: int) -> list[str]:
    """Figures of smbtorture."""
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
    # It prints how far its clients are in the file, on average.
    lines = re.findall(r"^\s+\d+\s+(\d+)\s+[\d.]+ MB/sec", said, re.MULTILINE)
    counted = int(lines[-1]) * users if lines else 0
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    each = f"{cpu * 1e6 / counted:.0f}" if counted else "not told"
    per_second = f"{counted / seconds:,.0f}" if counted else "not told"
    return [per_second, f"{float(throughput[-1]):.2f}", each, "0.00 (printed)"]


def costs(tools: Tools, server: Server, asked: Asked) -> str:
    """What open, read and close cost the client."""
    rows = []
    servers = [("scripted", "2.1"), ("scripted", "3.1.1"), ("Samba", "2.1")]
    cases = [(users, *which) for users in (1, 8, 64) for which in servers]
    for users, kind, dialect in told("costs", cases, lambda case: f"{case[1]}, {case[2]}, users: {case[0]}"):
        load = ["--workload", "open-read-close", "--users", str(users), "--dialect", dialect, "--signing", "off"]
        load += ["--duration", f"{asked.seconds}s", "--warmup", "1s"]
        if kind == "scripted":
            with scripted(tools) as url:
                run = bench(tools, *load, "--no-prepare", url)["runs"][0]
        else:
            run = bench(tools, *load, server.url, password=server.password)["runs"][0]
        rows.append([f"{kind}, {dialect}", str(users), *cost(run)])
    return table(
        ["server", "users", "operations/s", "client CPU µs an operation", "of it in user mode", "p50 µs"], rows
    )


def cost(run: Document) -> list[str]:
    as_expected(run)
    count = operations(run)
    user = float(run["client_cpu"]["user_ns"]) / 1000 / max(count, 1)
    p50 = run["workload_operations"][0]["service_time"]["p50"]
    return [f"{count / seconds_of(run):,.0f}", f"{cpu_us(run, count):.1f}", f"{user:.1f}", us(p50)]


def many(tools: Tools, server: Server, asked: Asked) -> str:
    """Thousands of sessions in one process, and the memory that they take."""
    rows = []
    load = ["--workload", "echo", "--duration", f"{MANY_S}s", "--warmup", "1s", "--rate", "500/s", "--dialect", "3.1.1"]
    base = 0
    cases = [("scripted", 1), ("scripted", 1_000), ("scripted", 5_000), ("Samba", 1_000)]
    for kind, users in told("many", cases, lambda case: f"{case[0]}, sessions: {case[1]:,}"):
        arguments = [*load, "--users", str(users), "--no-prepare"]
        if kind == "scripted":
            with scripted(tools) as url:
                document, memory = measured(tools, *arguments, "--connect-rate", "2000", url, look=LOOK_S)
        else:
            # Samba starts a process for each.
            arguments += ["--connect-rate", "50", server.url]
            document, memory = measured(tools, *arguments, password=server.password, look=LOOK_S)
        run = document["runs"][0]
        base = base or memory
        each = f"{(memory - base) / (users - 1):.1f}" if users > 1 else ""
        rows.append([kind, f"{users:,}", *sessions(run), f"{memory / 1024:,.0f}", each])
    return table(["server", "sessions", "made", "failed", "p95 of an echo µs", "resident MiB", "KiB a session"], rows)


def sessions(run: Document) -> list[str]:
    failed = sum(run["failures"].values())
    return [f"{run['connects']['count']:,}", str(failed), us(run["total"]["client"]["p95"])]


@dataclass(frozen=True)
class Part:
    """A table of the page."""

    title: str
    measure: Callable[[Tools, Server, Asked], str]
    # How long each figure was measured.
    length: Callable[[Asked], str]
    # Programs and files that it takes.
    needs: tuple[str, ...] = ()


def each_of(seconds: int) -> str:
    return f"each figure is of {seconds} s"


PARTS = {
    "costs": Part("What open, read one byte, close costs the client", costs, lambda asked: each_of(asked.seconds)),
    "side-by-side": Part(
        "Next to smbtorture, with dbench's client.txt",
        side_by_side,
        lambda asked: each_of(max(asked.seconds, SIDE_BY_SIDE_S)),
        ("smbtorture", "client.txt"),
    ),
    "matrix": Part("Dialect, signing, encryption", matrix, lambda asked: each_of(asked.seconds)),
    "many": Part("Thousands of sessions", many, lambda _: each_of(MANY_S)),
    "loadfile": Part(
        "A whole pass of dbench's client.txt",
        loadfile,
        lambda _: "each row is a whole pass of every user",
        ("client.txt",),
    ),
}


def lacking(wanted: Sequence[str], asked: Asked) -> str | None:
    """What is not there of what these parts take."""
    needs = {"smbd", *(need for name in wanted for need in PARTS[name].needs)}
    missing = sorted(tool for tool in needs - {"client.txt"} if shutil.which(tool) is None)
    if "client.txt" in needs and not asked.loadfile.is_file():
        missing.append(str(asked.loadfile))
    return f"{', '.join(missing)} missing: install samba, samba-testsuite and dbench" if missing else None


def end(signal_number: int, _frame: object) -> None:
    """Ends this program in order: what runs is ended, and no server is left behind."""
    raise SystemExit(128 + signal_number)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smbscope", default="target/release/smbscope")
    parser.add_argument("--scripted", default="target/release/examples/scripted_server")
    parser.add_argument("--seconds", type=int, default=5, help="length of each measurement")
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
    asked = Asked(options.seconds, options.loadfile, options.pass_users)
    wanted = options.parts.split(",")
    if unknown := [name for name in wanted if name not in PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
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
    for name in wanted:
        part = PARTS[name]
        # Each has a server of its own, whose share is empty.
        with samba(tools) as server:
            text = f"{load_page.measured(part.length(asked))}\n\n{part.measure(tools, server, asked)}"
        page = load_page.page(page, titles, {part.title: text})
        if output:
            output.write_text(page, encoding="utf-8")
            say(f"{name}: written to {output}")
    if not output:
        sys.stdout.write(page)


if __name__ == "__main__":
    raise SystemExit(main())

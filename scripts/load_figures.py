#!/usr/bin/env python3
"""Measures the load generator, and writes docs/load.md: the matrix of dialects, signing and encryption; dbench's
client.txt on every dialect and next to smbtorture's bench.nbench; what an operation costs the client; thousands of
sessions.

Everything runs on this machine: private Samba servers (`smbscope lab`) and a server that answers by a script. Figures
of one table come from one run of this script, so that they can be compared with each other, and with nothing else.
"""

import argparse
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CLIENT_TXT = Path("/usr/share/dbench/client.txt")
DIALECTS = ["nt1", "2.0.2", "2.1", "3.0", "3.0.2", "3.1.1"]
# What each dialect can: encryption since 3.0, a choice of ciphers and AES-GMAC since 3.1.1.
CIPHERS = {
    "3.0": ["required"],
    "3.0.2": ["required"],
    "3.1.1": ["aes-128-ccm", "aes-128-gcm", "aes-256-ccm", "aes-256-gcm"],
}

Document = dict[str, Any]


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


@contextmanager
def samba(tools: Tools) -> Iterator[Server]:
    """A private server with a state folder of its own."""
    with tempfile.TemporaryDirectory(prefix="smbscope-figures-") as state:
        command = [tools.smbscope, "lab", "up", "--state", state, "--format", "json"]
        told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        try:
            password = Path(told["password_file"]).read_text(encoding="utf-8").strip()
            yield Server(told["url"], told["port"], told["users"][0]["name"], password)
        finally:
            subprocess.run([tools.smbscope, "lab", "down", "--all", "--state", state], check=True, capture_output=True)


@contextmanager
def scripted(tools: Tools) -> Iterator[str]:
    """The URL of a server that answers by a script, in a process of its own."""
    process = subprocess.Popen([tools.scripted], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdin is not None
    try:
        yield f"smb://{process.stdout.readline().strip()}/share"
    finally:
        process.stdin.close()
        process.wait(10)


def bench(tools: Tools, *arguments: str, password: str = "") -> Document:
    """A run, as its document."""
    command = [tools.smbscope, "bench", "--quiet", "--format", "json", *arguments]
    environment = os.environ | {"SMBSCOPE_PASSWORD": password}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
    document: Document = json.loads(done.stdout)
    return document


def unexpected(run: Document) -> int:
    return sum(sum(operation["unexpected"].values()) for operation in run["workload_operations"])


def operations(run: Document) -> int:
    """Operations of the workload, each one command or several."""
    return sum(int(operation["service_time"]["count"]) for operation in run["workload_operations"])


def cpu_us(run: Document, count: int) -> float:
    cpu = run["client_cpu"]
    return float(cpu["user_ns"] + cpu["system_ns"]) / 1000 / max(count, 1)


def us(value: int | None) -> str:
    return "–" if value is None else f"{value / 1000:,.0f}"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    left = "|" + "|".join(["---"] + ["---:"] * (len(headings) - 1)) + "|"
    lines = ["| " + " | ".join(headings) + " |", left, *("| " + " | ".join(row) + " |" for row in rows)]
    return "\n".join(lines)


def matrix(tools: Tools, server: Server, seconds: int) -> str:
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
    for dialect, protection in kinds:
        row = []
        for workload in ("open-read-close", "read"):
            load = ["--workload", workload, "--users", "1", "--duration", f"{seconds}s", "--warmup", "1s"]
            try:
                document = bench(tools, *load, "--dialect", dialect, *protection, server.url, password=server.password)
            except SystemExit as error:
                # Samba may not have all of them.
                print(error, file=sys.stderr)
                row += ["not on this server", "", ""]
                continue
            run, target = document["runs"][0], document["target"]
            count = operations(run)
            assert unexpected(run) == 0, (dialect, protection, run["errors"])
            if workload == "open-read-close":
                row += [target["signing_algorithm"] or "none", target["cipher"] or "none"]
            else:
                row.append(f"{run['bytes_read'] / 1e6 / seconds:,.0f}")
            time_of = run["workload_operations"][0]["service_time"]
            row += [f"{count / seconds:,.0f}", us(time_of["p50"]), f"{cpu_us(run, count):.0f}"]
        rows.append([dialect, *row])
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


def loadfile(tools: Tools, server: Server, of: Sequence[int]) -> str:
    """A whole pass of client.txt by so many users on every dialect."""
    rows = []
    for dialect in DIALECTS:
        for users in of:
            begun = time.monotonic()
            load = ["--loadfile", str(CLIENT_TXT), "--users", str(users), "--passes", "1"]
            load += ["--duration", "3600s", "--warmup", "0s", "--dialect", dialect]
            run = bench(tools, *load, server.url, password=server.password)["runs"][0]
            count, seconds = operations(run), time.monotonic() - begun
            megabytes = (run["bytes_read"] + run["bytes_written"]) / 1e6
            print(
                f"client.txt {dialect} {users}: {count} in {seconds:.0f} s, {unexpected(run)} unexpected",
                file=sys.stderr,
            )
            figures = [f"{count:,}", str(unexpected(run)), f"{count / seconds:,.0f}", f"{megabytes / seconds:,.1f}"]
            rows.append(
                [dialect, str(users), *figures, us(run["total"]["client"]["p50"]), us(run["total"]["client"]["p95"])]
            )
    return table(["dialect", "users", "operations", "unexpected", "operations/s", "MB/s", "p50 µs", "p95 µs"], rows)


def side_by_side(tools: Tools, server: Server, seconds: int) -> str:
    """smbtorture and smbscope with the same file on the same server, in turns."""
    rows = []
    folder = server.url.replace("smb://", "").split("@")[-1]
    share = f"//{folder.split(':')[0]}/{folder.split('/')[-1]}"
    for users in (1, 8):
        torture = ["smbtorture", share, "-p", str(server.port), "-U", f"{server.user}%{server.password}"]
        torture += ["--option=client min protocol=NT1", "--option=client max protocol=NT1", f"--num-progs={users}"]
        torture += [f"--loadfile={CLIENT_TXT}", "-t", str(seconds), "bench.nbench"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(torture, capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        said = done.stdout + done.stderr
        throughput = re.findall(r"Throughput ([\d.]+) MB/sec", said)
        # It prints how far its clients are in the file, on average.
        lines = re.findall(r"^\s+\d+\s+(\d+)\s+[\d.]+ MB/sec", said, re.MULTILINE)
        counted = int(lines[-1]) * users if lines else 0
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if not throughput:
            raise SystemExit(f"smbtorture did not run: {said[-800:]}")
        each = f"{cpu * 1e6 / counted:.0f}" if counted else "not told"
        per_second = f"{counted / seconds:,.0f}" if counted else "not told"
        rows.append(["smbtorture bench.nbench, NT1", str(users), per_second, throughput[-1], each, "0.00 (printed)"])
        for dialect in ("nt1", "3.1.1"):
            load = ["--loadfile", str(CLIENT_TXT), "--users", str(users), "--duration", f"{seconds}s", "--warmup", "2s"]
            run = bench(tools, *load, "--dialect", dialect, server.url, password=server.password)["runs"][0]
            assert unexpected(run) == 0, run["errors"]
            count = operations(run)
            megabytes = (run["bytes_read"] + run["bytes_written"]) / 1e6 / seconds
            figures = [f"{count / seconds:,.0f}", f"{megabytes:.2f}", f"{cpu_us(run, count):.0f}"]
            rows.append([f"smbscope bench, {dialect}", str(users), *figures, us(run["total"]["client"]["p50"])])
    return table(
        ["program", "users", "operations/s", "MB/s", "client CPU µs an operation", "p50 of a command µs"], rows
    )


def costs(tools: Tools, server: Server, seconds: int) -> str:
    """What open, read and close cost the client."""
    rows = []
    for users in ("1", "8", "64"):
        load = ["--workload", "open-read-close", "--users", users, "--duration", f"{seconds}s", "--warmup", "1s"]
        for dialect in ("2.1", "3.1.1"):
            with scripted(tools) as url:
                run = bench(tools, *load, "--dialect", dialect, "--signing", "off", "--no-prepare", url)["runs"][0]
            row = [f"scripted, {dialect}"]
            rows.append([*row, users, *cost(run, seconds)])
        run = bench(tools, *load, "--dialect", "2.1", "--signing", "off", server.url, password=server.password)["runs"][
            0
        ]
        rows.append(["Samba, 2.1", users, *cost(run, seconds)])
    return table(
        ["server", "users", "operations/s", "client CPU µs an operation", "of it in user mode", "p50 µs"], rows
    )


def cost(run: Document, seconds: int) -> list[str]:
    assert unexpected(run) == 0, run["errors"]
    count = operations(run)
    user = float(run["client_cpu"]["user_ns"]) / 1000 / max(count, 1)
    p50 = run["workload_operations"][0]["service_time"]["p50"]
    return [f"{count / seconds:,.0f}", f"{cpu_us(run, count):.1f}", f"{user:.1f}", us(p50)]


def many(tools: Tools, server: Server) -> str:
    """Thousands of sessions in one process, and the memory that they take."""
    rows = []
    load = ["--workload", "echo", "--duration", "5s", "--warmup", "1s", "--rate", "500/s", "--dialect", "3.1.1"]
    with scripted(tools) as url:
        base = peak(tools, *load, "--no-prepare", "--users", "1", url)
        for users in (1000, 5000):
            run, memory = peak(tools, *load, "--no-prepare", "--connect-rate", "2000", "--users", str(users), url)
            rows.append(
                ["scripted", f"{users:,}", *sessions(run), f"{memory / 1024:,.0f}", f"{(memory - base[1]) / users:.1f}"]
            )
    run, memory = peak(tools, *load, "--connect-rate", "50", "--users", "1000", server.url, password=server.password)
    rows.append(["Samba", "1,000", *sessions(run), f"{memory / 1024:,.0f}", f"{(memory - base[1]) / 1000:.1f}"])
    return table(["server", "sessions", "made", "failed", "p95 of an echo µs", "resident MiB", "KiB a session"], rows)


def sessions(run: Document) -> list[str]:
    failed = sum(run["failures"].values())
    return [f"{run['connects']['count']:,}", str(failed), us(run["total"]["client"]["p95"])]


def peak(tools: Tools, *arguments: str, password: str = "") -> tuple[Document, int]:
    """A run, and the peak of its resident memory in KiB."""
    command = [tools.smbscope, "bench", "--quiet", "--format", "json", *arguments]
    environment = os.environ | {"SMBSCOPE_PASSWORD": password}
    with tempfile.TemporaryFile("w+") as out:
        child = subprocess.Popen(command, stdout=out, env=environment)
        most = 0
        while child.poll() is None:
            status = Path(f"/proc/{child.pid}/status")
            found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
            most = max(most, int(found[1]) if found else 0)
            time.sleep(0.05)
        out.seek(0)
        return json.loads(out.read())["runs"][0], most


def page(parts: dict[str, str], seconds: int) -> str:
    version = subprocess.run(["smbd", "-V"], capture_output=True, text=True, check=False).stdout.strip()
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, {version or 'Samba'}"
    lines = [
        "# What the load generator does and costs",
        "",
        "This page answers: does it work with every dialect, signature and cipher, what does it cost, and how does it",
        "compare with smbtorture?",
        "",
        f"`make load-figures` wrote it, on {machine}; client and server share the processors, so compare the rows of a",
        f"table with each other and with nothing else. Each figure is of {seconds} s.",
    ]
    for title, text in parts.items():
        lines += ["", f"## {title}", "", text]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smbscope", default="target/release/smbscope")
    parser.add_argument("--scripted", default="target/release/examples/scripted_server")
    parser.add_argument("--seconds", type=int, default=5, help="length of each measurement")
    parser.add_argument("--parts", default="matrix,loadfile,side-by-side,costs,many", help="which tables")
    parser.add_argument(
        "--pass-users", type=int, nargs="+", default=[1, 8], help="users who do a whole pass of client.txt"
    )
    parser.add_argument("-o", "--output", type=Path, help="default: standard output")
    options = parser.parse_args()
    for tool in ("smbd", "smbtorture"):
        if shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None:
            raise SystemExit(f"{tool} is missing: install samba, samba-testsuite and dbench")
    os.environ["PATH"] = f"{os.environ.get('PATH', '')}:/usr/sbin"
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 20_000)), hard))
    tools = Tools(options.smbscope, options.scripted)
    wanted = options.parts.split(",")
    seconds: int = options.seconds
    parts = {}
    with samba(tools) as server:
        if "costs" in wanted:
            parts["What open, read one byte, close costs the client"] = costs(tools, server, seconds)
        if "matrix" in wanted:
            parts["Dialect, signing, encryption"] = matrix(tools, server, seconds)
        if "side-by-side" in wanted:
            parts["Next to smbtorture, with dbench's client.txt"] = side_by_side(tools, server, max(seconds, 10))
        if "many" in wanted:
            parts["Thousands of sessions"] = many(tools, server)
        if "loadfile" in wanted:
            parts["A whole pass of dbench's client.txt"] = loadfile(tools, server, options.pass_users)
    text = page(parts, seconds)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

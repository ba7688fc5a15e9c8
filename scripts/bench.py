#!/usr/bin/env python3
"""Speed and memory of `smbscope analyze` on about 1 GB, next to tshark on the same file.

    scripts/bench.py --smbscope target/release/smbscope --scratch target/bench -o docs/performance.md

The big capture is made from the bundled ones: each round repeats them with later timestamps and other addresses, so
that every round is new connections. What is measured: wall time, processor time, the largest resident set (as the
kernel counts it for the process), bytes and packets a second. The file is read once before, so that both programs
find it in the page cache.
"""

import argparse
import datetime
import os
import platform
import statistics
import struct
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import truth

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("tests/data/demo-smb1-netbench.pcap.zst", "tests/data/demo-smb311-office.pcap.zst")
GLOBAL_HEADER = 24
RECORD_HEADER = 16
ETHERNET = 14


@dataclass(slots=True)
class Source:
    """A capture that is repeated: its records in one buffer that is patched in place for each round."""

    data: bytearray
    records: list[tuple[int, int]]
    """Offset and time in microseconds of each record."""
    begin: int
    end: int


@dataclass(slots=True)
class Result:
    """One run of a program."""

    wall: float
    cpu: float
    peak_rss: int


def load(path: Path) -> Source:
    data = bytearray(truth.contents(path))
    if data[:4] != b"\xd4\xc3\xb2\xa1" or struct.unpack_from("<I", data, 20)[0] != 1:
        raise SystemExit(f"bench: {path.name} is not a little-endian microsecond pcap of Ethernet frames")
    records = []
    offset = GLOBAL_HEADER
    while offset < len(data):
        seconds, fraction, captured, _ = struct.unpack_from("<IIII", data, offset)
        records.append((offset, seconds * 1_000_000 + fraction))
        offset += RECORD_HEADER + captured
    times = [time_us for _, time_us in records]
    return Source(data, records, min(times), max(times))


def patch(source: Source, shift_us: int, network: int) -> None:
    """Moves every record to a later time and to addresses 10.99.<network>.x."""
    data = source.data
    for offset, time_us in source.records:
        seconds, fraction = divmod(time_us + shift_us, 1_000_000)
        struct.pack_into("<II", data, offset, seconds, fraction)
        ip = offset + RECORD_HEADER + ETHERNET
        if data[ip - 2 : ip] != b"\x08\x00":
            continue
        data[ip + 14] = data[ip + 18] = network
        data[ip + 10 : ip + 12] = b"\0\0"
        words = sum(struct.unpack_from(">10H", data, ip))
        words = (words & 0xFFFF) + (words >> 16)
        struct.pack_into(">H", data, ip + 10, ~(words + (words >> 16)) & 0xFFFF)


def build(path: Path, size: int) -> int:
    """Writes the big capture; returns its number of packets."""
    sources = [load(ROOT / name) for name in SOURCES]
    header = bytes(sources[0].data[:GLOBAL_HEADER])
    packets = 0
    clock = 1_700_000_000_000_000
    network = 0
    with path.open("wb") as file:
        file.write(header)
        while file.tell() < size and network < 250:
            for source in sources:
                network += 1
                patch(source, clock - source.begin, network)
                file.write(memoryview(source.data)[GLOBAL_HEADER:])
                packets += len(source.records)
                clock += source.end - source.begin + 100_000
    return packets


def measure(command: list[str]) -> Result:
    """Wall time, processor time and peak resident set of one run."""
    begin = time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as child:
        error = child.stderr.read() if child.stderr else b""
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - begin
    if child.returncode:
        raise SystemExit(f"bench: {command[0]} failed: {error.decode(errors='replace').strip()}")
    return Result(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def median(results: list[Result]) -> Result:
    return Result(
        statistics.median(result.wall for result in results),
        statistics.median(result.cpu for result in results),
        max(result.peak_rss for result in results),
    )


def machine() -> str:
    model = platform.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB of memory, {platform.system()} {platform.release()}"


def version(program: str) -> str:
    lines = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.splitlines()
    return lines[0].rstrip(".") if lines else program


def table_row(name: str, result: Result, size: int, packets: int) -> str:
    return (
        f"| {name} | {result.wall:.2f} s | {result.cpu:.2f} s | {result.peak_rss / 2**20:,.0f} MiB | "
        f"{size / 1e6 / result.wall:,.0f} | {packets / result.wall:,.0f} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smbscope", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True, help="directory for the big capture")
    parser.add_argument("--size", type=int, default=1000, help="megabytes (default: 1000)")
    parser.add_argument("--runs", type=int, default=3, help="runs of smbscope; tshark runs once (default: 3)")
    parser.add_argument("--without-tshark", action="store_true")
    parser.add_argument("-o", "--output", type=Path, help="default: standard output")
    options = parser.parse_args()

    options.scratch.mkdir(parents=True, exist_ok=True)
    capture: Path = options.scratch / f"bench-{options.size}.pcap"
    print(f"bench: writing {capture}", file=sys.stderr)
    # In a process of its own: a child's peak resident set starts at that of the process that forks it.
    with ProcessPoolExecutor(1) as pool:
        packets = pool.submit(build, capture, options.size * 1_000_000).result()
    size = capture.stat().st_size
    with capture.open("rb") as file:
        while file.read(1 << 24):
            pass

    print("bench: smbscope", file=sys.stderr)
    ours_command = [str(options.smbscope), "analyze", str(capture)]
    ours = median([measure(ours_command) for _ in range(options.runs)])
    rows = [table_row("smbscope analyze", ours, size, packets)]
    text = ["# Performance", "", "Generated by `make bench`; do not edit.", ""]
    text.append(f"Measured on {datetime.date.today()}: {machine()}.")
    text.append(
        f"The file: {size / 1e6:,.0f} MB, {packets:,} packets with full payload, in the page cache: the bundled"
    )
    text.append("captures (SMB1 NetBench mix, SMB 3.1.1 office mix) repeated with later times and other addresses.")
    text += ["", "```", "smbscope analyze FILE"]
    versions = version(str(options.smbscope))
    ratio = ""
    if not options.without_tshark:
        print("bench: tshark", file=sys.stderr)
        theirs = measure(["tshark", "-q", "-z", "smb2,srt", "-z", "smb,srt", "-r", str(capture)])
        rows.append(table_row("tshark", theirs, size, packets))
        text.append("tshark -q -z smb2,srt -z smb,srt -r FILE")
        versions += f", {version('tshark')}"
        ratio = (
            f"smbscope took 1/{theirs.wall / ours.wall:,.0f} of tshark's time, 1/{theirs.cpu / ours.cpu:,.0f} of its "
            f"processor time and 1/{theirs.peak_rss / ours.peak_rss:,.1f} of its memory."
        )
    text += ["```", "", f"Versions: {versions}. smbscope: median of {options.runs} runs; tshark: one run.", ""]
    text += ["Peak memory includes mapped parts of the file, and cannot be told apart below about 35 MiB.", ""]
    text += ["| program | time | processor time | peak memory | MB/s | packets/s |", "|---|---:|---:|---:|---:|---:|"]
    text += [*rows, "", ratio, ""]
    page = "\n".join(text).rstrip() + "\n"
    print(page)
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(page, encoding="utf-8")
    capture.unlink()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

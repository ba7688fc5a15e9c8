#!/usr/bin/env python3
"""Measures up to which rate `smbscope watch` and tcpdump capture every packet, and the CPU time of both.

    sudo scripts/capture_rates.py --smbscope target/release/smbscope --examples target/release/examples \\
        --scratch target/bench

tcpreplay sends generated traffic from a network namespace over a pair of virtual interfaces, at rising rates until
`watch` drops packets or the sender gets no faster. It needs a processor of its own.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("ip", "tcpdump", "tcpreplay")
NAMESPACE = "smbscope-rates"
SENDER, RECEIVER = "smbscope-tx", "smbscope-rx"
TICKS = os.sysconf("SC_CLK_TCK")
# Until a program captures, and until it has taken what is left in the kernel's buffer.
SETTLE_SECONDS = 3
# Below this share of the rate, the sender is at its limit.
LIMIT_SHARE = 0.95


@dataclass(slots=True)
class Sent:
    """What tcpreplay sent."""

    packets: int
    bytes: int
    rate: float
    """Packets per second."""


@dataclass(slots=True)
class Capture:
    """What a program captured of it."""

    sent: Sent
    captured: int
    cpu: float
    commands: int = 0


@contextmanager
def interfaces() -> Iterator[None]:
    """Connects a namespace to this one with a pair of interfaces, until the end of the block."""
    subprocess.run(["ip", "netns", "add", NAMESPACE], check=True)
    try:
        subprocess.run(["ip", "link", "add", RECEIVER, "type", "veth", "peer", "name", SENDER], check=True)
        subprocess.run(["ip", "link", "set", SENDER, "netns", NAMESPACE], check=True)
        subprocess.run(["ip", "-n", NAMESPACE, "link", "set", SENDER, "up"], check=True)
        subprocess.run(["ip", "link", "set", RECEIVER, "up"], check=True)
        yield
    finally:
        # The interfaces end with the namespace of one of them.
        subprocess.run(["ip", "netns", "delete", NAMESPACE], check=False)


def send(capture: Path, rate: int) -> Sent:
    """Sends a capture, as fast as possible if the rate is 0."""
    speed = f"--pps={rate}" if rate else "--topspeed"
    command = ["ip", "netns", "exec", NAMESPACE, "tcpreplay", "-K", "-q", "-i", SENDER, speed, str(capture)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    actual = re.search(r"Actual: (\d+) packets \((\d+) bytes\)", said)
    rated = re.search(r"([\d.]+) pps", said)
    if not actual or not rated:
        raise SystemExit(f"capture_rates: tcpreplay said {said!r}")
    return Sent(int(actual[1]), int(actual[2]), float(rated[1]))


def captured(command: Sequence[str], capture: Path, rate: int, errors: Path) -> tuple[Sent, float]:
    """Sends a capture while a program captures. Returns its CPU time in seconds."""
    with errors.open("wb") as said, subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said) as program:
        time.sleep(SETTLE_SECONDS)
        try:
            sent = send(capture, rate)
            time.sleep(SETTLE_SECONDS)
            fields = Path(f"/proc/{program.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        finally:
            program.send_signal(signal.SIGINT)
    if program.returncode:
        raise SystemExit(f"capture_rates: {command[0]} failed: {errors.read_text(encoding='utf-8').strip()}")
    return sent, (int(fields[11]) + int(fields[12])) / TICKS


def by_tcpdump(capture: Path, rate: int, scratch: Path) -> Capture:
    errors = scratch / "tcpdump.err"
    # The buffer of watch: 64 MiB.
    command = ["tcpdump", "-i", RECEIVER, "-s", "0", "-B", "65536", "-w", "/dev/null", "tcp port 445"]
    sent, cpu = captured(command, capture, rate, errors)
    said = errors.read_text(encoding="utf-8")
    kept = re.search(r"(\d+) packets? captured", said)
    if not kept:
        raise SystemExit(f"capture_rates: tcpdump said {said!r}")
    return Capture(sent, int(kept[1]), cpu)


def by_watch(smbscope: str, capture: Path, rate: int, scratch: Path) -> Capture:
    report = scratch / "watch.json"
    command = [smbscope, "watch", "-i", RECEIVER, "-q", "--format", "json", "-o", str(report)]
    sent, cpu = captured(command, capture, rate, scratch / "watch.err")
    document = json.loads(report.read_text(encoding="utf-8"))
    return Capture(sent, document["quality"]["packets"], cpu, document["totals"]["commands"])


def rows(smbscope: str, mix: str, capture: Path, rates: Sequence[int], scratch: Path) -> Iterator[str]:
    """Returns a row of the table for each rate."""
    for rate in (*rates, 0):
        tcpdump = by_tcpdump(capture, rate, scratch)
        watch = by_watch(smbscope, capture, rate, scratch)
        sent = watch.sent
        seconds = sent.packets / sent.rate
        speeds = f"{sent.rate:,.0f}|{sent.bytes / seconds / 1e9:.2f}|{watch.commands / seconds:,.0f}"
        lost = "|".join(f"{1 - one.captured / one.sent.packets:.1%}" for one in (tcpdump, watch))
        cpu = "|".join(f"{one.cpu / one.sent.packets * 1e6:.2f} µs" for one in (tcpdump, watch))
        yield f"|{mix}|{speeds}|{lost}|{cpu}|"
        if watch.captured < sent.packets or sent.rate < rate * LIMIT_SHARE:
            return


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smbscope", required=True)
    parser.add_argument("--examples", type=Path, required=True, help="directory with the generator of captures")
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--bytes", default="2G", help="size of a capture")
    parser.add_argument("--rates", default="200000,400000,600000,800000", help="packets per second")
    parser.add_argument("--mixes", default="bulk,office,netbench")
    options = parser.parse_args()
    missing = [program for program in PROGRAMS if not shutil.which(program)]
    if missing:
        parser.error(f"missing: {', '.join(missing)}; install them: apt install iproute2 tcpdump tcpreplay")
    if os.geteuid():
        parser.error("only root may make interfaces and capture on them; run it with sudo")
    options.scratch.mkdir(parents=True, exist_ok=True)
    rates = [int(rate) for rate in options.rates.split(",")]
    print("|traffic|packets/s|GB/s|commands/s|lost: tcpdump|lost: watch|CPU a packet: tcpdump|CPU a packet: watch|")
    print("|-|-:|-:|-:|-:|-:|-:|-:|")
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch, interfaces():
        for mix in options.mixes.split(","):
            capture = Path(scratch) / "sent.pcap"
            generate = [options.examples / "generate", "--mix", mix, "--bytes", options.bytes, "-o", capture]
            subprocess.run(generate, check=True, stdout=subprocess.DEVNULL)
            for row in rows(options.smbscope, mix, capture, rates, Path(scratch)):
                print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

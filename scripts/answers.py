#!/usr/bin/env python3
"""Slows down a server and a network in turn, and checks that smbscope names the right culprit.

    sudo scripts/answers.py --smbscope target/release/smbscope [--keep DIR] [WORD ...]

A real Samba server from `smbscope lab` with its own network serves real clients while tcpdump captures the traffic.
The script measures each slowdown with a clock and compares it with smbscope's report on the capture. With WORD
arguments, only scenarios whose name contains one of them are run. `--keep` keeps the captures.

Without root, without permission to create network namespaces (as in many containers), or if a program is missing, the
script prints the reason and does nothing; `--skip-note` also writes the reason to a file. Exit status 1 if an answer
is wrong.
"""

import argparse
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from types import FrameType

from answer_lab import Capture, Lab, LabError, NoLabError, end, finish, which
from answer_report import Report

MIB = 1 << 20
# A stop clearly above 1 s, the threshold for a slow wait.
STOP_S = 1.5
# Relative tolerance between the reported and the measured stop, which takes a moment to reach every process.
CLOSE = 0.2
DIALECTS = {"SMB 3.1.1": "SMB3_11", "SMB1": "NT1"}
SMALL = "get small.txt /dev/null"
# Number of small files in a row, too few to be a cause themselves, and the client's pause between two of them.
FEW = 90
PAUSE = "!sleep 0.02"


class Judge:
    """Prints the answer to each scenario and counts the wrong ones."""

    def __init__(self, smbscope: Path, keep: Path | None) -> None:
        self.smbscope = smbscope
        self._keep = keep
        self.failures = 0
        self.judged = 0

    def hear(self, name: str, capture: Capture, *, culprit: str | None = None) -> "Case":
        """Ends a capture, prints the answer, and checks the culprit if one is given."""
        capture.stop()
        if self._keep is not None:
            words = re.sub(r"\W+", "-", name.partition("(")[0]).strip("-")
            shutil.copy(capture.path, self._keep / f"{words}.pcap")
        report = Report(self.smbscope, capture.path)
        capture.path.unlink()
        print(f"{name}\n    {report.headline}", flush=True)
        self.judged += 1
        case = Case(self, report)
        if culprit is not None:
            case.expect(report.culprit == culprit, f"the culprit is {culprit}, not {report.culprit}")
        for wrong in report.unsound():
            case.expect(False, wrong)
        return case


class Case:
    """Report on one scenario, to be checked."""

    def __init__(self, judge: Judge, report: Report) -> None:
        self._judge = judge
        self.report = report
        self._told = False

    def expect(self, holds: bool, claim: str) -> None:
        if holds:
            return
        self._judge.failures += 1
        print(f"    WRONG: {claim}", flush=True)
        if not self._told:
            self._told = True
            print(f"        {self.report.said()}\n        {self.report.table()}", flush=True)
            print(f"        slowest: {self.report.slowest_of_all()}", flush=True)


# --- The server stops


def server_stopped(lab: Lab, judge: Judge) -> None:
    """Clients are working when the server stops for 1.5 s."""
    upload = lab.folder / "upload.bin"
    sparse(upload, 96 * MIB)
    sparse(lab.share / "big.bin", 96 * MIB)
    works = [
        Work("small files", [small_files(lab, FEW, PAUSE)], MIB // 8, is_typed=True),
        Work("small files, four clients", [small_files(lab, FEW, PAUSE)] * 4, MIB // 2, is_typed=True),
        # Commands of several megabytes take a while even without a stop, and the server's kernel still receives data
        # for a stopped server.
        Work("a big file down", ["get big.bin /dev/null"], 16 * MIB, close=0.4),
        Work("a big file up", [f"put {upload} up.bin"], 16 * MIB, close=0.4),
    ]
    for dialect, protocol in DIALECTS.items():
        for work in works:
            stop_during(lab, judge, work, dialect, protocol)
    upload.unlink()


@dataclass(frozen=True)
class Work:
    """Work of the clients, and the captured size at which the server is stopped."""

    name: str
    commands: Sequence[str]
    captured: int
    # Relative tolerance between the wait and the stop.
    close: float = CLOSE
    # Send commands on standard input, where `!` runs a shell, instead of on the command line.
    is_typed: bool = False

    def start(self, lab: Lab, protocol: str) -> list[Popen[str]]:
        if not self.is_typed:
            return lab.clients(self.commands, dialect=protocol)
        return [typed(lab, commands, protocol, number) for number, commands in enumerate(self.commands)]


def typed(lab: Lab, commands: str, protocol: str, number: int) -> Popen[str]:
    """Starts a client that reads its commands (separated by semicolons) from standard input."""
    script = lab.folder / f"typed{number}.in"
    script.write_text("\n".join([*commands.split(";"), "quit\n"]))
    with script.open() as keyboard:
        return lab.client("smbclient", lab.target, "-m", protocol, name=f"typed{number}", stdin=keyboard.fileno())


def stop_during(lab: Lab, judge: Judge, work: Work, dialect: str, protocol: str) -> None:
    capture = lab.capture("stopped")
    clients = work.start(lab, protocol)
    capture.wait_for(work.captured)
    began = time.time()
    stopped = lab.stop_server_for(STOP_S)
    finish(clients)
    name = f"server stopped: {work.name}, {dialect} (stopped for {stopped:.3f} s)"
    case = judge.hear(name, capture, culprit="server")
    report = case.report
    close = work.close
    case.expect(report.names_seconds(stopped, within=close), f"a sentence names the {stopped:.2f} s of the stop")
    server = report.part("server", "server_or_network")
    least = stopped * len(work.commands) * (1 - close)
    case.expect(server >= least, f"at least {least:.2f} s went by in the server")
    held = report.slow_at(began + stopped / 2)
    case.expect(held[:1] == [report.slowest_of_all()], "the slowest command is one that the stop held up")
    case.expect(len(held) >= len(work.commands), "a command of every client is among the slowest")
    # If the stop interrupted a message, the pause is part of its transfer.
    phases = ("server_time", "request_transfer", "response_transfer")
    longest = max((int(slow[f"{phase}_ns"] or 0) / 1e9 for slow in held for phase in phases), default=0.0)
    case.expect(abs(longest - stopped) <= close * stopped, f"one of them stood still for {stopped:.2f} s")


# --- The network is slow


def narrow_network(lab: Lab, judge: Judge) -> None:
    """Files are downloaded and uploaded over 10 Mbit/s."""
    upload = lab.folder / "upload.bin"
    sparse(upload, 2 * MIB)
    sparse(lab.share / "file.bin", 2 * MIB)
    commands = f"get file.bin /dev/null; put {upload} up.bin"
    for case in both_sides(lab, judge, "10 Mbit/s", commands):
        report = case.report
        transfers = report.part("request_transfer", "response_transfer")
        case.expect(transfers > report.waited() / 2, "most of the time went by in transfers")


def far_network(lab: Lab, judge: Judge) -> None:
    """Small files and folders over a round trip of 25 ms, for several seconds in total."""
    commands = f"ls; {small_files(lab, 30)}"
    for case in both_sides(lab, judge, "25 ms round trip", commands):
        report = case.report
        case.expect(report.part("network") > report.waited() / 2, "most of the time went by in round trips")
        trip = report.round_trip()
        case.expect(0.025 <= trip <= 0.0375, f"a round trip takes 25 ms (and not {trip * 1e3:.1f} ms)")


def lossy_network(lab: Lab, judge: Judge) -> None:
    """Small files over a lossy network. Each lost packet costs about 0.2 s."""
    files = small_files(lab, FEW)
    for dialect, protocol in DIALECTS.items():
        capture = lab.capture("lossy")
        # Losses are random, so use enough files for several seconds of waiting.
        finish(lab.clients([files], dialect=protocol))
        case = judge.hear(f"3 % loss, {dialect}", capture, culprit="network")
        report = case.report
        case.expect(report.retransmitted() > 0, "segments were sent again")
        case.expect(report.part("network") > report.waited() / 2, "most of the time went by in retransmissions")
        case.expect("sent again" in report.said(), "a sentence says that segments were sent again")


def both_sides(lab: Lab, judge: Judge, name: str, commands: str) -> Iterator[Case]:
    """Captures a slow network at both ends in every dialect, and yields the reports."""
    for dialect, protocol in DIALECTS.items():
        captures = {"client": lab.capture("client"), "server": lab.capture("server", at_server=True)}
        finish(lab.clients([commands], dialect=protocol))
        for side, capture in captures.items():
            yield judge.hear(f"{name}: captured at the {side}, {dialect}", capture, culprit="network")


# --- The client has think time


def thinking_client(lab: Lab, judge: Judge) -> None:
    """A user pauses between commands, so the client waits for nothing."""
    for pause_s, commands in ((0.3, 10), (2.0, 3)):
        capture = lab.capture("thinking")
        thought = 0.0
        reading, writing = os.pipe()
        client = lab.client("smbclient", lab.target, name="thinking", stdin=reading)
        os.close(reading)
        for _ in range(commands):
            os.write(writing, f"{SMALL}\n".encode())
            before = time.monotonic()
            time.sleep(pause_s)
            thought += time.monotonic() - before
        os.write(writing, b"quit\n")
        os.close(writing)
        finish([client])
        case = judge.hear(f"client thinks for {pause_s} s at a time", capture, culprit="nothing")
        think = case.report.part("think")
        # The first command is sent while the client still connects, so part of the first pause is not think time.
        case.expect(
            thought * (1 - CLOSE) - pause_s <= think <= thought * (1 + CLOSE),
            f"about {thought:.1f} s went by in the client",
        )


# --- Nothing is slow, and expected waits


def nobody_slow(lab: Lab, judge: Judge) -> None:
    """A busy client with a fast network and a fast server."""
    for dialect, protocol in DIALECTS.items():
        capture = lab.capture("fast")
        # All waits together stay below 1 s, the threshold for a slow wait.
        finish(lab.clients([";".join([SMALL] * 200)], dialect=protocol))
        case = judge.hear(f"nothing slow, {dialect}", capture, culprit="nothing")
        case.expect("Nothing is slow" in case.report.headline, "the headline says so")
        case.expect(not case.report.causes, f"there is no cause, and not {', '.join(case.report.causes)}")
        case.expect(case.report.part("network") < case.report.waited() / 2, "little of it was the network")


def waits_for_changes(lab: Lab, judge: Judge) -> None:
    """A subscription to changes, which is an expected wait."""
    folder = lab.share / "watched"
    folder.mkdir()
    for dialect, protocol in DIALECTS.items():
        capture = lab.capture("changes")
        client = lab.clients(["notify watched"], dialect=protocol)[0]
        time.sleep(0.5)
        began = time.monotonic()
        for number in range(2):
            time.sleep(1.0)
            (folder / f"{protocol}{number}").write_text("x")
        time.sleep(0.2)
        lasted = time.monotonic() - began
        end(client)
        case = judge.hear(f"waits for changes, {dialect}", capture)
        designed(case, lasted)


def waits_for_lock(lab: Lab, judge: Judge) -> None:
    """A client waits for a lock until the holder has received a message over the network."""
    if which("smbtorture") is None:
        print("waits for a lock\n    skipped: smbtorture is missing (package samba-testsuite)")
        return
    capture = lab.capture("lock", at_server=True)
    finish([lab.client("smbtorture", lab.target, "smb2.lock.async", name="smbtorture")])
    case = judge.hear("waits for a lock: captured at the server", capture)
    # The holder releases the lock one round trip later, when it learns that the other client is waiting.
    designed(case, 0.05)


def designed(case: Case, lasted: float) -> None:
    """Checks that this time contains only expected waits."""
    held = case.report.part("waiting", "think")
    case.expect(held >= lasted * (1 - CLOSE), f"{lasted:.2f} s went by in expected waits")
    case.expect(case.report.part("waiting") > 0, "some of it is known as such")
    server = case.report.slowest("server_time")
    case.expect(server < lasted, "no command was in the server for so long")


# --- All scenarios


# Each scenario with the options of `smbscope lab` that slow it down.
SCENARIOS: dict[Callable[[Lab, Judge], None], tuple[str, ...]] = {
    server_stopped: (),
    narrow_network: ("--bandwidth", "10mbit"),
    far_network: ("--delay", "12500us"),
    lossy_network: ("--loss", "3%"),
    thinking_client: (),
    nobody_slow: (),
    waits_for_changes: (),
    waits_for_lock: ("--delay", "25ms"),
}


def small_files(lab: Lab, number: int, then: str = "") -> str:
    """Returns commands that get distinct small files, because opening the same file repeatedly would be a cause
    itself."""
    names = [f"small-{at:04}.txt" for at in range(number)]
    for name in names:
        shutil.copy(lab.share / "small.txt", lab.share / name)
        (lab.share / name).chmod(0o666)
    return ";".join(f"get {name} /dev/null;{then}" if then else f"get {name} /dev/null" for name in names)


def sparse(path: Path, size: int) -> None:
    """Creates a file of zeros that occupies no disk space."""
    with path.open("wb") as file:
        file.truncate(size)


def ended(number: int, frame: FrameType | None) -> None:
    """Exits as after Ctrl-C, with full clean-up."""
    raise KeyboardInterrupt


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--smbscope", type=Path, default=Path("target/release/smbscope"), metavar="PROGRAM")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the captures here")
    parser.add_argument("--skip-note", type=Path, metavar="FILE", help="write here why the test was skipped, if it was")
    parser.add_argument("words", nargs="*", metavar="WORD", help="play only scenarios with one of these in their name")
    arguments = parser.parse_args()
    if arguments.skip_note is not None:
        arguments.skip_note.unlink(missing_ok=True)
    wanted = [s for s in SCENARIOS if not arguments.words or any(word in s.__name__ for word in arguments.words)]
    if not wanted:
        parser.error(f"no such scenario; there are {', '.join(s.__name__ for s in SCENARIOS)}")
    if arguments.keep is not None:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, ended)
    judge = Judge(arguments.smbscope.resolve(strict=True), arguments.keep)
    began = time.monotonic()
    try:
        for scenario in wanted:
            with Lab(judge.smbscope, *SCENARIOS[scenario]) as lab:
                scenario(lab, judge)
    except NoLabError as reason:
        if judge.judged:
            print(f"answers: there was a laboratory, and now there is none: {reason}", file=sys.stderr)
            return 1
        print(f"answers: SKIPPED the test of the answer with a real Samba server: {reason}")
        if arguments.skip_note is not None:
            arguments.skip_note.parent.mkdir(parents=True, exist_ok=True)
            arguments.skip_note.write_text(f"{reason}\n", encoding="utf-8")
        return 0
    except LabError as error:
        print(f"answers: the test could not be done: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("answers: interrupted; everything is cleaned up", file=sys.stderr)
        return 130
    took = time.monotonic() - began
    print(f"answers: {judge.judged} captures in {took:.0f} s, {judge.failures} claims wrong")
    return 1 if judge.failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""A real Samba server behind a network, from `smbscope lab`, with clients and captures on either side of it."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

TOOLS = {"smbd": "samba", "smbclient": "smbclient", "tcpdump": "tcpdump", "nsenter": "util-linux"}
# Longest wait for a program to get ready or to end.
PATIENCE_S = 20.0


class LabError(Exception):
    """Something of the laboratory did not work."""


class NoLabError(LabError):
    """There can be no laboratory here."""


def which(tool: str) -> str | None:
    """Where a program is; some are not on the path of an ordinary user."""
    return shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


class Capture:
    """A running capture on one side."""

    def __init__(self, path: Path, process: subprocess.Popen[str], log: Path) -> None:
        self.path = path
        self._process = process
        self._log = log
        end_by = time.monotonic() + PATIENCE_S
        while "listening on" not in (said := log.read_text(errors="replace")):
            if process.poll() is not None or time.monotonic() > end_by:
                refused = "Operation not permitted" in said
                raise (NoLabError if refused else LabError)(f"tcpdump did not start: {said.strip()}")
            time.sleep(0.02)

    def wait_for(self, size: int) -> None:
        """Waits until so many bytes have been captured: the work has begun."""
        end_by = time.monotonic() + PATIENCE_S
        while self.path.stat().st_size < size:
            if time.monotonic() > end_by:
                raise LabError(f"the clients did not get to work: {self.path.stat().st_size} bytes were captured")
            time.sleep(0.01)

    def stop(self) -> None:
        """Ends it; a capture that lost packets proves nothing."""
        # The last packets may not have come to tcpdump yet.
        time.sleep(0.3)
        self._process.send_signal(signal.SIGINT)
        self._process.wait(PATIENCE_S)
        said = self._log.read_text(errors="replace")
        if "\n0 packets dropped by kernel" not in said:
            raise LabError(f"the capture {self.path.name} lost packets: {said.strip()}")


class Lab:
    """A server behind a network of its own, which the options of `smbscope lab` make slow."""

    def __init__(self, smbscope: Path, *slow: str) -> None:
        self._smbscope = smbscope
        # Without delay it is a network all the same, and not the loopback interface.
        self._slow = slow or ("--delay", "0us")
        self._stack = ExitStack()
        self.folder = Path(tempfile.mkdtemp(prefix="smbscope-answers-"))
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)

    def __enter__(self) -> "Lab":
        try:
            if missing := sorted({package for tool, package in TOOLS.items() if which(tool) is None}):
                raise NoLabError(f"these packages are missing: {' '.join(missing)}")
            # Also one that is only half made.
            self._stack.callback(self._run, "down", "--all")
            self._server: dict[str, Any] = json.loads(self._run("up", "--format", "json", *self._slow))
            if "network" not in self._server["link"]:
                raise NoLabError(self._server["link"]["proxy"]["why"])
            self.share = Path(self._server["share_folder"])
            self.target = f"//{self._server['host']}/share"
            (self.share / "small.txt").write_text("x" * 3_000)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _run(self, verb: str, *options: str) -> str:
        command = [str(self._smbscope), "lab", verb, "--state", str(self.folder / "lab"), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise LabError(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def start(self, *command: str, output: Path, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
        """Starts a program; it is ended with the laboratory at the latest."""
        password = Path(self._server["password_file"]).read_text(encoding="utf-8").strip()
        with output.open("w") as sink:
            process = subprocess.Popen(
                [which(command[0]) or command[0], *command[1:]],
                stdin=stdin,
                stdout=sink,
                stderr=subprocess.STDOUT,
                text=True,
                env=os.environ | {"PASSWD": password},
                # Ctrl-C reaches this process alone, which then ends the others in order.
                start_new_session=True,
            )
        self._stack.callback(end, process)
        return process

    def client(self, *command: str, name: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
        """Starts a program of Samba's as the user of the share."""
        options = ["-s", f"{self._server['folder']}/smb.conf", "--option=client min protocol=NT1"]
        output = self.folder / f"{name}.out"
        return self.start(*command, *options, "-U", str(self._server["user"]), output=output, stdin=stdin)

    def clients(self, commands: Sequence[str], *, dialect: str = "SMB3_11") -> list[subprocess.Popen[str]]:
        """Starts a client, which speaks no newer dialect, for each list of commands, divided by semicolons."""
        command = ("smbclient", self.target, "-m", dialect, "-c")
        return [self.client(*command, asked, name=f"client{index}") for index, asked in enumerate(commands)]

    def capture(self, name: str, *, at_server: bool = False) -> Capture:
        """Begins a capture, on the clients' side unless told otherwise."""
        path, log = self.folder / f"{name}.pcap", self.folder / f"{name}.tcpdump"
        side = ["nsenter", "--net", "--target", str(self._server["pid"])] if at_server else []
        interface = "eth0" if at_server else str(self._server["interface"])
        options = ["-i", interface, "-s", "0", "-B", "65536", "--immediate-mode", "-Z", "root", "-w", str(path)]
        command = [*side, which("tcpdump") or "tcpdump", *options, "tcp port 445"]
        return Capture(path, self.start(*command, output=log), log)

    def stop_server_for(self, seconds: float) -> float:
        """Stops every process of the server, and lets it go on after a time. How long it really was, in seconds."""
        (server,) = json.loads(self._run("status", "--format", "json"))
        began = time.monotonic()
        send(server["pids"], signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            send(server["pids"], signal.SIGCONT)
        return time.monotonic() - began


def send(pids: Sequence[int], number: signal.Signals) -> None:
    """Sends a signal to processes, some of which may have ended."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def end(process: subprocess.Popen[str]) -> None:
    """Ends a program and what it started."""
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def finish(processes: Sequence[subprocess.Popen[str]]) -> None:
    """Waits for programs to do what they were told; they must have done it."""
    for process in processes:
        if process.wait(PATIENCE_S * 3) != 0:
            raise LabError(f"{process.args!r} ended with status {process.returncode}")

"""A real Samba server from `smbscope lab` in its own network, with clients, and captures on both sides."""

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
# Longest wait for a program to get ready or to exit.
PATIENCE_S = 20.0


class LabError(Exception):
    """A part of the lab failed."""


class NoLabError(LabError):
    """This machine can't run a lab."""


def which(tool: str) -> str | None:
    """Finds a program, including in the sbin directories that may not be on an ordinary user's PATH."""
    return shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


class Capture:
    """A running capture on one side of the network."""

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
        """Waits until this many bytes have been captured, which shows that the work has begun."""
        end_by = time.monotonic() + PATIENCE_S
        while self.path.stat().st_size < size:
            if time.monotonic() > end_by:
                raise LabError(f"the clients did not get to work: {self.path.stat().st_size} bytes were captured")
            time.sleep(0.01)

    def stop(self) -> None:
        """Stops the capture. Raises LabError if it dropped packets."""
        # tcpdump may not have received the last packets yet.
        time.sleep(0.3)
        self._process.send_signal(signal.SIGINT)
        self._process.wait(PATIENCE_S)
        said = self._log.read_text(errors="replace")
        if "\n0 packets dropped by kernel" not in said:
            raise LabError(f"the capture {self.path.name} lost packets: {said.strip()}")


class Lab:
    """A server in its own network, slowed down by options of `smbscope lab`."""

    def __init__(self, smbscope: Path, *slow: str) -> None:
        self._smbscope = smbscope
        # A delay of zero forces a separate network instead of the loopback interface.
        self._slow = slow or ("--delay", "0us")
        self._stack = ExitStack()
        self.folder = Path(tempfile.mkdtemp(prefix="smbscope-answers-"))
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)

    def __enter__(self) -> "Lab":
        try:
            if missing := sorted({package for tool, package in TOOLS.items() if which(tool) is None}):
                raise NoLabError(f"these packages are missing: {' '.join(missing)}")
            # Also removes a server whose start failed halfway.
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
        """Starts a program that is stopped with the lab at the latest."""
        password = Path(self._server["password_file"]).read_text(encoding="utf-8").strip()
        with output.open("w") as sink:
            process = subprocess.Popen(
                [which(command[0]) or command[0], *command[1:]],
                stdin=stdin,
                stdout=sink,
                stderr=subprocess.STDOUT,
                text=True,
                env=os.environ | {"PASSWD": password},
                # Only this process receives Ctrl-C. It then stops the others in order.
                start_new_session=True,
            )
        self._stack.callback(end, process)
        return process

    def client(self, *command: str, name: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
        """Starts a Samba client program as the user of the share."""
        options = ["-s", f"{self._server['folder']}/smb.conf", "--option=client min protocol=NT1"]
        output = self.folder / f"{name}.out"
        return self.start(*command, *options, "-U", str(self._server["user"]), output=output, stdin=stdin)

    def clients(self, commands: Sequence[str], *, dialect: str = "SMB3_11") -> list[subprocess.Popen[str]]:
        """Starts one client per list of commands (separated by semicolons), with `dialect` as the highest dialect."""
        command = ("smbclient", self.target, "-m", dialect, "-c")
        return [self.client(*command, asked, name=f"client{index}") for index, asked in enumerate(commands)]

    def capture(self, name: str, *, at_server: bool = False) -> Capture:
        """Starts a capture on the clients' side, or on the server's."""
        path, log = self.folder / f"{name}.pcap", self.folder / f"{name}.tcpdump"
        side = ["nsenter", "--net", "--target", str(self._server["pid"])] if at_server else []
        interface = "eth0" if at_server else str(self._server["interface"])
        options = ["-i", interface, "-s", "0", "-B", "65536", "--immediate-mode", "-Z", "root", "-w", str(path)]
        command = [*side, which("tcpdump") or "tcpdump", *options, "tcp port 445"]
        return Capture(path, self.start(*command, output=log), log)

    def stop_server_for(self, seconds: float) -> float:
        """Stops all server processes for a while. Returns the actual duration in seconds."""
        (server,) = json.loads(self._run("status", "--format", "json"))
        began = time.monotonic()
        send(server["pids"], signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            send(server["pids"], signal.SIGCONT)
        return time.monotonic() - began


def send(pids: Sequence[int], number: signal.Signals) -> None:
    """Sends a signal to processes. Ignores those that have ended."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def end(process: subprocess.Popen[str]) -> None:
    """Stops a program and its children."""
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def finish(processes: Sequence[subprocess.Popen[str]]) -> None:
    """Waits for programs to finish. Raises LabError if one fails."""
    for process in processes:
        if process.wait(PATIENCE_S * 3) != 0:
            raise LabError(f"{process.args!r} ended with status {process.returncode}")

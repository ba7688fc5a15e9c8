"""A real Samba server and its clients on one machine, with a network between them that can be made slow.

Three network namespaces: one for the server, one for the clients, and between them a bridge, on which the network is
made slow, so that captures on either side see it as they would on a real one. All of it is private to the process: no
account and no setting of the machine is touched, and everything is removed at the end, also after a failure.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType

TOOLS = {
    "smbd": "samba",
    "pdbedit": "samba",
    "smbclient": "smbclient",
    "tcpdump": "tcpdump",
    "ip": "iproute2",
    "tc": "iproute2",
    "ethtool": "ethtool",
}
SERVER = "10.99.0.1"
CLIENT = "10.99.0.2"
USER = "bench"
PASSWORD = "bench-only"
SHARE = "share"
# Longest wait for a program to get ready or to end.
PATIENCE_S = 20.0

CONF = """\
[global]
    workgroup = LAB
    server role = standalone server
    netbios name = FILES1
    interfaces = {server}/24
    bind interfaces only = yes
    smb ports = 445
    disable netbios = yes
    load printers = no
    printing = bsd
    printcap name = /dev/null
    disable spoolss = yes
    private dir = {folder}/private
    lock directory = {folder}/lock
    state directory = {folder}/state
    cache directory = {folder}/cache
    pid directory = {folder}/pid
    ncalrpc dir = {folder}/ncalrpc
    usershare path =
    log file = {folder}/log/log.%m
    log level = 0
    passdb backend = tdbsam:{folder}/private/passdb.tdb
    server min protocol = NT1
    server max protocol = SMB3_11
    client min protocol = NT1
    username map = {folder}/username.map
    server signing = auto
    kernel oplocks = no
[{share}]
    path = {folder}/share
    read only = no
    force user = root
"""


def lacking() -> str | None:
    """Why there can be no laboratory here, if so."""
    if sys.platform != "linux":
        return "it needs Linux, for network namespaces"
    missing = sorted({package for tool, package in TOOLS.items() if which(tool) is None})
    if missing:
        return f"these packages are missing: {' '.join(missing)}"
    if os.geteuid() != 0:
        return "it needs root, for network namespaces"
    # A container's root may lack the right to any part of it: only trying tells.
    with ExitStack() as stack:
        try:
            make_network(f"lab{os.getpid()}-t", stack)
        except LabError as error:
            return f"network namespaces can't be made here ({error})"
        try:
            socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
        except PermissionError as error:
            return f"packets can't be captured here ({error})"
    return None


def which(tool: str) -> str | None:
    """Where a program is; some are not on the path of an ordinary user."""
    return shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


class LabError(Exception):
    """Something of the laboratory did not work."""


def run(*command: str, text: str | None = None) -> str:
    """Runs a command to its end, and returns what it printed."""
    done = subprocess.run(
        [which(command[0]) or command[0], *command[1:]],
        input="" if text is None else text,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise LabError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def wait_until(what: str, process: subprocess.Popen[str], path: Path, word: str) -> None:
    """Waits until a program has written a word into a file."""
    end = time.monotonic() + PATIENCE_S
    while not (path.exists() and word in path.read_text(errors="replace")):
        if process.poll() is not None or time.monotonic() > end:
            said = path.read_text(errors="replace") if path.exists() else ""
            raise LabError(f"{what} did not start: {said.strip()[-500:]}")
        time.sleep(0.02)


def make_network(tag: str, stack: ExitStack) -> tuple[str, str, str]:
    """Three namespaces: the server's, the clients' and the one between them, with a bridge. The stack removes them."""
    names = (f"{tag}-s", f"{tag}-c", f"{tag}-b")
    server_side, client_side, between = names
    for name in names:
        # Also one that is only half made.
        stack.callback(subprocess.run, ["ip", "netns", "del", name], capture_output=True, check=False)
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "set", "lo", "up")
    run("ip", "-n", between, "link", "add", "br0", "type", "bridge")
    run("ip", "-n", between, "link", "set", "br0", "up")
    for side, port, address in ((server_side, "ps", SERVER), (client_side, "pc", CLIENT)):
        run("ip", "-n", side, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", between)
        run("ip", "-n", side, "addr", "add", f"{address}/24", "dev", "eth0")
        run("ip", "-n", side, "link", "set", "eth0", "up")
        run("ip", "-n", between, "link", "set", port, "master", "br0", "up")
        # Ordinary segments with sums of their own, as on a cable: what is carried in user space needs them.
        for namespace, interface in ((side, "eth0"), (between, port)):
            command = ["ethtool", "-K", interface, "tso", "off", "gso", "off", "gro", "off", "tx", "off"]
            run("ip", "netns", "exec", namespace, *command)
    return names


class Capture:
    """A capture under way on one side."""

    def __init__(self, path: Path, process: subprocess.Popen[str], log: Path) -> None:
        self.path = path
        self._process = process
        self._log = log

    def wait_for(self, size: int) -> None:
        """Waits until so many bytes have been captured: work is under way."""
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
    """The server, the clients and the network between them."""

    def __init__(self) -> None:
        self.server_side = self.client_side = self._between = ""
        self.folder = Path(tempfile.mkdtemp(prefix="smbscope-lab-"))
        self.share = self.folder / "share"
        self.conf = self.folder / "smb.conf"
        self._stack = ExitStack()
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self._smbd: subprocess.Popen[str] | None = None

    def __enter__(self) -> "Lab":
        try:
            self.server_side, self.client_side, self._between = make_network(f"lab{os.getpid()}", self._stack)
            self._start_server()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    # --- Programs

    def start(self, side: str, *command: str, output: Path, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
        """Starts a program in a namespace; it is ended with the laboratory at the latest."""
        with output.open("w") as sink:
            process = subprocess.Popen(
                [which("ip") or "ip", "netns", "exec", side, which(command[0]) or command[0], *command[1:]],
                stdin=stdin,
                stdout=sink,
                stderr=subprocess.STDOUT,
                text=True,
                # Ctrl-C reaches this process alone, which then ends the others in order.
                start_new_session=True,
            )
        self._stack.callback(end, process)
        return process

    # --- Network

    @contextmanager
    def bandwidth(self, rate: str) -> Iterator[None]:
        """A network that carries no more than `rate` each way."""
        ports = ("ps", "pc")
        for port in ports:
            shape = ["tbf", "rate", rate, "burst", "32kbit", "latency", "50ms"]
            run("tc", "-n", self._between, "qdisc", "add", "dev", port, "root", *shape)
        try:
            yield
        finally:
            for port in ports:
                run("tc", "-n", self._between, "qdisc", "del", "dev", port, "root")

    @contextmanager
    def wire(self, *, delay_s: float = 0.0, loss: float = 0.0) -> Iterator[None]:
        """A network in which every frame takes `delay_s` each way, and a share of them is lost."""
        for port in ("ps", "pc"):
            run("ip", "-n", self._between, "link", "set", port, "nomaster")
        log = self.folder / "wire.out"
        script = str(Path(__file__).with_name("wire.py"))
        options = ["--delay-ms", str(delay_s * 1_000), "--loss", str(loss)]
        process = self.start(self._between, sys.executable, script, "ps", "pc", *options, output=log)
        try:
            wait_until("the wire", process, log, "ready")
            yield
        finally:
            end(process)
            for port in ("ps", "pc"):
                run("ip", "-n", self._between, "link", "set", port, "master", "br0")

    # --- Server

    def _start_server(self) -> None:
        for name in ("private", "lock", "state", "cache", "pid", "log", "ncalrpc", "share"):
            (self.folder / name).mkdir()
        self.folder.chmod(0o755)
        self.conf.write_text(CONF.format(server=SERVER, folder=self.folder, share=SHARE))
        # The user of the share acts as an account that every machine has and that may nothing; none is made.
        (self.folder / "username.map").write_text(f"daemon = {USER}\n")
        run("pdbedit", "-s", str(self.conf), "-a", "-t", "-u", "daemon", text=f"{PASSWORD}\n{PASSWORD}\n")
        command = ["smbd", "-F", "--no-process-group", "-s", str(self.conf)]
        self._smbd = self.start(self.server_side, *command, output=self.folder / "smbd.out")
        wait_until("smbd", self._smbd, self.folder / "pid" / "smbd.pid", "\n")
        end_by = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.smbclient("ls")
                return
            except LabError:
                if time.monotonic() > end_by:
                    raise
                time.sleep(0.1)

    def stop_server_for(self, seconds: float) -> float:
        """Stops every process of the server, and lets it go on after a time. How long it really was, in seconds."""
        assert self._smbd is not None
        processes = family(self._smbd.pid)
        began = time.monotonic()
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            for process in processes:
                os.kill(process, signal.SIGCONT)
        return time.monotonic() - began

    # --- Clients and captures

    def client_command(self, dialect: str = "SMB3_11") -> list[str]:
        """An smbclient that speaks no newer dialect."""
        return ["smbclient", f"//{SERVER}/{SHARE}", "-s", str(self.conf), "-U", f"{USER}%{PASSWORD}", "-m", dialect]

    def smbclient(self, commands: str, *, dialect: str = "SMB3_11") -> str:
        """Runs commands, divided by semicolons, to their end."""
        return run("ip", "netns", "exec", self.client_side, *self.client_command(dialect), "-c", commands)

    def clients(self, commands: Sequence[str], *, dialect: str = "SMB3_11") -> list[subprocess.Popen[str]]:
        """Starts a client for each list of commands."""
        started = []
        for index, command in enumerate(commands):
            output = self.folder / f"client{index}.out"
            started.append(self.start(self.client_side, *self.client_command(dialect), "-c", command, output=output))
        return started

    def capture(self, name: str, side: str | None = None, *, snap: int = 0) -> Capture:
        """Begins a capture, on the clients' side unless told otherwise."""
        path = self.folder / f"{name}.pcap"
        log = self.folder / f"{name}.tcpdump"
        options = ["-i", "eth0", "-s", str(snap), "-B", "65536", "--immediate-mode", "-Z", "root", "-w", str(path)]
        process = self.start(side or self.client_side, "tcpdump", *options, "tcp port 445", output=log)
        wait_until("tcpdump", process, log, "listening on")
        return Capture(path, process, log)


def family(ancestor: int) -> list[int]:
    """A process and all that descend from it, ancestors first."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                # The name, in brackets, may hold anything; the parent is the second field behind it.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [ancestor]
    for process in found:
        found.extend(parents.get(process, []))
    return found


def end(process: subprocess.Popen[str]) -> None:
    """Ends a program and what it started, by their numbers."""
    if process.poll() is not None:
        return
    for number in reversed(family(process.pid)):
        try:
            os.kill(number, signal.SIGTERM)
            os.kill(number, signal.SIGCONT)
        except ProcessLookupError:
            pass
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

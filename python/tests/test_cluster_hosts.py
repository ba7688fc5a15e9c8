"""Load from several hosts: network namespaces as hosts, a Ray head and two workers in them, and a Samba in another."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from conftest import COMMAND, needs_namespaces, needs_samba
from test_cluster_load import held_against_its_hosts

RAY = COMMAND.parent / "ray"
# Of the network that is set aside for measurements (RFC 2544), where nothing of the lab is.
ADDRESSES = {"files": "198.19.255.1", "head": "198.19.255.2", "a": "198.19.255.3", "b": "198.19.255.4"}
PORT = 6399
ENVIRONMENT = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
SMB_CONF = """
[global]
    server role = standalone server
    interfaces = {address}/24
    bind interfaces only = yes
    smb ports = 445
    disable netbios = yes
    load printers = no
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
    map to guest = Bad User
    guest account = nobody
[share]
    path = {folder}/share
    read only = no
    guest ok = yes
    force user = root
"""


class Hosts:
    """Namespaces on one bridge, with what runs in them; `close` ends and removes all of it."""

    def __init__(self, folder: Path) -> None:
        """Make the namespaces, the Samba and the Ray."""
        self.names = {name: f"smbscope-{os.getpid()}-{name}" for name in ADDRESSES}
        self.started: list[subprocess.Popen[bytes]] = []
        self.folder = folder

    def ip(self, *arguments: str) -> None:
        """Run ip(8)."""
        subprocess.run(["ip", *arguments], check=True)

    def open(self) -> None:
        """Make all of it; what fails half-way is removed by `close`."""
        for name in self.names.values():
            self.ip("netns", "add", name)
            self.ip("-n", name, "link", "set", "lo", "up")
        files = self.names["files"]
        self.ip("-n", files, "link", "add", "br0", "type", "bridge")
        self.ip("-n", files, "addr", "add", f"{ADDRESSES['files']}/24", "dev", "br0")
        self.ip("-n", files, "link", "set", "br0", "up")
        for host in ("head", "a", "b"):
            name = self.names[host]
            self.ip("link", "add", f"p-{host}", "netns", files, "type", "veth", "peer", "name", "eth0", "netns", name)
            self.ip("-n", files, "link", "set", f"p-{host}", "master", "br0", "up")
            self.ip("-n", name, "addr", "add", f"{ADDRESSES[host]}/24", "dev", "eth0")
            self.ip("-n", name, "link", "set", "eth0", "up")
        self.samba()
        self.ray(
            "head",
            "--head",
            f"--port={PORT}",
            "--num-cpus=0",
            "--include-dashboard=false",
            f"--temp-dir={self.folder}/ray",
        )
        self.wait(lambda: self.alive() == 1)
        # One after the other: they share the folder of the session, and choose names of sockets there.
        for nodes, host in ((2, "a"), (3, "b")):
            self.ray(host, f"--address={ADDRESSES['head']}:{PORT}", "--num-cpus=1")
            self.wait(lambda nodes=nodes: self.alive() == nodes)

    def samba(self) -> None:
        """Start a Samba that lets guests in."""
        folder = self.folder / "samba"
        for name in ("private", "lock", "state", "cache", "pid", "log", "ncalrpc", "share"):
            (folder / name).mkdir(parents=True)
        configuration = folder / "smb.conf"
        configuration.write_text(SMB_CONF.format(address=ADDRESSES["files"], folder=folder))
        smbd = shutil.which("smbd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
        assert smbd
        self.start("files", smbd, "-F", "--no-process-group", "-s", str(configuration))
        self.wait(lambda: (folder / "pid" / "smbd.pid").exists())

    def ray(self, host: str, *arguments: str) -> None:
        """Start a node of Ray."""
        store = "--object-store-memory=100000000"
        self.start(host, str(RAY), "start", "--block", f"--node-ip-address={ADDRESSES[host]}", store, *arguments)

    def start(self, host: str, *line: str) -> None:
        """Start a program on a host, which runs until the end."""
        with (self.folder / f"{host}.log").open("ab") as log:
            self.started.append(
                subprocess.Popen(
                    ["ip", "netns", "exec", self.names[host], *line],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=ENVIRONMENT,
                    start_new_session=True,
                )
            )

    def alive(self) -> int:
        """Nodes that the head knows."""
        code = (
            f"import ray; ray.init(address='{ADDRESSES['head']}:{PORT}', log_to_driver=False, logging_level='ERROR'); "
            "print('alive', sum(node['Alive'] for node in ray.nodes()))"
        )
        python = str(COMMAND.parent / "python")
        line = ["ip", "netns", "exec", self.names["head"], python, "-P", "-c", code]
        done = subprocess.run(line, capture_output=True, text=True, check=False, env=ENVIRONMENT)
        return int(done.stdout.split()[-1]) if "alive" in done.stdout else 0

    def wait(self, is_so: Any) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + 90
        while not is_so():
            assert time.monotonic() < deadline, "\n".join(log.read_text()[-500:] for log in self.folder.glob("*.log"))
            time.sleep(0.2)

    def run(self, *options: str) -> subprocess.Popen[str]:
        """A run of bench, driven from the head."""
        target = f"smb://{ADDRESSES['files']}/share"
        line = [str(COMMAND), "bench", target, "--cluster", f"{ADDRESSES['head']}:{PORT}", "--format", "json", "-q"]
        return subprocess.Popen(
            ["ip", "netns", "exec", self.names["head"], *line, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )

    def kill(self, host: str) -> None:
        """End all processes of a host at once, as a power failure does."""
        pids = subprocess.run(["ip", "netns", "pids", self.names[host]], capture_output=True, text=True, check=False)
        for pid in pids.stdout.split():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                continue

    def close(self) -> None:
        """End what runs in the namespaces, and remove them."""
        for host, name in self.names.items():
            self.kill(host)
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        for child in self.started:
            child.wait()


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """A Ray head, two workers and a Samba, each on a host of its own."""
    needs_samba()
    needs_namespaces()
    # Sockets of Ray lie below it, and their names have no more than 107 bytes.
    folder = tmp_path_factory.mktemp("h")
    hosts = Hosts(folder)
    with ExitStack() as stack:
        stack.callback(hosts.close)
        hosts.open()
        yield hosts


def done(run: "subprocess.Popen[str]") -> dict[str, Any]:
    """The document of a run that has come to its end."""
    printed, said = run.communicate(timeout=120)
    assert run.returncode == 0, said
    document: dict[str, Any] = json.loads(printed)
    return document


def test_counts_of_two_load_hosts_on_one_samba_add_up(hosts: Hosts, tmp_path: Path) -> None:
    options = ["--users", "2,6", "--duration", "2s", "--warmup", "500ms", "--workload", "open-read-close"]
    document = done(hosts.run(*options, "-o", str(tmp_path / "run")))
    for run in document["runs"]:
        assert [host["host"] for host in run["hosts"]] == [ADDRESSES["a"], ADDRESSES["b"]]
        held_against_its_hosts(run)
        assert all(host["operations"] > 0 and host["late_ns"] == 0 for host in run["hosts"])
        assert run["failures"] == {} and run["ended"] == {"how": "done"}
        # One machine has one clock, which both hosts read by a way of their own.
        assert all(abs(host["clock_ahead_ns"]) <= host["clock_bound_ns"] + 5_000_000 for host in run["hosts"])
    assert [[host["sessions"] for host in run["hosts"]] for run in document["runs"]] == [[1, 1], [3, 3]]
    assert (tmp_path / "run" / "run.json").exists() and (tmp_path / "run" / "report.html").exists()


def test_a_host_that_is_killed_is_told_and_nothing_else_is_lost(hosts: Hosts) -> None:
    run = hosts.run("--users", "4,4", "--duration", "12s", "--warmup", "0s", "--workload", "echo")
    hosts.wait(lambda: sessions_of(hosts, "b") == 2)
    time.sleep(3)
    hosts.kill("b")
    document = done(run)
    first, second = document["runs"]
    left, lost = first["hosts"]
    assert (left["host"], lost["host"]) == (ADDRESSES["a"], ADDRESSES["b"])
    assert (lost["sessions"], lost["operations"], left["sessions"]) == (2, 0, 2)
    assert lost["lost"]["operations"] > 0
    held_against_its_hosts(first)
    assert first["ended"] == {"how": "done"} and list(first["failures"].values()) == [2]
    # The other host went on, second by second.
    assert len(first["intervals"]) == 12 and min(interval["operations"] for interval in first["intervals"]) > 0
    assert any(f"the load host {ADDRESSES['b']} was lost with 2 sessions" in text for text in document["warnings"])
    assert [(host["host"], host["sessions"]) for host in second["hosts"]] == [(ADDRESSES["a"], 4)]
    held_against_its_hosts(second)


def sessions_of(hosts: Hosts, host: str) -> int:
    """Connections that a host has to the server."""
    line = ["ip", "netns", "exec", hosts.names[host], "cat", "/proc/net/tcp"]
    found = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    # Port 445, established.
    return sum(1 for row in found.splitlines() if ":01BD 01 " in row)

"""Load from several hosts on a Ray of this machine: what is merged is the sum, and a host that is lost is told."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray

import smbscope
from conftest import COMMAND, cli, needs_samba
from smbscope import cluster


@pytest.fixture(scope="module", autouse=True)
def workers() -> Iterator[None]:
    """A Ray of one host."""
    needs_samba()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def load(**options: Any) -> dict[str, Any]:
    """The document of a run on two load generators."""
    given: dict[str, Any] = {"slots": 2, "workload": "echo", "warmup": "200ms", "duration": "1s"} | options
    document: dict[str, Any] = cluster.bench(**given).to_dict()
    return document


def held_against_its_hosts(run: dict[str, Any]) -> None:
    """Counts of a load point are the sums of those of its hosts."""
    for key in ("operations", "bytes_read", "bytes_written"):
        assert run[key] == sum(host[key] for host in run["hosts"])
    times, all_times = [host["times"] for host in run["hosts"]], run["total"]["client"]
    assert all_times["count"] == sum(some["count"] for some in times)
    assert all_times["max"] == max(some["max"] for some in times if some["count"])
    assert all_times["min"] == min(some["min"] for some in times if some["count"])
    assert sum(interval["operations"] for interval in run["intervals"]) == run["operations"]


def test_what_is_merged_is_the_sum_of_the_hosts(tmp_path: Path) -> None:
    document = load(users="2,5", workload="open-read-close", output=tmp_path / "run")
    sessions = [[host["sessions"] for host in run["hosts"]] for run in document["runs"]]
    assert sessions == [[1, 1], [3, 2]]
    for run in document["runs"]:
        held_against_its_hosts(run)
        assert run["operations"] > 0 and run["ended"] == {"how": "done"} and run["failures"] == {}
        for host in run["hosts"]:
            assert host["operations"] > 0 and host["late_ns"] == 0 and host["lost"] is None
            # One machine has one clock.
            assert abs(host["clock_ahead_ns"]) <= host["clock_bound_ns"] + 5_000_000
    assert {"run.json", "intervals.parquet", "report.html"} <= {file.name for file in (tmp_path / "run").iterdir()}


def test_ramps_searches_and_studies_are_those_of_one_process(tmp_path: Path) -> None:
    found = load(users="1..4", find_capacity="p95(total) < 10s", duration="300ms", warmup="0s")
    assert found["capacity"]["users"] == 4
    rated = load(users=4, rate="100/s", duration="2s")["runs"][0]
    # Appointments are those of all users, whichever host they are on.
    assert 190 <= rated["operations"] <= 202, rated["operations"]
    limited = load(users=3, operations=101, duration="20s", warmup="0s")["runs"][0]
    assert limited["operations"] == 101
    study = tmp_path / "study.toml"
    study.write_text(
        'name = "two"\nquestion = "Which is faster?"\nrepetitions = 1\nmeasures = ["ops"]\n'
        '[bench]\nworkload = "echo"\nusers = 2\nduration = "300ms"\nwarmup = "0s"\n'
        '[[axis]]\nname = "dialect"\n[[axis.setting]]\nname = "3.1.1"\nbench.dialect = "3.1.1"\n'
        '[[axis.setting]]\nname = "2.1"\nbench.dialect = "2.1"\n'
    )
    address = ray.get_runtime_context().gcs_address
    assert len(smbscope.study(study, output=tmp_path / "out", cluster=address, slots=2).runs) == 2
    run = (tmp_path / "out").glob("**/run.json")
    assert all('"load hosts"' in file.read_text() for file in run)


def killing_one(after: float) -> threading.Thread:
    """Kill a load generator, so long after all are there."""

    def kill() -> None:
        found: list[int] = []
        deadline = time.monotonic() + 60
        while len(found) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
            found = generators()
        time.sleep(after)
        os.kill(found[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


def generators() -> list[int]:
    """The processes that are load generators of our own Ray: children of a raylet that this process started."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            is_one = (process / "cmdline").read_bytes().startswith(b"ray::Generator")
            if is_one and parent(parent(int(process.name))) == os.getpid():
                found.append(int(process.name))
        except OSError:
            continue
    return sorted(found)


def parent(process: int) -> int:
    """The parent of a process."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_host_that_is_killed_is_told_and_nothing_else_is_lost() -> None:
    killer = killing_one(after=4.0)
    document = load(users="4,6", duration="8s")
    killer.join()
    first, second = document["runs"]
    [lost] = [host for host in first["hosts"] if host["lost"]]
    [left] = [host for host in first["hosts"] if not host["lost"]]
    assert (lost["sessions"], lost["operations"], left["sessions"]) == (2, 0, 2)
    assert lost["lost"]["operations"] > 0 and lost["lost"]["why"] in ("its process ended", "it cannot be reached")
    held_against_its_hosts(first)
    assert first["ended"] == {"how": "done"} and list(first["failures"].values()) == [2]
    assert min(interval["operations"] for interval in first["intervals"][:8]) > 0
    assert any(f"the load host {lost['host']} was lost with 2 sessions" in warning for warning in document["warnings"])
    # The other one has all users of the next load point.
    assert [(host["host"], host["sessions"]) for host in second["hosts"]] == [(left["host"], 6)]
    held_against_its_hosts(second)


def test_a_host_that_is_killed_ends_the_run_where_that_is_asked_for() -> None:
    killer = killing_one(after=4.0)
    document = load(users="4,6", duration="20s", on_lost_host="stop")
    killer.join()
    [run] = document["runs"]
    assert run["ended"]["how"] == "stopped" and "was lost" in run["ended"]["why"]
    assert run["operations"] > 0 and run["duration_ns"] < 20_000_000_000


def test_a_password_goes_to_the_hosts_and_into_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    up = cli("lab", "up", "--name", "python-load", "--state", folder, "--format", "json")
    try:
        record = json.loads(up)
        password = Path(record["password_file"]).read_text().strip()
        run = cluster.bench(
            record["url"], password=password, slots=2, users=2, duration="500ms", warmup="0s", output=tmp_path / "run"
        )
        assert run.to_dict()["runs"][0]["operations"] > 0
        for file in (tmp_path / "run").iterdir():
            assert password.encode() not in file.read_bytes()
    finally:
        cli("lab", "down", "python-load", "--state", folder)


def test_what_needs_one_machine_is_refused() -> None:
    with pytest.raises(smbscope.ArgumentError, match="--capture sees no packets of other hosts"):
        load(capture=True)
    with pytest.raises(smbscope.ArgumentError, match="--by depends on the order"):
        load(by="share")
    with pytest.raises(smbscope.RunError, match="a local folder exists on one machine only"):
        load(target="file:/tmp")
    with pytest.raises(smbscope.RunError, match=r"cannot join the Ray cluster 127\.0\.0\.1:1: Connection refused"):
        cluster.bench(address="127.0.0.1:1", users=1, workload="echo")


def test_the_verb_is_that_of_the_command_line(tmp_path: Path) -> None:
    address = ray.get_runtime_context().gcs_address
    options = [
        "--cluster",
        address,
        "--workload",
        "echo",
        "--users",
        "2",
        "--duration",
        "500ms",
        "--warmup",
        "0s",
        "-q",
    ]
    text = cli("cluster", "bench", *options, "--full")
    assert "Load hosts" in text and "Sessions" in text
    assert "smbscope cluster bench" in cli("cluster", "--help")
    assert "cluster has analyze, bench and study" in cli("cluster", "compare", status=2)
    plain = subprocess.run([COMMAND, "cluster", "analyze", tmp_path / "gone.pcap", "--cluster", address], check=False)
    assert plain.returncode == 1

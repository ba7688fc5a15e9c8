"""smbscope.cluster on a Ray of this machine with two workers: the report is that of one process."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pyarrow.dataset
import pytest
import ray

import smbscope
from conftest import SMB1, unpacked
from smbscope import cluster
from smbscope.cluster import _store

FILES = 64


def records(capture: bytes) -> Iterator[bytes]:
    """The records of a little-endian pcap."""
    at = 24
    while at + 16 <= len(capture):
        end = at + 16 + int.from_bytes(capture[at + 8 : at + 12], "little")
        yield capture[at:end]
        at = end


@pytest.fixture(scope="module", autouse=True)
def workers() -> Iterator[None]:
    """Two workers."""
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def rotated(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A rotated set: its connections live through many files."""
    capture = unpacked(SMB1)
    packets = list(records(capture))
    folder = tmp_path_factory.mktemp("rotated")
    files = [folder / f"{number:02}.pcap" for number in range(FILES)]
    for number, file in enumerate(files):
        begin, end = (len(packets) * at // FILES for at in (number, number + 1))
        file.write_bytes(capture[:24] + b"".join(packets[begin:end]))
    return files


@pytest.fixture(scope="module")
def whole(rotated: list[Path]) -> smbscope.Analysis:
    """The analysis of one process."""
    return smbscope.analyze(rotated)


def test_the_report_is_that_of_one_process(rotated: list[Path], whole: smbscope.Analysis) -> None:
    told: list[cluster.Progress] = []
    analysis = cluster.analyze(str(rotated[0].parent / "*.pcap"), parts=5, progress=told.append)
    assert analysis.to_json() == whole.to_json()
    assert (told[-1].files_divided, told[-1].parts_followed) == (FILES, 5)


def test_options_are_those_of_analyze(rotated: list[Path]) -> None:
    in_parts = cluster.analyze(rotated, parts=3, filter="group == Read", interval="2s", title="reads")
    assert (
        in_parts.to_json() == smbscope.analyze(rotated, filter="group == Read", interval="2s", title="reads").to_json()
    )


def test_exchanges_are_a_data_set_with_a_file_a_part(
    rotated: list[Path], whole: smbscope.Analysis, tmp_path: Path
) -> None:
    folder = tmp_path / "exchanges"
    cluster.analyze(rotated, parts=3, exchanges=str(folder))
    assert sorted(file.name for file in folder.iterdir()) == [f"part-{part:05}.parquet" for part in range(3)]
    table = pyarrow.dataset.dataset(folder).to_table()
    expected = pyarrow.table(whole.exchanges())
    assert table.num_rows == expected.num_rows > 1_000
    columns = ["request_first_packet", "response_last_packet", "response_last_ns", "message_id"]
    rows, wanted = (sorted(map(str, some.select(columns).to_pylist())) for some in (table, expected))
    assert rows == wanted
    assert len(set(table["exchange_id"].to_pylist())) == table.num_rows


def test_a_corrupt_file_is_left_out_and_named(rotated: list[Path], tmp_path: Path) -> None:
    corrupt, gone = tmp_path / "corrupt.pcap", tmp_path / "gone.pcap"
    corrupt.write_bytes(b"this was a capture once" * 100)
    document = cluster.analyze([*rotated[:10], corrupt, gone, *rotated[10:20]], parts=2).to_dict()
    expected = smbscope.analyze(rotated[:20]).to_dict()
    warnings = [warning for warning in document["warnings"] if warning not in expected["warnings"]]
    assert str(corrupt) in warnings[0] and "(2,300 bytes were left out)" in warnings[0]
    assert str(gone) in warnings[1]
    document["warnings"] = expected["warnings"]
    assert document == expected


def running(task: str) -> list[int]:
    """The processes of Ray that run a task of this name."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            title = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if title.startswith(b"ray::" + task.encode()):
            found.append(int(process.name))
    return found


def test_a_worker_that_is_killed_is_replaced(rotated: list[Path], whole: smbscope.Analysis) -> None:
    killed: list[int] = []
    over = threading.Event()

    def kill() -> None:
        while not killed and not over.is_set():
            for process in running("_divide")[:1]:
                os.kill(process, signal.SIGKILL)
                killed.append(process)
            time.sleep(0.001)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        analysis = cluster.analyze(rotated, parts=5)
    finally:
        over.set()
        killer.join()
    assert killed, "a task was killed"
    assert analysis.to_json() == whole.to_json()


def test_files_may_be_uris_and_a_store_has_options(rotated: list[Path], whole: smbscope.Analysis) -> None:
    folder = rotated[0].parent
    uris = _store.expand(f"{folder.as_uri()}/*.pcap")
    assert uris == [file.as_uri() for file in rotated]
    assert cluster.analyze(uris, parts=2).to_dict()["commands"] == whole.to_dict()["commands"]
    store = "s3://bucket/tmp/?endpoint_override=localhost:9000&scheme=http"
    inside = "s3://bucket/tmp/pieces?endpoint_override=localhost:9000&scheme=http"
    assert _store.within(store, "pieces") == inside
    # Options are no pattern, a `?` before a letter without `=` is one.
    assert _store.expand(inside) == [inside]
    assert _store.within("/scratch/what?", "pieces") == "/scratch/what?/pieces"


def test_files_that_are_not_there_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(smbscope.ArgumentError, match="no file matches"):
        cluster.analyze(str(tmp_path / "*.pcap"))
    with pytest.raises(smbscope.CaptureError, match=r"gone\.pcap"):
        cluster.analyze(tmp_path / "gone.pcap")

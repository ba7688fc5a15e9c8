"""Errors, signals and threads."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import smbscope
from conftest import DATA, OFFICE, cli, unpacked


def test_an_error_is_the_line_of_the_command_line(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no capture")
    empty = tmp_path / "without captures"
    empty.mkdir()
    for path in (text, tmp_path / "nothing.pcap", empty):
        with pytest.raises(smbscope.CaptureError) as raised:
            smbscope.analyze(path)
        assert f"smbscope: {raised.value}\n" == cli("analyze", path, status=1)


def test_bad_options_are_argument_errors(tmp_path: Path) -> None:
    for options, said in (
        ({"filter": "nonsense =="}, "--filter"),
        ({"by": "colour"}, "colour"),
        ({"threads": 0}, "--threads"),
        ({"episode": 999}, "--episode 999: there "),
        ({"thresholds": tmp_path / "none.toml"}, "cannot read "),
    ):
        arguments: dict[str, Any] = dict(options)
        with pytest.raises(smbscope.ArgumentError) as raised:
            smbscope.analyze(OFFICE, **arguments)
        assert said in str(raised.value) and "\n" not in str(raised.value)
    with pytest.raises(TypeError):
        smbscope.analyze(OFFICE, colour=True)  # type: ignore[call-arg]


def test_all_errors_have_one_base() -> None:
    for error in (smbscope.ArgumentError, smbscope.CaptureError, smbscope.RunError, smbscope.LimitError):
        assert issubclass(error, smbscope.SmbscopeError) and error.__module__ == "smbscope"


def test_hostile_captures_are_analysed_or_refused(tmp_path: Path) -> None:
    # Damaged at random, from a fixed seed: no panic, which would be no SmbscopeError, and no crash.
    original = unpacked(DATA / "own" / "nano_SMB3_11.pcap.zst")[:300_000]
    chance = random.Random(17)
    for number in range(100):
        damaged = bytearray(original)
        for _ in range(chance.randrange(1, 200)):
            damaged[chance.randrange(24, len(damaged))] = chance.randrange(256)
        capture = tmp_path / f"{number}.pcap"
        capture.write_bytes(damaged[: chance.randrange(24, len(damaged))])
        try:
            analysis = smbscope.analyze(capture)
        except smbscope.SmbscopeError as error:
            assert "please report" not in str(error)
        else:
            assert sum(len(batch) for batch in analysis.exchanges()) >= 0
            assert all(len(analysis.table(name)) >= 0 for name in analysis.tables)


@contextmanager
def ctrl_c_after(seconds: float) -> Iterator[Callable[[], float]]:
    """Send this process SIGINT, and tell how long after it something happened."""
    sent = 0.0

    def send() -> None:
        nonlocal sent
        time.sleep(seconds)
        sent = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield lambda: time.monotonic() - sent
    finally:
        thread.join()


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[Path]:
    """A named pipe that somebody holds open and never writes to, after the beginning of a capture."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR)
    os.write(writer, unpacked(OFFICE)[:4096])
    yield pipe
    os.close(writer)


def test_ctrl_c_ends_an_analysis_that_waits(silent: Path) -> None:
    with ctrl_c_after(0.3) as since, pytest.raises(KeyboardInterrupt):
        smbscope.analyze(silent)
    assert since() < 2


def test_ctrl_c_ends_the_exchange_table(office: smbscope.Analysis, silent: Path) -> None:
    waiting = smbscope.analyze(OFFICE)
    assert waiting is not office
    with ctrl_c_after(0.3) as since, pytest.raises(KeyboardInterrupt):
        while True:
            list(waiting.exchanges())
    assert since() < 2
    with ctrl_c_after(0.3) as since, pytest.raises(KeyboardInterrupt):
        try:
            while True:
                pa.table(waiting.exchanges())
        except pa.ArrowException:
            # It ends the stream first; Python's own exception comes with the next step.
            time.sleep(1)
    assert since() < 2


def threads() -> int:
    """The threads of this process, Python's and others."""
    return len(list(Path("/proc/self/task").iterdir()))


def test_who_reads_no_further_ends_the_reading() -> None:
    before = threads()
    exchanges = smbscope.analyze(OFFICE).exchanges()
    for _ in range(20):
        assert len(next(iter(exchanges))) > 0
    deadline = time.monotonic() + 5
    while threads() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threads() <= before


def test_other_threads_go_on_meanwhile(office: smbscope.Analysis) -> None:
    results: list[str] = []
    threads = [threading.Thread(target=lambda: results.append(smbscope.analyze(OFFICE).to_json())) for _ in range(4)]
    for thread in threads:
        thread.start()
    ticks = 0
    while any(thread.is_alive() for thread in threads):
        time.sleep(0.001)
        ticks += 1
    assert results == [office.to_json()] * 4
    # Were the lock held, this thread would have come to run between analyses only.
    assert ticks > 8

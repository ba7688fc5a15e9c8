"""What the tests share: the bundled captures, the installed command, and what may be missing."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import smbscope

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
OFFICE = DATA / "demo-smb311-office.pcap.zst"
SMB1 = DATA / "demo-smb1-netbench.pcap.zst"
COMMAND = Path(sys.prefix) / "bin" / "smbscope"


def cli(*arguments: "str | Path", status: int = 0) -> str:
    """What the installed command prints."""
    done = subprocess.run([COMMAND, *arguments], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def unpacked(capture: Path) -> bytes:
    """The bytes of a bundled capture as they were captured."""
    return subprocess.run(["zstd", "-dqc", capture], capture_output=True, check=True).stdout


def needs_samba() -> None:
    """Skip a test where there is no Samba; in CI, which installs it, that is a failure."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
    if not any((Path(folder) / "smbd").exists() for folder in path.split(":")):
        skip("the Python package on a private server", "smbd is not installed")


def needs_namespaces() -> None:
    """Skip a test where network namespaces can't be made; in CI that is a failure."""
    if os.geteuid() != 0:
        skip("load from several hosts, in network namespaces", "only root can make them")
    made = subprocess.run(["ip", "netns", "add", "smbscope-try"], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        skip("load from several hosts, in network namespaces", made.stderr.strip())
    subprocess.run(["ip", "netns", "del", "smbscope-try"], check=True)


def skip(what: str, why: str) -> None:
    """Skip a test, and note it where it is seen."""
    assert os.environ.get("SMBSCOPE_MISSING") != "fail", f"SMBSCOPE_MISSING=fail, and {why}"
    if note := os.environ.get("SMBSCOPE_SKIPPED"):
        with Path(note).open("a", encoding="utf-8") as file:
            file.write(f"skipped: {what}: {why}\n")
    pytest.skip(why)


@pytest.fixture(scope="session")
def office() -> Iterator[smbscope.Analysis]:
    """The analysis of a capture of four users of an office mix."""
    yield smbscope.analyze(OFFICE)

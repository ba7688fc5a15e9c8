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
    if any((Path(folder) / "smbd").exists() for folder in path.split(":")):
        return
    assert os.environ.get("SMBSCOPE_MISSING") != "fail", "SMBSCOPE_MISSING=fail, and smbd is missing"
    if note := os.environ.get("SMBSCOPE_SKIPPED"):
        with Path(note).open("a", encoding="utf-8") as file:
            file.write("skipped: the Python package on a private server: smbd is not installed\n")
    pytest.skip("smbd is not installed")


@pytest.fixture(scope="session")
def office() -> Iterator[smbscope.Analysis]:
    """The analysis of a capture of four users of an office mix."""
    yield smbscope.analyze(OFFICE)

#!/usr/bin/env python3
"""Recreates the bundled captures with trouble, a slow server and a network that loses packets, and one without.

    sudo scripts/trouble_captures.py --smbscope target/release/smbscope [-o tests/data] [NAME ...]

A real Samba server from `smbscope lab` and smbclient run in a separate network:

before-scanner  nothing is slow: the users, files and pauses of slow-server, without its scanner
slow-server     the server scans every file for viruses when it is opened (ClamAV). Presentations are archives of long
                pages that the scanner unpacks; letters are plain text
lossy-network   the same users and files without the scanner, on a network that loses 3% of its packets

A capture is kept only if smbscope names the culprit. Needs root and: samba, samba-vfs-modules, clamav-daemon,
smbclient, tcpdump, iproute2, ethtool, zstd.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from answer_lab import Lab, LabError, finish
from answer_report import Report

# Users, each with a session, and the files that each opens.
USERS = 3
VISITS = 30
LETTERS = 20
PRESENTATIONS = 20
SLIDES = 40
# Mean pause of a user after a file in seconds.
REST_S = 0.25


@dataclass(frozen=True)
class Trouble:
    """Lab options that cause the trouble, and the culprit that smbscope must name."""

    options: Sequence[str]
    culprit: str
    # Seed of the files and of what users open, if other than the name.
    seed: str | None = None


TROUBLES = {
    "before-scanner": Trouble(("--delay", "250us"), "nothing", seed="slow-server"),
    "slow-server": Trouble(("--delay", "250us", "--antivirus", "clamav"), "server"),
    "lossy-network": Trouble(("--delay", "250us", "--loss", "3%"), "network"),
}


def write_files(share: Path, rng: random.Random) -> list[str]:
    """Writes short letters and presentations. Returns their names on the share."""
    (share / "small.txt").unlink()
    names = []
    for folder in ("letters", "slides"):
        (share / folder).mkdir()
    for number in range(1, LETTERS + 1):
        name = f"letters/letter-{number:02}.txt"
        (share / name).write_text(f"Dear colleague, letter {number} says nothing.\n" * rng.randint(60, 200))
        names.append(name)
    for number in range(1, PRESENTATIONS + 1):
        name = f"slides/review-{number:02}.pptx"
        with zipfile.ZipFile(share / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for slide in range(1, SLIDES + 1):
                page = "<a:t>Nothing was decided.</a:t>\n" * rng.randint(4_000, 6_000)
                archive.writestr(f"ppt/slides/slide{slide}.xml", page)
        names.append(name)
    return names


def visits(names: Sequence[str], rng: random.Random) -> str:
    """Returns a user's smbclient input. smbclient runs lines after `!` in a shell."""
    commands = ["ls", "ls letters\\*", "ls slides\\*"]
    for _ in range(VISITS):
        name = rng.choice(names).replace("/", "\\")
        commands += [f"get {name} /dev/null", f"!sleep {min(rng.expovariate(1 / REST_S), 4 * REST_S):.2f}"]
    return "\n".join([*commands, "quit\n"])


def work(lab: Lab, name: str, typed: str) -> subprocess.Popen[str]:
    script = lab.folder / f"{name}.in"
    script.write_text(typed)
    with script.open() as keyboard:
        return lab.client("smbclient", lab.target, name=name, stdin=keyboard.fileno())


def make(name: str, trouble: Trouble, smbscope: Path, out: Path) -> None:
    rng = random.Random(trouble.seed or name)
    with tempfile.TemporaryDirectory() as scratch, Lab(smbscope, *trouble.options) as lab:
        names = write_files(lab.share, rng)
        capture = lab.capture(f"demo-{name}")
        finish([work(lab, f"user{number}", visits(names, rng)) for number in range(USERS)])
        capture.stop()
        report = Report(smbscope, capture.path)
        print(f"{name}: {report.headline}\n    {report.table()}", flush=True)
        if report.culprit != trouble.culprit:
            raise LabError(f"{name}: smbscope names {report.culprit} instead of {trouble.culprit}; run again")
        packed = Path(scratch) / f"{capture.path.name}.zst"
        subprocess.run(["zstd", "-q", "-19", "--long=24", str(capture.path), "-o", str(packed)], check=True)
        (out / packed.name).write_bytes(packed.read_bytes())
        print(f"    {packed.stat().st_size:,} bytes in {out / packed.name}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--smbscope", type=Path, default=Path("target/release/smbscope"), metavar="PROGRAM")
    parser.add_argument("-o", "--output", type=Path, default=Path("tests/data"), metavar="DIR")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these of {', '.join(TROUBLES)}")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(TROUBLES):
        parser.error(f"no such capture: {', '.join(sorted(unknown))}; there are {', '.join(TROUBLES)}")
    try:
        for name in arguments.names or TROUBLES:
            make(name, TROUBLES[name], arguments.smbscope.resolve(strict=True), arguments.output)
    except LabError as error:
        print(f"trouble_captures: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Writes a load file in dbench's format with the mix of operations of the NetBench Disk Mix.

The file is generated from published counts (the constants below), not copied from another load file. The operations
of a pass are drawn from a deck with the right number of every kind, shuffled with a fixed seed. The mix reproduces:

* the share of each operation, and the share of creates, path queries and searches that find nothing;
* the sizes of reads and writes (mostly 4 KiB reads, 64 KiB and 4 KiB writes, one-byte size extensions);
* the purpose of each open: no input or output, reading, writing, or both.

    scripts/make_loadfile.py --seed 1 --scale 8 -o netbench-like.txt

`--scale N` divides the sizes of files, reads and writes above 4 KiB by N; the operations stay the same.
`--operations N` sets the length of a pass. smbtorture's `bench.nbench` and `dbench` read the result.
"""

import argparse
import random
import sys
from collections.abc import Callable
from pathlib import Path

OK = "NT_STATUS_OK"
NO_NAME = "NT_STATUS_OBJECT_NAME_NOT_FOUND"
NO_FILE = "NT_STATUS_NO_SUCH_FILE"

# Operations of the mix, by count (458,344 in all).
COUNTS = {
    "ReadX": 124_199,
    "NTCreateX": 79_230,
    "QUERY_PATH_INFORMATION": 71_814,
    "WriteX": 39_502,
    "FIND_FIRST": 27_765,
    "Unlink": 16_000,
    "QUERY_FS_INFORMATION": 13_168,
    "QUERY_FILE_INFORMATION": 12_585,
    "SET_FILE_INFORMATION": 6_454,
    "Flush": 5_553,
    "Rename": 3_355,
    "LockX": 258,
}
OPERATIONS_OF_A_PASS = 3_543
NOT_FOUND = {"NTCreateX": 0.265, "QUERY_PATH_INFORMATION": 0.34, "FIND_FIRST": 0.52}
READ_SIZES = {4096: 67, 61_440: 13, 16_384: 8, 1_024: 8, 512: 4}
WRITE_SIZES = {65_536: 32, 4_096: 25, 1: 19, 16_384: 14, 512: 10}
OPEN_USES = {"nothing": 37, "read": 37, "write": 13, "both": 13}
APPLICATIONS = ("sheet", "text", "slides", "draw", "table", "layout")
FILES = 146
WORKING_SET = 24_200_000
WHOLE = 458_344


class Loadfile:
    """The load file so far, and the state of the share at this point."""

    def __init__(self, rng: random.Random, scale: int) -> None:
        self.rng = rng
        self.scale = scale
        self.lines: list[str] = []
        self.files: dict[str, int] = {}
        self.handle = 9000
        self.created = 0

    def emit(self, *words: object) -> None:
        self.lines.append(" ".join(str(word) for word in words))

    def scaled(self, size: int) -> int:
        return size if size <= 4096 else max(1, size // self.scale)

    def path(self, name: str) -> str:
        return f'"\\clients\\client1\\~work\\{name}"'

    def new_name(self) -> str:
        self.created += 1
        application = APPLICATIONS[self.created % len(APPLICATIONS)]
        return f"{application}\\file{self.created:04d}.{application[:3]}"

    def absent_name(self) -> str:
        return f"{self.rng.choice(APPLICATIONS)}\\none{self.rng.randrange(1000):03d}.tmp"

    def pick(self) -> str:
        return self.rng.choice(sorted(self.files))

    def drawn(self, weights: dict[int, int]) -> int:
        return self.scaled(self.rng.choices(list(weights), list(weights.values()))[0])

    def open(self, name: str, disposition: int) -> int:
        """Opens (1) or creates (2) a file."""
        self.handle += 1
        self.emit("NTCreateX", self.path(name), "0x40", f"0x{disposition}", self.handle, OK)
        if disposition == 2:
            self.files[name] = 0
        return self.handle

    def close(self, handle: int) -> None:
        self.emit("Close", handle, OK)

    def write(self, handle: int, name: str, offset: int, size: int) -> None:
        self.emit("WriteX", handle, offset, size, size, OK)
        self.files[name] = max(self.files[name], offset + size)

    def read(self, handle: int, name: str, size: int) -> None:
        held = self.files[name]
        offset = self.rng.randrange(0, max(1, held - size + 1), 512) if held > size else 0
        got = max(0, min(size, held - offset))
        self.emit("ReadX", handle, offset, size, got, OK)

    def set_up(self) -> None:
        """Creates an empty directory and the files of the working set."""
        self.emit("Deltree", '"\\clients\\client1"', OK)
        self.emit("Mkdir", '"\\clients"', OK)
        for directory in ("", "\\~work", *(f"\\~work\\{name}" for name in APPLICATIONS)):
            self.handle += 1
            self.emit("NTCreateX", f'"\\clients\\client1{directory}"', "0x1", "0x2", self.handle, OK)
            self.close(self.handle)
        sizes = [self.rng.lognormvariate(0, 1.4) for _ in range(FILES)]
        unit = WORKING_SET / self.scale / sum(sizes)
        for size in sizes:
            name = self.new_name()
            left = max(4096, int(size * unit))
            handle = self.open(name, 2)
            self.write(handle, name, left - 1, 1)
            for offset in range(0, left, 65_536):
                self.write(handle, name, offset, min(65_536, left - offset))
            self.close(handle)

    def work(self, operations: int) -> None:
        """Writes one pass: a shuffled deck with the right number of every operation."""
        share = {name: count * operations / WHOLE for name, count in COUNTS.items()}
        failed = {name: round(share[name] * part) for name, part in NOT_FOUND.items()}
        opens = round(share["NTCreateX"]) - failed["NTCreateX"]
        uses = {use: round(opens * part / 100) for use, part in OPEN_USES.items()}
        reads_an_open = share["ReadX"] / (uses["read"] + uses["both"])
        writes_an_open = share["WriteX"] / (uses["write"] + uses["both"])
        deck: list[Callable[[], None]] = []

        def times(count: float, action: Callable[[], None]) -> None:
            deck.extend([action] * round(count))

        times(uses["nothing"] - share["LockX"], lambda: self.visit(0, 0))
        times(share["LockX"], self.lock)
        times(uses["read"], lambda: self.visit(reads_an_open, 0))
        times(uses["write"], lambda: self.save(writes_an_open))
        times(uses["both"], lambda: self.visit(reads_an_open, writes_an_open))
        times(failed["NTCreateX"], self.open_nothing)
        times(failed["QUERY_PATH_INFORMATION"], self.query_nothing)
        times(share["QUERY_PATH_INFORMATION"] - failed["QUERY_PATH_INFORMATION"], self.query)
        times(failed["FIND_FIRST"], self.search_nothing)
        times(share["FIND_FIRST"] - failed["FIND_FIRST"], self.search)
        times(share["QUERY_FS_INFORMATION"], lambda: self.emit("QUERY_FS_INFORMATION", 259, OK))
        times(share["Rename"], self.rename)
        times(share["Unlink"], self.unlink)
        # Deal the operations that need an open file to the opens of this pass.
        self.per_open = {
            name: share[name] / opens for name in ("QUERY_FILE_INFORMATION", "SET_FILE_INFORMATION", "Flush")
        }
        self.rng.shuffle(deck)
        for action in deck:
            action()

    def times(self, mean: float) -> int:
        """Returns a random whole number with this mean."""
        return int(mean) + (self.rng.random() < mean % 1)

    def on_handle(self, handle: int, *, written: bool) -> None:
        for _ in range(self.times(self.per_open["QUERY_FILE_INFORMATION"])):
            self.emit("QUERY_FILE_INFORMATION", handle, 1004, OK)
        for _ in range(self.times(self.per_open["SET_FILE_INFORMATION"])):
            self.emit("SET_FILE_INFORMATION", handle, 1004, OK)
        # Only written files are flushed, about a quarter of the opens.
        for _ in range(self.times(self.per_open["Flush"] * 100 / 26) if written else 0):
            self.emit("Flush", handle, OK)

    def visit(self, reads: float, writes: float) -> None:
        name = self.pick()
        handle = self.open(name, 1)
        for _ in range(self.times(reads)):
            self.read(handle, name, self.drawn(READ_SIZES))
        for _ in range(self.times(writes)):
            size = self.drawn(WRITE_SIZES)
            self.write(handle, name, self.rng.randrange(0, self.files[name] + 1), size)
        self.on_handle(handle, written=writes > 0)
        self.close(handle)

    def save(self, writes: float) -> None:
        name = self.new_name()
        handle = self.open(name, 2)
        for _ in range(self.times(writes)):
            self.write(handle, name, self.files[name], self.drawn(WRITE_SIZES))
        self.on_handle(handle, written=True)
        self.close(handle)

    def lock(self) -> None:
        handle = self.open(self.pick(), 1)
        self.emit("LockX", handle, 0, 1, OK)
        self.emit("UnlockX", handle, 0, 1, OK)
        self.close(handle)

    def open_nothing(self) -> None:
        self.handle += 1
        self.emit("NTCreateX", self.path(self.absent_name()), "0x40", "0x1", self.handle, NO_NAME)

    def query_nothing(self) -> None:
        self.emit("QUERY_PATH_INFORMATION", self.path(self.absent_name()), 1004, NO_NAME)

    def query(self) -> None:
        self.emit("QUERY_PATH_INFORMATION", self.path(self.pick()), self.rng.choice((1004, 1035)), OK)

    def search_nothing(self) -> None:
        self.emit("FIND_FIRST", self.path("<.JNK"), 260, 1366, 0, NO_FILE)

    def search(self) -> None:
        directory = self.rng.choice(APPLICATIONS)
        entries = 2 + sum(name.startswith(directory + "\\") for name in self.files)
        self.emit("FIND_FIRST", self.path(f"{directory}\\*"), 260, 1366, min(entries, 10), OK)

    def rename(self) -> None:
        old, new = self.pick(), self.new_name()
        self.emit("Rename", self.path(old), self.path(new), OK)
        self.files[new] = self.files.pop(old)

    def unlink(self) -> None:
        """Removes a file. Creates one first if the pass has made too few, like the temporary files of the mix."""
        if len(self.files) < FILES:
            handle = self.open(self.new_name(), 2)
            self.close(handle)
        name = self.pick()
        self.emit("Unlink", self.path(name), "0x6", OK)
        del self.files[name]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=int, default=1, help="divide sizes above 4 KiB by this")
    parser.add_argument("--operations", type=int, default=OPERATIONS_OF_A_PASS, help="operations of a pass")
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, help="default: standard output")
    options = parser.parse_args()

    loadfile = Loadfile(random.Random(options.seed), options.scale)
    loadfile.set_up()
    for _ in range(options.passes):
        loadfile.work(options.operations)
    text = "\n".join(loadfile.lines) + "\n"
    if options.output:
        options.output.write_text(text, encoding="ascii")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

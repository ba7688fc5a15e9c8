"""Files by paths and URIs: local and shared file systems, and object stores through pyarrow.fs."""

import glob
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from pyarrow import fs

from smbscope._smbscope import ArgumentError

Source = str | PathLike[str]


def _split(name: str) -> tuple[str, str]:
    """A name without the options of a URI, and those: `?endpoint_override=…` is no pattern."""
    options = re.search(r"\?\w+=", name) if "://" in name else None
    return (name[: options.start()], name[options.start() :]) if options else (name, "")


def _opened(name: str) -> tuple[fs.FileSystem, str]:
    """The file system of a URI, and the path there; a plain path is local."""
    if "://" in name:
        system, path = fs.FileSystem.from_uri(name)
        return system, str(path)
    return fs.LocalFileSystem(), str(Path(name).absolute())


def within(folder: str, name: str) -> str:
    """A name in a folder, which may be a URI."""
    place, options = _split(folder)
    return f"{place.rstrip('/')}/{name}{options}"


def expand(sources: Source | Iterable[Source]) -> list[str]:
    """The files that sources stand for, in their order; those of a pattern in the order of their names."""
    given = [sources] if isinstance(sources, str | PathLike) else list(sources)
    files: list[str] = []
    for source in [fspath(one) for one in given]:
        found = _matching(source) if glob.has_magic(_split(source)[0]) else [source]
        if not found:
            message = f"{source}: no file matches"
            raise ArgumentError(message)
        files.extend(found)
    if not files:
        message = "there are no files to analyse"
        raise ArgumentError(message)
    return files


def _matching(pattern: str) -> list[str]:
    if "://" not in pattern:
        return sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - patterns may be absolute
    place, options = _split(pattern)
    scheme, _, path = place.partition("://")
    folder = path[: min(path.index(sign) for sign in "*?[" if sign in path)].rpartition("/")[0]
    system, root = fs.FileSystem.from_uri(f"{scheme}://{folder}{options}")
    infos = system.get_file_info(fs.FileSelector(root, recursive=True))
    names = sorted(f"{folder}{info.path[len(root) :]}" for info in infos if info.is_file)
    return [f"{scheme}://{name}{options}" for name in names if Path(name).match(path)]


def size(name: str) -> int:
    """The bytes of a file; 0 where there is none."""
    system, path = _opened(name)
    return int(system.get_file_info(path).size or 0)


@contextmanager
def fetched(name: str) -> Iterator[Path]:
    """A file as a local one: itself, or a copy that goes away."""
    system, path = _opened(name)
    if isinstance(system, fs.LocalFileSystem):
        yield Path(path if "://" in name else name)
        return
    with tempfile.TemporaryDirectory(prefix="smbscope-") as folder:
        local = Path(folder) / (Path(path).name or "capture")
        with system.open_input_stream(path) as source, local.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        yield local


@dataclass(frozen=True)
class Store:
    """A folder that all tasks write to and read from."""

    uri: str

    def prepare(self) -> None:
        """Make the folder."""
        system, path = _opened(self.uri)
        system.create_dir(path, recursive=True)

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        system, path = _opened(self.uri)
        system.delete_dir(path)

    def discard(self, name: str) -> None:
        """Remove a file, if it is there."""
        system, root = _opened(self.uri)
        path = f"{root}/{name}"
        if system.get_file_info(path).is_file:
            system.delete_file(path)

    @contextmanager
    def writing(self, names: list[str]) -> Iterator[list[Path]]:
        """Local paths to write to. When all are written, they get their names at once, whole or not at all."""
        system, root = _opened(self.uri)
        with tempfile.TemporaryDirectory(
            prefix=".writing-", dir=root if isinstance(system, fs.LocalFileSystem) else None
        ) as folder:
            paths = [Path(folder) / name for name in names]
            yield paths
            for path, name in zip(paths, names, strict=True):
                if isinstance(system, fs.LocalFileSystem):
                    path.replace(Path(root) / name)
                else:
                    with path.open("rb") as source, system.open_output_stream(f"{root}/{name}") as target:
                        shutil.copyfileobj(source, target, 1 << 20)

    @contextmanager
    def reading(self, names: list[str]) -> Iterator[list[Path]]:
        """Files as local ones."""
        system, root = _opened(self.uri)
        if isinstance(system, fs.LocalFileSystem):
            yield [Path(root) / name for name in names]
            return
        with tempfile.TemporaryDirectory(prefix="smbscope-") as folder:
            for name in names:
                with (
                    system.open_input_stream(f"{root}/{name}") as source,
                    (Path(folder) / name).open("wb") as target,
                ):
                    shutil.copyfileobj(source, target, 1 << 20)
            yield [Path(folder) / name for name in names]

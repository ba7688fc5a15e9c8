"""The command `smbscope`, as the package carries it; also `python -m smbscope`."""

from __future__ import annotations

import signal
import sys

from smbscope import _smbscope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn


def _hosts(address: str, slots: int) -> Sequence[tuple[str, bool, Callable[[bytes], bytes]]]:
    """Load generators on the hosts of a Ray cluster."""
    # What Ray prints is no part of the report.
    sys.stdout = sys.stderr
    from smbscope.cluster import _load

    return _load.hosts(address, slots)


def main() -> NoReturn:
    """Run the command line, and end with its status."""
    # Ctrl-C is for the command, which ends with what was measured so far.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    arguments = sys.argv[1:]
    if arguments[:1] == ["cluster"]:
        from smbscope import _cluster_verb

        arguments = _cluster_verb.translated(arguments[1:])
    # With -P, nothing in the current folder is taken for the package.
    sys.exit(_smbscope.main([sys.executable, "-P", "-m", "smbscope"], arguments, _hosts))


if __name__ == "__main__":
    main()

"""The command `smbscope`, as the package carries it; also `python -m smbscope`."""

from __future__ import annotations

import signal
import sys

from smbscope import _smbscope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> NoReturn:
    """Run the command line, and end with its status."""
    # Ctrl-C is for the command, which ends with what was measured so far.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # With -P, nothing in the current folder is taken for the package.
    sys.exit(_smbscope.main([sys.executable, "-P", "-m", "smbscope"], sys.argv[1:]))


if __name__ == "__main__":
    main()

"""Tests of the laboratory of network namespaces: `python -m unittest discover -s scripts`."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from lab import lacking

SCRIPTS = Path(__file__).parent


class Skipped(unittest.TestCase):
    @unittest.skipIf(os.geteuid() != 0 or shutil.which("setpriv") is None, "it needs root and setpriv")
    def test_root_without_a_right_skips_the_verdicts_and_says_why(self) -> None:
        """What a container takes from its root: capabilities(7)."""
        if (reason := lacking()) is not None:
            self.skipTest(reason)
        for right in ("sys_admin", "net_admin", "net_raw"):
            with self.subTest(right), tempfile.TemporaryDirectory() as folder:
                note = Path(folder) / "skipped"
                command = ["setpriv", f"--bounding-set=-{right}", f"--inh-caps=-{right}", sys.executable]
                command += [str(SCRIPTS / "verdicts.py"), "--smbscope", sys.executable, "--skip-note", str(note)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stdout, "^verdicts: SKIPPED .*: .*Operation not permitted")
                self.assertIn("Operation not permitted", note.read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()

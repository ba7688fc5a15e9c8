"""Tests of the check for advisories: `python -m unittest discover -s scripts`."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from check_advisories import matches, version

SCRIPT = Path(__file__).with_name("check_advisories.py")
ADVISORY = """```toml
[advisory]
id = "{id}"
package = "leaky"
date = "2024-01-02"
{more}

[versions]
patched = [">= 1.4.2, < 1.5.0", ">= 1.5.3"]
unaffected = ["< 1.0.0"]
```

# It leaks
"""
LOCK = '[[package]]\nname = "leaky"\nversion = "{version}"\nsource = "registry+https://example.org"\n'


def check(found: str, *, more: str = "", database: bool = True) -> subprocess.CompletedProcess[str]:
    """The check of a lock file with one crate against a database with one advisory."""
    with tempfile.TemporaryDirectory() as folder:
        crates = Path(folder) / "db" / "crates" / "leaky"
        crates.mkdir(parents=True)
        (crates / "RUSTSEC-2024-0001.md").write_text(ADVISORY.format(id="RUSTSEC-2024-0001", more=more))
        lock = Path(folder) / "Cargo.lock"
        lock.write_text(LOCK.format(version=found))
        place = Path(folder) / ("db" if database else "elsewhere")
        command = [sys.executable, str(SCRIPT), "--lock", str(lock), "--database", str(place)]
        return subprocess.run(command, capture_output=True, text=True, check=False)


class Requirements(unittest.TestCase):
    def test_requirements_hold_as_cargo_says(self) -> None:
        """The Cargo Book, Specifying Dependencies; semver.org, 11, for pre-releases."""
        for requirement, inside, outside in [
            (">= 1.2.3, < 1.3.0", ["1.2.3", "1.2.9"], ["1.2.2", "1.3.0", "1.2.3-rc.1"]),
            ("^1.2.3", ["1.2.3", "1.9.0"], ["1.2.2", "2.0.0"]),
            ("^0.2.3", ["0.2.3", "0.2.9"], ["0.3.0"]),
            ("^0.0.3", ["0.0.3"], ["0.0.4"]),
            ("1.2", ["1.2.0", "1.9.9"], ["1.1.9", "2.0.0"]),
            ("0.2", ["0.2.0", "0.2.9"], ["0.3.0"]),
            ("0", ["0.0.1", "0.9.9"], ["1.0.0"]),
            ("~1.2.3", ["1.2.3", "1.2.9"], ["1.3.0"]),
            ("~1", ["1.0.0", "1.9.0"], ["2.0.0"]),
            ("=1.2.3", ["1.2.3"], ["1.2.4"]),
            (">1.2.3", ["1.2.4"], ["1.2.3"]),
            ("<= 2", ["2.0.0", "0.1.0"], ["2.0.1"]),
            (">= 1.0.0-alpha.2", ["1.0.0-alpha.10", "1.0.0"], ["1.0.0-alpha.1", "0.9.0"]),
            ("*", ["0.0.1", "9.9.9"], []),
        ]:
            for text in inside:
                self.assertTrue(matches(requirement, version(text)), f"{text} {requirement}")
            for text in outside:
                self.assertFalse(matches(requirement, version(text)), f"{text} {requirement}")
        with self.assertRaises(ValueError):
            matches("newer than 1", version("1.0.0"))


class Check(unittest.TestCase):
    def test_a_vulnerable_crate_fails_and_a_patched_or_older_one_does_not(self) -> None:
        for found, status in [("1.4.1", 1), ("1.5.2", 1), ("1.4.2", 0), ("1.5.3", 0), ("0.9.0", 0)]:
            with self.subTest(found):
                done = check(found)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertEqual("RUSTSEC-2024-0001, VULNERABLE" in done.stderr, status == 1)

    def test_what_is_no_vulnerability_is_said_and_does_not_fail(self) -> None:
        done = check("1.4.1", more='informational = "unmaintained"')
        self.assertEqual(done.returncode, 0)
        self.assertIn("RUSTSEC-2024-0001, unmaintained", done.stderr)
        self.assertEqual(check("1.4.1", more='withdrawn = "2024-02-01"').stderr, "")

    def test_without_a_database_it_says_that_it_was_skipped(self) -> None:
        done = check("1.4.1", database=False)
        self.assertEqual((done.returncode, done.stdout), (0, "advisories: skipped, database not reachable\n"))


if __name__ == "__main__":
    unittest.main()

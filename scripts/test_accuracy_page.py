"""Tests of accuracy_page.py: `python -m unittest discover -s scripts`."""

import unittest

from accuracy_page import random_damage

PRINTED = """\
| damage | runs | allowed | right | false | recall |
|---|---:|---:|---:|---:|---:|
| bursts | 2 | 1,000 | 999 | 0 | 99.90% |
| bursts + duplicates | 3 | 1,000 | 1,000 | 0 | 100.00% |
| late start | 5 | 10 | 9 | 1 | 90.00% |
| **all** | 10 | 2,010 | 2,008 | 1 | 99.90% |
| encrypted: bursts | 1 | 4 | 3 | 0 | 75.00% |
| encrypted: late start | 1 | 4 | 2 | 0 | 50.00% |
| **encrypted: all** | 2 | 8 | 5 | 0 | 62.50% |
"""


class RandomDamage(unittest.TestCase):
    def test_rows_are_added_up_by_loss_and_by_encryption(self) -> None:
        rows = [line for line in random_damage("damage", PRINTED).splitlines() if line.startswith("| ")]
        self.assertEqual(
            rows,
            [
                "| loss | runs | allowed | right | false | recall |",
                "| bursts | 5 | 2,000 | 1,999 | 0 | 99.95% |",
                "| late start | 5 | 10 | 9 | 1 | 90.00% |",
                "| all readable | 10 | 2,010 | 2,008 | 1 | 99.90% |",
                "| encrypted | 2 | 8 | 5 | 0 | 62.50% |",
            ],
        )


if __name__ == "__main__":
    unittest.main()

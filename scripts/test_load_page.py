"""Tests of load_page.py: `python -m unittest discover -s scripts`."""

import unittest

from load_page import HEAD, page, sections, table

OLD = HEAD + "\n## Costs\n\nMeasured long ago.\n\n|a|b|\n|---|---:|\n|x|1|\n\n## Sessions\n\nnone\n"


class Page(unittest.TestCase):
    def test_what_was_not_measured_anew_is_kept(self) -> None:
        anew = {"Matrix": f"Measured today.\n\n{table(['c', 'd'], [['y', '2']])}"}
        found = page(OLD, ["Costs", "Matrix", "Sessions"], anew)
        self.assertEqual(list(sections(found)), ["Costs", "Matrix", "Sessions"])
        self.assertEqual(sections(found)["Costs"], "Measured long ago.\n\n|a|b|\n|---|---:|\n|x|1|")
        self.assertEqual(sections(found)["Matrix"], "Measured today.\n\n|c|d|\n|---|---:|\n|y|2|")

    def test_what_was_measured_anew_takes_the_place_of_the_old(self) -> None:
        found = page(OLD, ["Sessions", "Costs"], {"Costs": "new"})
        self.assertEqual(sections(found), {"Sessions": "none", "Costs": "new"})
        self.assertNotIn("long ago", found)

    def test_a_page_that_nothing_was_measured_for_stays_as_it_is(self) -> None:
        self.assertEqual(page(OLD, ["Costs", "Sessions"], {}), OLD)

    def test_a_section_that_nobody_knows_any_more_is_kept_at_the_end(self) -> None:
        self.assertEqual(list(sections(page(OLD, ["Sessions"], {}))), ["Sessions", "Costs"])

    def test_there_is_a_first_time(self) -> None:
        self.assertEqual(page("", ["Costs"], {"Costs": "new"}), HEAD + "\n## Costs\n\nnew\n")


if __name__ == "__main__":
    unittest.main()

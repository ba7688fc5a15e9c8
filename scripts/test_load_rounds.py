"""Tests of load_rounds.py: `python -m unittest discover -s scripts`."""

import unittest

from load_rounds import BudgetError, Case, Column, Cost, Plan, Spread, duration, measure, order, plan, rows

RATE = [Column("operations/s", "rate")]


def case(label: str, values: list[float], group: str = "") -> Case:
    left = iter(values)
    return Case([label], lambda: {"rate": next(left)}, group)


class Rounds(unittest.TestCase):
    def test_cases_take_turns_in_another_order_each_round(self) -> None:
        cases = [case(label, [1, 2, 3]) for label in "abcdefgh"]
        said: list[str] = []
        measure(cases, 3, said.append)
        labels = [line[-1] for line in said]
        per_round = [labels[0:8], labels[8:16], labels[16:24]]
        self.assertEqual([sorted(labels) for labels in per_round], [sorted("abcdefgh")] * 3)
        self.assertEqual(len({tuple(labels) for labels in per_round}), 3)
        self.assertEqual(order(8, 1), order(8, 1))

    def test_a_figure_is_the_median_with_half_of_the_range(self) -> None:
        """The median of 90, 100 and 104 is 100, and half of 104 - 90 is 7."""
        cases = [case("a", [104, 90, 100])]
        measure(cases, 3, lambda _: None)
        self.assertEqual(rows(cases, RATE), [["a", "100 ±7%"]])

    def test_what_noise_decides_is_left_out(self) -> None:
        """A published page once showed signed requests faster than unsigned ones, from single measurements of one
        second."""
        cases = [case("none", [1_000, 1_990, 1_500], "2.0.2"), case("signed", [2_162, 1_100, 1_600], "2.0.2")]
        measure(cases, 3, lambda _: None)
        self.assertEqual(rows(cases, RATE), [["none", "noise (1,000 – 1,990)"], ["signed", "noise (1,100 – 2,162)"]])

    def test_a_difference_within_the_spread_is_marked(self) -> None:
        cases = [
            case("none", [100, 104, 102], "3.0"),
            case("signed", [101, 103, 99], "3.0"),
            case("encrypted", [80, 82, 81], "3.0"),
            case("none", [50, 51, 52], "3.1.1"),
        ]
        measure(cases, 3, lambda _: None)
        self.assertEqual([row[1] for row in rows(cases, RATE)], ["102 ±2%", "101 ±2% ≈", "81 ±1%", "51 ±2%"])

    def test_fewer_rounds_than_three_have_no_figure(self) -> None:
        cases = [case("a", [100, 101])]
        measure(cases, 2, lambda _: None)
        self.assertEqual(rows(cases, RATE), [["a", "–"]])

    def test_what_a_server_can_not_do_is_asked_once(self) -> None:
        asked: list[int] = []
        impossible = Case(["a"], lambda: asked.append(1))
        measure([impossible], 3, lambda _: None)
        self.assertEqual((len(asked), rows([impossible], RATE)), (1, [["a", "not on this server"]]))

    def test_a_median_of_nothing_has_no_spread(self) -> None:
        self.assertEqual(Spread.of([0, 0, 0]).cell(0), "0 ±0%")


class Budget(unittest.TestCase):
    def test_a_budget_buys_rounds_first_and_then_longer_measurements(self) -> None:
        """10 cases with 1 s of overhead each: 5 rounds of 1 s take 100 s, of 3 s take 200 s; 3 rounds of 1 s take 60
        s."""
        costs = [Cost(cases=10, beside=1)]
        self.assertEqual(plan(100, costs), Plan(5, 1))
        self.assertEqual(plan(200, costs), Plan(5, 3))
        self.assertEqual(plan(60, costs), Plan(3, 1))
        self.assertEqual(plan(1e6, costs), Plan(5, 10))
        with self.assertRaisesRegex(BudgetError, "3 rounds take about 1 min"):
            plan(59, costs)

    def test_a_part_with_a_least_length_keeps_it(self) -> None:
        self.assertEqual(Cost(cases=2, beside=1, least=10).of(3, 1), 66)

    def test_times_are_read_with_their_units(self) -> None:
        self.assertEqual([duration(text) for text in ("90s", "10m", "1.5h")], [90, 600, 5400])
        for wrong in ("10", "m", "ten m", ""):
            with self.assertRaises(ValueError):
                duration(wrong)


if __name__ == "__main__":
    unittest.main()

"""Medians, intervals and ratios."""

import unittest

from harness.figures import advantage, median, ranks_outside, spread


class Figures(unittest.TestCase):
    def test_a_median_is_the_middle(self):
        for values, wanted in (([3], 3), ([1, 9], 5), ([9, 1, 3], 3), ([4, 1, 3, 2], 2.5)):
            self.assertEqual(median(values), wanted, values)
        with self.assertRaises(ValueError):
            median([])

    def test_an_interval_leaves_out_as_many_as_a_coin_allows(self):
        # The same numbers as those of `wharf-bench --against`.
        for count, outside in ((1, 0), (5, 0), (6, 0), (9, 1), (10, 1), (12, 2), (20, 5)):
            self.assertEqual(ranks_outside(count), outside, count)

    def test_an_interval_says_how_sure_it_is(self):
        for count, wanted in ((1, 0.0), (2, 0.5), (5, 0.9375), (6, 0.96875), (9, 0.9609375)):
            self.assertAlmostEqual(spread(list(range(count))).confidence, wanted, msg=count)

    def test_a_spread_keeps_the_extremes_and_leaves_them_out_of_the_interval(self):
        it = spread([5.0, 1.0, 0.5, 0.75, 1.25, 1.5, 1.75, 0.875, 1.125, 0.9375])
        self.assertEqual((it.median, it.least, it.most), (1.0625, 0.5, 5.0))
        self.assertEqual((it.low, it.high), (0.75, 1.75))

    def test_a_ratio_is_made_within_its_round(self):
        # The machine was twice as slow in the second round for both, so nothing has changed.
        self.assertEqual(advantage([1, 2], [3, 6], "lower").least, 3)
        self.assertEqual(advantage([100, 50], [50, 25], "higher").most, 2)

    def test_above_one_is_better_whatever_is_good(self):
        self.assertEqual(advantage([2.0], [4.0], "lower").median, 2)
        self.assertEqual(advantage([2.0], [4.0], "higher").median, 0.5)

    def test_what_has_no_ratio_is_refused(self):
        for ours, theirs, better in (([1], [0], "lower"), ([1], [1], "best"), ([1], [], "lower")):
            with self.assertRaises(ValueError):
                advantage(ours, theirs, better)


if __name__ == "__main__":
    unittest.main()

"""Money: whole micro-dollars, exact, never too few."""

from __future__ import annotations

import unittest
from decimal import Decimal

from wharf_sdk import Prices, per_second, per_token
from wharf_sdk.cost import micro


class Cost(unittest.TestCase):
    def test_t011_tokens_cost_whole_micro_dollars(self) -> None:
        prices = Prices.dollars("0.15", "0.60")
        self.assertEqual(prices, Prices(150_000, 600_000))
        self.assertEqual(per_token(1_000_000, 0, prices), 150_000)
        self.assertEqual(per_token(100, 50, prices), 45)
        self.assertEqual(per_token(0, 0, prices), 0)

    def test_t011_what_does_not_come_out_even_is_rounded_up_once(self) -> None:
        prices = Prices(150_000, 600_000)
        self.assertEqual(per_token(1, 0, prices), 1)
        self.assertEqual(per_token(1, 1, prices), 1)
        self.assertEqual(per_token(3, 1, prices), 2)

    def test_t011_numbers_are_taken_as_they_are_written(self) -> None:
        # In binary a tenth is a little more than a tenth, which would cost one more.
        self.assertEqual(per_second(0.1, 10), 1)
        self.assertEqual(per_second(1.5, 20_000), 30_000)
        self.assertEqual(per_second(Decimal("0.3"), 10), 3)
        self.assertEqual(micro("0.000001"), 1)
        self.assertEqual(per_token(2**40, 2**40, Prices(1, 1)), 2_199_024)

    def test_t011_what_is_no_amount_is_refused(self) -> None:
        for seconds in (float("nan"), float("inf"), -1):
            with self.assertRaises(ValueError):
                per_second(seconds, 1)
        for tokens in (-1, 1.5, True):
            with self.assertRaises(ValueError):
                per_token(tokens, 0, Prices(1, 1))  # type: ignore[arg-type]

"""The tool, tried without a server: `python3 -m unittest`."""

from __future__ import annotations

import unittest

from wharf_sdk import Fault
from wharf_sdk.trial import try_tool

from handler import count


class Counting(unittest.TestCase):
    def test_words_and_lines_are_counted(self) -> None:
        tried = try_tool(count, {"text": "to be\nor not to be"})
        self.assertEqual(tried.outputs, {"words": 6, "lines": 2})
        self.assertEqual(tried.progress, [(0.5, "counting")])

    def test_nothing_has_nothing(self) -> None:
        self.assertEqual(try_tool(count, {"text": ""}).outputs, {"words": 0, "lines": 0})

    def test_an_input_that_is_missing_is_named(self) -> None:
        with self.assertRaisesRegex(Fault, "`text` is missing"):
            try_tool(count)


if __name__ == "__main__":
    unittest.main()

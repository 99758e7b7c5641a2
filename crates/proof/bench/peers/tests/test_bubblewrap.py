"""What is read of the figures of `wharf-bench`."""

import json
import unittest

from peers.bubblewrap import WRAPPED, figures


class Figures(unittest.TestCase):
    def test_those_of_all_parts_are_found_by_name(self):
        fence = {"rounds": 1, "figures": [{"name": WRAPPED, "value": 2.5, "unit": "ms"}]}
        other = {"rounds": 1, "figures": [{"name": "other", "value": 1.0, "unit": "ms"}]}
        text = json.dumps({"commit": "abc", "parts": {"fence": fence, "other": other}})
        self.assertEqual(figures(text), {WRAPPED: 2.5, "other": 1.0})


if __name__ == "__main__":
    unittest.main()

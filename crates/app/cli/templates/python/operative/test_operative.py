"""The operative's tools, tried without a core: `python3 -m unittest`."""

from __future__ import annotations

import contextlib
import io
import unittest

from wharf_sdk import Fault
from wharf_sdk.trial import try_tool

from operative import operative, said, say


class Saying(unittest.TestCase):
    def setUp(self) -> None:
        said.clear()

    def test_what_is_to_be_said_is_said_and_counted(self) -> None:
        with contextlib.redirect_stdout(io.StringIO()) as heard:
            for times in (1, 2):
                tried = try_tool(say, {"text": "hello"})
                self.assertEqual(tried.outputs, {"said": "hello", "times": times})
        self.assertEqual(heard.getvalue(), "{{id}} says: hello\n" * 2)
        self.assertEqual(tried.progress, [(0.5, "clearing the throat")])

    def test_nothing_is_not_said(self) -> None:
        with self.assertRaises(Fault) as caught:
            try_tool(say, {"text": " "})
        self.assertEqual(caught.exception.code, "{{code}}.nothing")

    def test_it_is_offered_under_its_name(self) -> None:
        self.assertEqual(operative.tools, ["{{id}}/say"])


if __name__ == "__main__":
    unittest.main()

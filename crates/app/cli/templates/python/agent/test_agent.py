"""The agent's tools, tried without a core: `python3 -m unittest`."""

from __future__ import annotations

import json
import unittest
from pathlib import Path

from wharf_sdk import Fault
from wharf_sdk.trial import try_tool

from agent import agent, greet


class Greeting(unittest.TestCase):
    def test_somebody_is_greeted_by_name(self) -> None:
        tried = try_tool(greet, {"name": "Ada"})
        self.assertEqual(tried.outputs, {"text": "Hello, Ada!"})
        self.assertEqual(tried.progress, [(0.5, "thinking of something nice")])

    def test_nobody_is_not_greeted(self) -> None:
        with self.assertRaises(Fault) as caught:
            try_tool(greet, {"name": " "})
        self.assertEqual(caught.exception.code, "{{code}}.no_name")

    def test_an_input_of_another_type_is_refused(self) -> None:
        with self.assertRaises(Fault) as caught:
            try_tool(greet, {"name": 7})
        self.assertEqual(caught.exception.code, "tool.invalid_input")

    def test_the_manifest_names_this_agent(self) -> None:
        manifest = json.loads(Path(__file__).with_name("opensentience.agent.json").read_text())
        self.assertEqual((manifest["id"], manifest["version"]), (agent.id, agent.version))


if __name__ == "__main__":
    unittest.main()

"""The guide: what it shows is tried here."""

from __future__ import annotations

import ast
import re
import types
import unittest
from typing import Any, Dict, List

from wharf_sdk import Client, Prices, per_second, per_token

from tests.support import ROOT, WithCore

GUIDE = (ROOT / "docs" / "python.md").read_text("utf-8")


def blocks() -> List[str]:
    return re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


def block(text: str) -> str:
    [found] = [one for one in blocks() if text in one]
    return found


class Guide(unittest.TestCase):
    def test_all_that_is_shown_is_python_and_names_what_there_is(self) -> None:
        self.assertGreater(len(blocks()), 6)
        for shown in blocks():
            for node in ast.walk(ast.parse(shown)):
                if isinstance(node, ast.ImportFrom) and node.module == "wharf_sdk":
                    names = ", ".join(name.name for name in node.names)
                    exec("from wharf_sdk import " + names, {})

    def test_the_tool_in_five_lines_works_as_its_test_says(self) -> None:
        handler = types.ModuleType("handler")
        exec(block("def shout"), handler.__dict__)
        exec(block("handler.entry"), {"handler": handler})

    def test_the_tools_of_the_guide_can_be_made(self) -> None:
        for name in ("def story", "def render"):
            module: Dict[str, Any] = {"tool": __import__("wharf_sdk").tool}
            exec(block(name), module)
            self.assertEqual(module["entry"].schema()["required"][0], "prompt")

    def test_the_prices_of_the_guide_are_right(self) -> None:
        costs: List[int] = []
        context = types.SimpleNamespace(cost=costs.append)
        names = {"Prices": Prices, "per_token": per_token, "per_second": per_second}
        exec(
            block("Prices.dollars"),
            dict(names, context=context, prompt_tokens=100, completion_tokens=50),
        )
        self.assertEqual(costs, [45, 30_000])


class Calling(WithCore):
    def test_methods_that_the_guide_names_are_there(self) -> None:
        with Client(home=str(self.core.home)) as client:
            named = re.findall(
                r"^\| (`.*?) \|", GUIDE[GUIDE.index("## Calling tools") :], re.MULTILINE
            )
            plain = {name for line in named[:5] for name in re.findall(r"`([a-z]+)", line)}
            places = (client, client.files(), client.worlds)
            for name in plain:
                self.assertTrue(any(hasattr(place, name) for place in places), name)
            self.assertGreater(len(plain), 15)

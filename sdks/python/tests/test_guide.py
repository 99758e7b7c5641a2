"""The guide: what it shows is tried here."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import types
import unittest
from typing import Any, Dict, List
from unittest import mock

from wharf_sdk import Client, Operative, Prices, per_second, per_token

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
        exec(block("try_tool(handler"), {"handler": handler})

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
    def test_the_operative_and_the_principal_of_the_guide_work(self) -> None:
        home = mock.patch.dict(os.environ, {"WHARF_HOME": str(self.core.home)})
        with home, mock.patch.object(Operative, "run", Operative.start):
            shown: Dict[str, Any] = {}
            exec(block("desk = Operative"), shown)
            self.addCleanup(shown["desk"].stop)
            with Client() as client:
                run = client.run("desk/where", {"precise": True})
                self.assertEqual(run.result(), {"place": "by the window"})
            with contextlib.redirect_stdout(io.StringIO()) as said:
                exec(block("with Principal"), {})
        lines = said.getvalue().splitlines()
        self.assertEqual(lines[-2:], ["{'n': 3, 'sum': 6}", "tool.timeout"])

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

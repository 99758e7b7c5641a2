"""Trying tools without a core."""

from __future__ import annotations

import unittest
from typing import Any, Iterator

from wharf_sdk import Call, Context, Fault, Request, tool
from wharf_sdk.trial import try_tool


class Trying(unittest.TestCase):
    def test_k034_a_tool_is_tried_with_what_it_takes_gives_and_says(self) -> None:
        def greet(name: str, context: Context) -> Iterator[str]:
            context.progress(2, "thinking")
            context.log("a guest", "debug")
            context.cost(3)
            context.pause(3600)
            yield "Hello, "
            yield name

        tried = try_tool(greet, {"name": "Ada"})
        self.assertEqual(tried.outputs, {"text": "Hello, Ada"})
        self.assertEqual(tried.progress, [(1.0, "thinking")])
        self.assertEqual(tried.logs, [("debug", "a guest")])
        self.assertEqual(tried.reports[-1], {"text": "Hello, Ada"})
        self.assertEqual(tried.cost_micro, 3)
        self.assertEqual(try_tool(tool(greet), {"name": "Bo"}).outputs, {"text": "Hello, Bo"})
        with self.assertRaisesRegex(Fault, "`name` must be text"):
            try_tool(greet, {"name": 5})

    def test_k034_what_it_calls_and_asks_is_answered_by_the_test(self) -> None:
        def agent_tool(call: Call) -> Any:
            call.notice("hi")
            call.notify("hi again")
            call.print("out")
            call.text("more")
            call.status("half", 0.5)
            return {"sum": call.call("a/b", {"n": 1})["sum"], "said": call.ask("Sure?", {}).value}

        def operative_tool(request: Request) -> Any:
            request.report({"half": True})
            request.notify("hi", level="warn")
            return {"status": request.ask("Sure?").status, "text": request.sample("x").text}

        tried = try_tool(
            agent_tool,
            tools={"a/b": lambda given: {"sum": given["n"] + 1}},
            answer=lambda message, schema: message,
        )
        self.assertEqual(tried.outputs, {"sum": 2, "said": "Sure?"})
        said = [("info", "hi"), ("info", "hi again"), ("stdout", "out"), ("stdout", "more")]
        self.assertEqual(tried.logs, said)
        self.assertEqual(tried.progress, [(0.5, "half")])
        tried = try_tool(operative_tool, tools={"sample": lambda given: given["prompt"] + "y"})
        self.assertEqual(tried.outputs, {"status": "declined", "text": "xy"})
        self.assertEqual(tried.reports, [{"half": True}])
        with self.assertRaises(Fault) as caught:
            try_tool(agent_tool)
        self.assertEqual(caught.exception.code, "tool.not_found")

"""Durable steps: what a tool says to the core, and what it gets back when it is repeated."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import unittest
from datetime import datetime, timezone
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from wharf_sdk import Agent, Call, Context, Fault, _host, tool, wharf_agent
from wharf_sdk.trial import Clock, try_durable

Key = Tuple[str, int]
GRANTED = ("invoke", "ask", "notify", "steps")


class FakeCore:
    """The core's end, as far as steps go: what it keeps outlives the attempts."""

    def __init__(self, granted: Tuple[str, ...] = GRANTED) -> None:
        self.granted, self.connection = granted, self
        self.done: Dict[Key, Mapping[str, Any]] = {}
        self.kept: Dict[Key, Any] = {}
        self.sent: List[Tuple[str, Mapping[str, Any]]] = []
        self.executed: List[Key] = []
        self.call: Optional[wharf_agent.Call] = None
        self._lock = threading.Lock()

    def send(self, kind: str, payload: Mapping[str, Any], **_: Any) -> bool:
        with self._lock:
            self.sent.append((kind, payload))
            answer = self._answer(kind, payload)
        if answer is not None and self.call is not None:
            self.call.tell(*answer)
        return True

    def _answer(self, kind: str, payload: Mapping[str, Any]) -> Any:
        if kind == "agent.tool.invoke":
            key = (payload["step"]["name"], payload["step"]["n"])
            if key not in self.done:
                self.executed.append(key)
                self.done[key] = self._result(payload)
            said = dict(self.done[key], invoke_id=payload["invoke_id"])
            return payload["invoke_id"], "core.tool.invoke_result", said
        if kind == "agent.step.local":
            step = payload["step"]
            key = (step["name"], step["n"])
            if "value" in payload:
                self.kept.setdefault(key, payload["value"])
            said = {"value": self.kept[key]} if key in self.kept else {}
            number = json.dumps([payload["call_id"], step], sort_keys=True)
            return number, "core.step.kept", said
        return None

    def _result(self, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        if payload["tool_id"] == "web/none":
            return {"status": "failed", "error": {"code": "tool.not_found", "message": "none"}}
        return {"status": "succeeded", "output": dict(payload["input"])}

    def attempt(self, work: Callable[..., Any], given: Optional[Dict[str, Any]] = None) -> Any:
        """One attempt of a tool, with what it gave; a `Failed` is raised."""
        agent = Agent("dev.example.steps", "0.1.0")
        agent.tool(name="work", durable=True)(work)
        return self.attempt_of(agent._tools["work"].work, given)

    def attempt_of(
        self, work: Callable[[wharf_agent.Call], Any], given: Optional[Dict[str, Any]] = None
    ) -> Any:
        """One attempt of a tool that builds on the single file alone."""
        payload = {"call_id": "c-1", "tool_id": "dev.example.steps/work", "input": given or {}}
        self.call = wharf_agent.Call(self, {"payload": payload})  # type: ignore[arg-type]
        return work(self.call)


async def walk(url: str, cx: Call) -> Dict[str, Any]:
    page = await cx.step("fetch", "web/fetch", url=url)
    dice = await cx.local("dice", lambda: random.random())
    both = await asyncio.gather(
        cx.step("left", "web/fetch", {"no-word": 1}), cx.step("right", "web/fetch", n=dice)
    )
    many = await cx.each("many", "web/fetch", [{"n": n} for n in range(40)], at_once=7)
    when = await cx.now()
    return {"page": page, "both": both, "many": [one["n"] for one in many], "when": when}


def plain(url: str, cx: Call) -> Dict[str, Any]:
    page = cx.step("fetch", "web/fetch", url=url)
    dice = cx.local("dice", lambda: random.random())
    many = cx.each("many", "web/fetch", [{"n": n} for n in range(40)])
    loop = [cx.step("loop", "web/fetch", n=n)["n"] for n in range(3)]
    return {"page": page, "dice": dice, "many": many, "loop": loop, "when": cx.now()}


class Steps(unittest.TestCase):
    def test_f022_f023_a_repeated_tool_gets_what_it_got_in_async_and_plain_code(self) -> None:
        for work in (walk, plain):
            core = FakeCore()
            first = core.attempt(work, {"url": "u"})
            executed = len(core.executed)
            self.assertEqual(core.attempt(work, {"url": "u"}), first)
            self.assertEqual(len(core.executed), executed, "nothing is done twice")
            self.assertIn(("many", 40), core.done)
            self.assertEqual(first["page"], {"url": "u"})

    def test_f022_the_wire_has_names_and_numbers(self) -> None:
        core = FakeCore()
        core.attempt(plain, {"url": "u"})
        kind, payload = core.sent[0]
        self.assertEqual(kind, "agent.tool.invoke")
        self.assertEqual(payload["step"], {"name": "fetch", "n": 1})
        self.assertEqual((payload["parent_call_id"], payload["input"]), ("c-1", {"url": "u"}))
        numbers = [p["step"]["n"] for k, p in core.sent if p.get("step", {}).get("name") == "loop"]
        self.assertEqual(numbers, [1, 2, 3])
        tool = wharf_agent.Tool("t", lambda call: {}, "T.", {}, durable=True)
        self.assertIn("durable", tool.definition("a")["capabilities"])
        self.assertIn("steps", wharf_agent.CAPABILITIES)

    def test_f023_local_code_that_was_cut_off_runs_again_and_what_was_kept_does_not(self) -> None:
        core, ran = FakeCore(), []

        async def roll(cx: Call) -> Dict[str, Any]:
            async def later() -> None:
                ran.append(1)
                if len(ran) == 1:
                    raise Fault("acme.cut", "Cut off.", retryable=True)

            return {"null": await cx.local("roll", later), "two": await cx.local("roll", lambda: 2)}

        with self.assertRaises(wharf_agent.Failed):
            core.attempt(roll)
        for _ in range(2):
            self.assertEqual(core.attempt(roll), {"null": None, "two": 2})
        self.assertEqual(len(ran), 2)

    def test_f024_one_name_twice_at_once_is_refused_with_what_to_do(self) -> None:
        async def twice(cx: Call) -> None:
            await asyncio.gather(cx.step("a", "web/fetch"), cx.step("a", "web/fetch"))

        with self.assertRaises(wharf_agent.Failed) as caught:
            FakeCore().attempt(twice)
        self.assertEqual(caught.exception.error["code"], "step.in_use")
        self.assertIn("`each`", caught.exception.error["message"])

    def test_f022_what_cannot_be_a_name_and_what_no_core_grants(self) -> None:
        for name in ("", "x" * 129, "a\nb"):
            with self.assertRaises(wharf_agent.Failed) as caught:
                FakeCore().attempt(lambda call: call.step(name, "web/fetch"))
            self.assertEqual(caught.exception.error["code"], "request.invalid")
        for work in (lambda call: call.step("a", "web/fetch"), lambda call: call.now()):
            with self.assertRaises(wharf_agent.Failed) as caught:
                FakeCore(("invoke",)).attempt(work)
            self.assertEqual(caught.exception.error["code"], "permission.denied")

    def test_f022_a_step_that_does_not_succeed_raises_its_error(self) -> None:
        async def tolerant(cx: Call) -> Dict[str, Any]:
            try:
                await cx.step("a", "web/none")
            except Fault as fault:
                return {"code": fault.code}
            return {}

        core = FakeCore()
        for _ in range(2):
            self.assertEqual(core.attempt(tolerant), {"code": "tool.not_found"})
        with self.assertRaises(wharf_agent.Failed):
            core.attempt(lambda call: call.each("all", "web/none", [{}, {}]))


class SingleFile(unittest.TestCase):
    """The runtime in one file has the same words, for plain functions."""

    def test_f022_f023_a_repeated_tool_gets_what_it_got(self) -> None:
        core = FakeCore()
        first = core.attempt_of(lambda call: plain(call.input["url"], call), {"url": "u"})
        executed = len(core.executed)
        again = core.attempt_of(lambda call: plain(call.input["url"], call), {"url": "u"})
        self.assertEqual((again, len(core.executed)), (first, executed))
        self.assertEqual([one["n"] for one in first["many"]], list(range(40)))
        self.assertEqual((first["loop"], first["when"].tzinfo), ([0, 1, 2], timezone.utc))

    def test_f022_both_say_the_same_on_the_wire(self) -> None:
        def loop(cx: Call) -> Dict[str, Any]:
            cx.each("each", "web/fetch", [{"n": 1}], at_once=1)
            return {"n": [cx.step("one", "web/fetch", {"a-b": 1}, n=n) for n in range(2)]}

        said = []
        for core in (FakeCore(), FakeCore()):
            core.attempt(loop) if not said else core.attempt_of(loop)  # type: ignore[arg-type]
            said.append([dict(payload, invoke_id="") for _, payload in core.sent])
        self.assertEqual(said[0], said[1])
        self.assertEqual(len(said[0]), 3)

    def test_f023_f024_what_is_wrong_fails_the_call_with_its_code(self) -> None:
        def nested(call: wharf_agent.Call) -> Any:
            return call.local("a", lambda: call.local("a", lambda: 1))

        wrong: List[Tuple[Callable[[wharf_agent.Call], Any], str]] = [
            (lambda call: call.step("", "web/fetch"), "request.invalid"),
            (nested, "step.in_use"),
            (lambda call: call.local("a", lambda: {1, 2}), "tool.invalid_output"),
            (lambda call: call.each("a", "web/none", [{}, {}]), "tool.not_found"),
        ]
        for work, code in wrong:
            with self.assertRaises(wharf_agent.Failed) as caught:
                FakeCore().attempt_of(work)
            self.assertEqual(caught.exception.error["code"], code)
        with self.assertRaises(wharf_agent.Failed) as caught:
            FakeCore(("invoke",)).attempt_of(lambda call: call.now())
        self.assertEqual(caught.exception.error["code"], "permission.denied")


class FakeServer(_host.DirectHost):
    """Whoever starts the workers of a tool server, as far as steps go."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: List[Dict[str, Any]] = []
        self.kept: Dict[Key, Any] = {}

    def step(self, message: Dict[str, Any]) -> Dict[str, Any]:
        self.asked.append(message)
        key = (message["step"]["name"], message["step"]["n"])
        if message.get("tool") == "web/none":
            raise Fault("tool.not_found", "none")
        if "tool" in message:
            return {"outputs": dict(message["inputs"])}
        if "value" in message:
            self.kept.setdefault(key, message["value"])
        return {"value": self.kept[key]} if key in self.kept else {}


class OnAToolServer(unittest.TestCase):
    def setUp(self) -> None:
        self.server, before = FakeServer(), _host.installed()
        _host.install(self.server)
        self.addCleanup(_host.install, before)

    def run_once(self, work: Callable[..., Any]) -> Dict[str, Any]:
        payload = {"run_id": "r", "mode": "real", "inputs": {"url": "u"}, "outputs": {}}
        return tool(durable=True)(work)(payload)

    def test_t048_f022_f023_runs_of_tool_servers_have_the_same_words(self) -> None:
        for work in (walk, plain):
            self.server.kept.clear()
            first = self.run_once(work)
            self.assertEqual(first["control"]["status"], "success", first)
            self.assertEqual(self.run_once(work)["outputs"], first["outputs"])
            self.assertEqual(first["outputs"]["page"], {"url": "u"})
        fetch = {"step": {"name": "fetch", "n": 1}, "tool": "web/fetch", "inputs": {"url": "u"}}
        self.assertEqual(self.server.asked[0], fetch)

    def test_t048_what_goes_wrong_has_its_code(self) -> None:
        def none(url: str, cx: Context) -> None:
            cx.step("a", "web/none")

        self.assertEqual(self.run_once(none)["error"]["code"], "tool.not_found")
        _host.install(_host.DirectHost())
        self.assertEqual(self.run_once(none)["error"]["code"], "tool.unavailable")

    def test_f026_a_handler_says_that_it_is_durable(self) -> None:
        self.assertTrue(tool(durable=True)(plain).durable)
        self.assertFalse(tool(plain).durable)


class Trying(unittest.TestCase):
    TOOLS = {"web/fetch": lambda given: given}

    def test_f029_a_durable_tool_is_killed_and_repeated_at_every_step(self) -> None:
        for work in (walk, plain):
            calls: List[Any] = []
            tools = {"web/fetch": lambda given: calls.append(given) or given}
            tried = try_durable(work, {"url": "u"}, tools=tools)
            self.assertEqual(tried.outputs["page"], {"url": "u"})
            self.assertIn("many#40", tried.steps)
            self.assertGreater(tried.kills, 2 * len(tried.steps))
            # Each run of it does each of its steps once; two runs are not killed.
            steps = len([step for step in tried.steps if step[:4] not in ("dice", "whar")])
            self.assertEqual(len(calls), steps * (tried.kills + 2))

    def test_f029_code_that_changes_its_mind_is_found(self) -> None:
        async def other(cx: Call) -> Dict[str, Any]:
            return dict(await cx.step("a", "web/fetch", n=random.random()))

        with self.assertRaises(Fault) as caught:
            try_durable(other, tools=self.TOOLS)
        self.assertEqual(caught.exception.code, "step.diverged")

        async def gives(cx: Call) -> Dict[str, Any]:
            await cx.step("a", "web/fetch")
            return {"n": random.random()}

        with self.assertRaisesRegex(AssertionError, "instead of"):
            try_durable(gives, tools=self.TOOLS)

        async def more(cx: Call) -> None:
            if random.random() < 0.5:
                await cx.step("a", "web/fetch")
            await cx.step("b", "web/fetch")

        for _ in range(100):
            try:
                try_durable(more, tools=self.TOOLS)
            except (AssertionError, Fault):
                break
        else:
            self.fail("nobody has noticed")

    def test_f029_the_clock_is_moved_by_hand(self) -> None:
        clock = Clock(datetime(2026, 5, 1, tzinfo=timezone.utc))
        clock.move(90)

        def when(cx: Call) -> Dict[str, Any]:
            first = cx.now()
            clock.move(3600)
            return {"first": first, "second": cx.now()}

        tried = try_durable(when, clock=clock)
        self.assertEqual(tried.outputs["first"], "2026-05-01T00:01:30+00:00")
        self.assertEqual(tried.outputs["second"], "2026-05-01T01:01:30+00:00")

    def test_f029_a_tool_that_fails_is_tried_in_the_same_way(self) -> None:
        async def fails(cx: Call) -> None:
            await cx.step("a", "web/fetch")
            raise Fault("acme.no_stock", "There is none left.")

        with self.assertRaises(Fault) as caught:
            try_durable(fails, tools=self.TOOLS)
        self.assertEqual(caught.exception.code, "acme.no_stock")

"""Operatives and principals with a real core between them."""

from __future__ import annotations

import threading
import time
import unittest
from typing import Any, Dict, Iterator, List, Optional

from wharf_sdk import Client, Declined, Fault, Operative, Principal, Request, Result, WharfError
from wharf_sdk.events import Log, Partial, Progress

from tests.support import LONG_SECONDS, Core, WithCore, program, wait_for


class Desk:
    """An operative with tools for tests."""

    def __init__(self, core: Core, name: str) -> None:
        self.begun, self.ended = threading.Event(), threading.Event()
        self.operative = Operative(name, home=str(core.home))
        self.add(self.operative)

    def add(self, operative: Operative) -> None:
        @operative.tool(side_effects=False)
        def double(n: int, request: Request) -> Dict[str, int]:
            request.report({"seen": n})
            return {"twice": 2 * n}

        @operative.tool
        def fail(code: str) -> None:
            if code == "declined":
                raise Declined()
            raise Fault(code, "As told.", details={"why": "told"})

        @operative.tool
        def wait(request: Request) -> None:
            self.begun.set()
            try:
                request.pause(3600)
            finally:
                self.ended.set()

        @operative.tool
        def relay(tool: str, given: Dict[str, Any], request: Request) -> Dict[str, Any]:
            pieces: List[Any] = []
            output = request.call(tool, given, on_progress=pieces.append)
            return {"output": output, "pieces": len(pieces)}

        @operative.tool
        def decide(request: Request) -> Dict[str, Any]:
            request.log("asking", "warn")
            request.notify("half", progress=0.5)
            answer = request.ask("Shall we?", bool)
            return {"status": answer.status, "value": answer.value}

        @operative.tool
        def buy(request: Request, micro: int, fail: bool = False) -> None:
            request.cost(micro)
            request.cost(micro)
            if fail:
                raise Fault("desk.closed", "Closed.")
            if micro > 1_000:
                request.pause(3600)

        @operative.tool
        def story() -> Iterator[Any]:
            yield "once "
            yield "upon a time"
            yield Result({"words": 4})


class Operatives(WithCore):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.desk = Desk(cls.core, "desk")
        cls.desk.operative.start()
        cls.addClassCleanup(cls.desk.operative.stop, 0.0)

    def setUp(self) -> None:
        self.client = Client(home=str(self.core.home))
        self.addCleanup(self.client.close)

    def test_k033_runs_reach_the_operative_and_are_checked_before(self) -> None:
        run = self.client.start("desk/double", {"n": 21})
        events = list(self.client.stream(run))
        self.assertEqual(self.client.get(run).result(), {"twice": 42})
        self.assertIn({"seen": 21}, [e.value for e in events if isinstance(e, Partial)])
        with self.assertRaises(WharfError) as caught:
            self.client.run("desk/double", {"n": "many"})
        self.assertEqual(caught.exception.code, "tool.invalid_input")
        tool = self.client.tool("desk/double")
        self.assertIs(tool.side_effects, False)
        self.assertEqual(tool.input_schema["required"], ["n"])

    def test_k033_many_runs_go_on_at_once(self) -> None:
        runs = [self.client.start("desk/double", {"n": n}) for n in range(40)]
        twice = [self.client.wait(run).result()["twice"] for run in runs]
        self.assertEqual(twice, [2 * n for n in range(40)])

    def test_k033_failures_keep_their_code_and_a_refusal_is_one(self) -> None:
        run = self.client.run("desk/fail", {"code": "desk.no"})
        assert run.error is not None
        self.assertEqual(
            (run.status, run.error.code, run.error.message), ("failed", "desk.no", "As told.")
        )
        self.assertEqual(run.error.details["why"], "told")
        self.assertEqual(self.client.run("desk/fail", {"code": "declined"}).status, "refused")

    def test_k033_a_canceled_run_ends_the_function(self) -> None:
        self.desk.begun.clear()
        self.desk.ended.clear()
        run = self.client.start("desk/wait")
        self.assertTrue(self.desk.begun.wait(LONG_SECONDS))
        self.client.cancel(run)
        self.assertEqual(self.client.wait(run).status, "canceled")
        self.assertTrue(self.desk.ended.wait(LONG_SECONDS))

    def test_k033_tools_of_the_core_are_called_on_behalf_of_the_run(self) -> None:
        given = {"tool": "wharf/count", "given": {"n": 3, "delay_ms": 0}}
        outputs = self.client.run("desk/relay", given).result()
        self.assertEqual(outputs["output"], {"n": 3, "sum": 6})
        self.assertGreater(outputs["pieces"], 0)
        given = {"tool": "desk/double", "given": {"n": 2}}
        self.assertEqual(self.client.run("desk/relay", given).result()["output"], {"twice": 4})
        run = self.client.run("desk/relay", {"tool": "wharf/fail", "given": {"code": "acme.no"}})
        assert run.error is not None
        self.assertEqual(run.error.code, "acme.no")

    def test_k036_what_a_tool_spends_is_the_cost_of_its_run(self) -> None:
        self.assertEqual(self.client.run("desk/buy", {"micro": 250}).cost_micro, 500)
        run = self.client.run("desk/buy", {"micro": 30, "fail": True})
        self.assertEqual((run.status, run.cost_micro), ("failed", 60))
        with Principal(home=str(self.core.home)) as principal:
            with principal.start("desk/buy", {"micro": 40}) as call:
                call.result(LONG_SECONDS)
                self.assertEqual(call.cost_micro, 80)

    def test_k033_a_person_is_asked_and_told(self) -> None:
        run = self.client.start("desk/decide", run_id="decides")

        def asked() -> Optional[Any]:
            return next((ask for ask in self.client.inbox() if ask.run_id == "decides"), None)

        ask = wait_for("the question", asked)
        self.assertEqual(ask.title, "Shall we?")
        self.client.answer(ask, True)
        self.assertEqual(self.client.wait(run).result(), {"status": "answered", "value": True})
        events = list(self.client.stream(run))
        logs = [(event.level, event.text) for event in events if isinstance(event, Log)]
        self.assertIn(("warn", "asking"), logs)
        self.assertIn(0.5, [event.fraction for event in events if isinstance(event, Progress)])

    def test_text_that_is_yielded_is_shown_and_given(self) -> None:
        outputs = self.client.run("desk/story").result()
        self.assertEqual(outputs, {"text": "once upon a time", "words": 4})

    def test_k032_a_name_belongs_to_whoever_holds_it(self) -> None:
        token = self.core.wharf(
            "token", "create", "--verb", "serve", "--tool", "desk/*", "--tool", "mine/*"
        ).split()[0]
        with self.assertRaises(WharfError) as caught:
            Operative("desk", self.core.url, token).start()
        self.assertEqual(caught.exception.code, "tool.conflict")
        with self.assertRaises(WharfError) as caught:
            Operative("other", self.core.url, token).start()
        self.assertEqual(caught.exception.code, "permission.denied")
        mine = Operative("mine", self.core.url, token)
        mine.tool(name="hello")(lambda: {"text": "hi"})
        with mine:
            self.assertEqual(self.client.run("mine/hello").result(), {"text": "hi"})

    def test_k033_what_is_offered_wrongly_is_said(self) -> None:
        wrong = Operative("wrong", home=str(self.core.home))
        wrong.tool(name="form")(lambda: None)
        with self.assertRaises(WharfError) as caught:
            wrong.start()
        self.assertEqual(caught.exception.code, "request.invalid")


class Principals(WithCore):
    def setUp(self) -> None:
        self.principal = Principal(home=str(self.core.home))
        self.addCleanup(self.principal.close)
        self.client = Client(home=str(self.core.home))
        self.addCleanup(self.client.close)

    def run_in(self, world: str) -> Any:
        """The one run of a world."""
        return wait_for("a run", lambda: next(self.client.list(world=world), None))

    def test_k033_a_call_is_a_run_with_progress(self) -> None:
        with self.principal.start("wharf/count", {"n": 3, "delay_ms": 0}) as call:
            pieces = list(call)
            self.assertEqual(call.result(), {"n": 3, "sum": 6})
        said = "".join(piece.get("text", "") for piece in pieces if "channel" in piece)
        self.assertEqual(said, "1\n2\n3\n")
        self.assertEqual(self.principal.call("count", {"n": 1}), {"n": 1, "sum": 1})

    def test_k033_failures_and_refusals_have_their_code(self) -> None:
        for tool, given, code in (
            ("wharf/fail", {"code": "acme.no", "message": "No."}, "acme.no"),
            ("wharf/count", {"n": 0}, "tool.invalid_input"),
            ("wharf/nothing", {}, "tool.not_found"),
        ):
            with self.assertRaises(Fault) as caught:
                self.principal.call(tool, given)
            self.assertEqual(caught.exception.code, code, tool)

    def test_k033_a_cancel_a_timeout_and_a_close_end_the_run(self) -> None:
        for end in ("cancel", "timeout", "close"):
            self.client.worlds.create(end)
            principal = Principal(home=str(self.core.home), world=end)
            call = principal.start("wharf/sleep", {"ms": 3_600_000})
            run = self.run_in(end)
            if end == "cancel":
                call.cancel()
            elif end == "timeout":
                with self.assertRaises(Fault) as caught:
                    call.result(0.01)
                self.assertEqual(caught.exception.code, "tool.timeout")
            else:
                principal.close()
            self.assertEqual(self.client.wait(run).status, "canceled", end)
            principal.close()

    def test_k032_a_detached_run_goes_on(self) -> None:
        self.client.worlds.create("detached")
        with Principal(home=str(self.core.home), world="detached", detach=True) as principal:
            principal.start("wharf/sleep", {"ms": 300})
            run = self.run_in("detached")
        self.assertEqual(self.client.wait(run).status, "succeeded")

    def test_k033_people_are_asked_told_and_answer_in_every_way(self) -> None:
        self.principal.notify("hello", level="warn")
        for way, status in (
            ("answer", "answered"),
            ("decline", "declined"),
            ("text", "off_script"),
        ):
            answers: List[Any] = []
            title = "Which %s?" % way
            asking = threading.Thread(
                target=lambda: answers.append(self.principal.ask(title, {"type": "string"}))
            )
            asking.start()
            ask = wait_for(
                "the question",
                lambda: next((one for one in self.client.inbox() if one.title == title), None),
            )
            if way == "answer":
                self.client.answer(ask, "red")
            elif way == "decline":
                self.client.decline(ask)
            else:
                self.client.decline(ask, "off_script", "hm")
            asking.join(LONG_SECONDS)
            self.assertEqual(answers[0].status, status)


class Restarts(unittest.TestCase):
    def test_k033_a_core_that_comes_back_finds_its_operatives_and_callers(self) -> None:
        program()
        core = Core()
        self.addCleanup(core.close)
        core.up()
        desk = Desk(core, "desk")
        with desk.operative, Principal(home=str(core.home)) as principal:
            self.assertEqual(principal.call("desk/double", {"n": 1}), {"twice": 2})
            lost = principal.start("desk/wait")
            self.assertTrue(desk.begun.wait(LONG_SECONDS))
            core.kill()
            # It may come back somewhere else; its home says where.
            core.up()
            self.assertTrue(desk.ended.wait(LONG_SECONDS), "nobody waits for it any more")
            with self.assertRaises(Fault) as caught:
                lost.result(LONG_SECONDS)
            self.assertEqual(caught.exception.code, "transport.lost")
            # The run waits for the operative if it is not there yet.
            self.assertEqual(principal.call("desk/double", {"n": 2}), {"twice": 4})
        with Client(home=str(core.home)) as client:
            began = time.monotonic()
            with self.assertRaises(WharfError):
                client.run("desk/double", {"n": 3}, timeout=1).result()
            self.assertLess(time.monotonic() - began, 20, "a farewell is not waited for")

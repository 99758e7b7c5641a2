"""Functions as tools of a tool server: streams, failures, cancels, money."""

from __future__ import annotations

import asyncio
import contextlib
import io
import threading
from typing import (
    Any,
    AsyncIterator,
    Dict,
    Iterator,
    List,
)

from wharf_sdk import Canceled, Context, Fault, Result, tool

from tests.support import Tried


class Streams(Tried):
    def test_t009_yielded_text_is_shown_cumulatively(self) -> None:
        def say() -> Iterator[str]:
            yield "Hello"
            yield " world"

        self.assertEqual(self.outputs_of(say), {"text": "Hello world"})
        self.assertEqual(self.frames.partial(), [{"text": "Hello"}, {"text": "Hello world"}])

    def test_t009_the_output_that_grows_can_be_named_and_others_go_beside_it(self) -> None:
        def say() -> Iterator[Any]:
            yield "a"
            yield {"tokens": 1}
            yield "b"
            return {"finish_reason": "stop"}

        outputs = self.outputs_of(tool(stream="response")(say))
        self.assertEqual(outputs, {"response": "ab", "tokens": 1, "finish_reason": "stop"})
        self.assertEqual(
            self.frames.partial(), [{"response": "a"}, {"tokens": 1}, {"response": "ab"}]
        )

    def test_t009_async_functions_and_generators_are_the_same_from_outside(self) -> None:
        async def wait(n: int) -> Dict[str, int]:
            await asyncio.sleep(0)
            return {"n": n}

        async def say() -> AsyncIterator[Any]:
            yield "a"
            await asyncio.sleep(0)
            yield "b"
            yield Result({"tokens": 2}, cost_micro=7)

        self.assertEqual(self.outputs_of(wait, {"n": 3}), {"n": 3})
        response = self.run_it(say)
        self.assertEqual(response["outputs"], {"text": "ab", "tokens": 2})
        self.assertEqual(response["control"]["cost_micro"], 7)

    def test_t009_long_text_is_shown_in_steps_that_stay_affordable(self) -> None:
        def say() -> Iterator[str]:
            for _ in range(20_000):
                yield "ten chars "

        self.assertEqual(len(self.outputs_of(say)["text"]), 200_000)
        shown = [outputs["text"] for outputs in self.frames.partial()]
        self.assertLess(sum(map(len, shown)), 64 * 200_000)
        self.assertTrue(all(b.startswith(a) for a, b in zip(shown, shown[1:])))

    def test_progress_that_comes_too_fast_is_left_out_but_for_the_latest(self) -> None:
        def work(context: Context) -> None:
            for number in range(1000):
                context.progress(number / 1000, "line %d" % number)

        self.outputs_of(work)
        events = self.frames.of("Event")
        self.assertLess(len(events), 500)
        self.assertEqual(events[-1], {"phase": "checkpoint", "progress": 0.999, "text": "line 999"})
        self.assertEqual(self.frames.of("Log"), [], "what it is doing is no line of the log")

    def test_t008_logs_and_progress_are_frames(self) -> None:
        def work(context: Context) -> None:
            context.log("Loading", "warn")
            context.progress(0.5, "half")
            context.progress(7)

        self.run_it(work)
        logs = self.frames.of("Log")
        self.assertEqual([(log["level"], log["msg"]) for log in logs], [("warn", "Loading")])
        self.assertGreater(logs[0]["timestamp"], 1e9)
        events = self.frames.of("Event")
        self.assertEqual(events[0], {"phase": "started"})
        half = {"phase": "checkpoint", "progress": 0.5, "text": "half"}
        self.assertEqual(events[1:3], [half, dict(half, progress=1.0)])


class Failures(Tried):
    def test_t010_a_fault_is_told_as_it_is(self) -> None:
        def work(context: Context) -> None:
            context.cost(5)
            raise Fault("llm.rate_limited", "Try again later.", retryable=True)

        response = self.run_it(work)
        wanted = {"code": "llm.rate_limited", "message": "Try again later.", "retryable": True}
        self.assertEqual(response["error"], wanted)
        self.assertEqual(response["control"]["cost_micro"], 5)
        self.assertEqual(response["outputs"], {})

    def test_t010_t014_any_other_exception_gives_away_nothing_but_its_class(self) -> None:
        def work() -> None:
            raise KeyError("/home/secret sk-canary")

        with contextlib.redirect_stderr(io.StringIO()) as said:
            error = self.error_of(work)
        self.assertEqual(error, {"code": "ERR_HANDLER", "message": "KeyError"})
        self.assertIn("sk-canary", said.getvalue(), "the server's log has all of it")

    def test_t019_a_canceled_run_ends_where_it_looks(self) -> None:
        ctrl, cleaned = threading.Event(), []

        def work(context: Context) -> Iterator[str]:
            try:
                while True:
                    yield "x"
                    ctrl.set()
            finally:
                cleaned.append(True)

        self.assertEqual(self.error_of(work, ctrl=ctrl)["code"], "ERR_CANCELED")
        self.assertEqual(cleaned, [True])

    def test_t019_a_pause_and_an_await_end_at_once(self) -> None:
        async def waits(context: Context) -> None:
            threading.Timer(0.01, ctrl.set).start()
            try:
                await asyncio.sleep(3600)
            finally:
                cleaned.append(True)

        def pauses(context: Context) -> None:
            threading.Timer(0.01, ctrl.set).start()
            context.pause(3600)

        cleaned: List[bool] = []
        for work in (waits, pauses):
            ctrl = threading.Event()
            self.assertEqual(self.error_of(work, ctrl=ctrl)["code"], "ERR_CANCELED")
        self.assertEqual(cleaned, [True])

    def test_t011_the_price_is_told_in_each_of_its_forms(self) -> None:
        def by_context(context: Context) -> None:
            context.cost(3)
            context.cost(4)

        for work in (by_context, lambda: Result({}, 7), lambda: {"cost_micro": 7.0}):
            response = self.run_it(work)
            self.assertEqual(response["control"]["cost_micro"], 7)
            self.assertEqual(response["outputs"], {})

    def test_t011_a_price_that_is_none_is_refused(self) -> None:
        for cost in (-1, 1.5, "7", True):
            self.assertEqual(
                self.error_of(lambda cost=cost: {"cost_micro": cost})["code"], "ERR_COST"
            )


class Leaving(Tried):
    def test_canceled_can_be_caught_for_cleaning_up_and_passed_on(self) -> None:
        ctrl = threading.Event()
        ctrl.set()

        def work(context: Context) -> None:
            try:
                context.check()
            except Canceled:
                context.log("cleaning up")
                raise

        self.assertEqual(self.error_of(work, ctrl=ctrl)["code"], "ERR_CANCELED")
        self.assertEqual(self.frames.of("Log")[0]["msg"], "cleaning up")

"""Principals at the end of a real connection, with this test as their core."""

from __future__ import annotations

import threading
import unittest
from typing import Any, Dict, List

from wharf_sdk import Fault, Principal, WharfError
from wharf_sdk.fault import Canceled

from tests.peer import Stage
from tests.support import LONG_SECONDS


class Calling(unittest.TestCase):
    def setUp(self) -> None:
        self.stage = Stage()
        self.addCleanup(self.stage.close)
        self.principal = Principal(self.stage.url, "t", world="lab")
        self.addCleanup(self.principal.close)

    def answer(self, response: Dict[str, Any]) -> Dict[str, Any]:
        """Answers the next request, and gives it."""
        asked = self.stage.post()
        self.stage.tell({"type": "response", "id": asked["id"], "response": response})
        return asked

    def test_k033_a_call_gives_progress_and_then_its_output(self) -> None:
        with self.principal.start("wharf/count", {"n": 2}) as call:
            asked = self.stage.post()
            wanted = {"id": call.id, "kind": "elicit", "type": "wharf/count", "payload": {"n": 2}}
            self.assertEqual(asked, wanted)
            for data in (1, {"two": 2}):
                self.stage.tell({"type": "progress", "id": call.id, "data": data})
            done = {"status": "accepted", "content": {"sum": 3}}
            self.stage.tell({"type": "response", "id": call.id, "response": done})
            self.assertEqual(list(call), [1, {"two": 2}])
            self.assertEqual(call.result(), {"sum": 3})
            self.assertTrue(call.done)
        query, _ = self.stage.opened.get(timeout=LONG_SECONDS)
        self.assertEqual((query["role"], query["world"]), ("principal", "lab"))

    def test_answers_come_in_any_order_and_only_the_first_counts(self) -> None:
        calls = [self.principal.start("a/b", n) for n in range(5)]
        for call in reversed(calls):
            for content in (call.id, "again"):
                done = {"status": "accepted", "content": content}
                self.stage.tell({"type": "response", "id": call.id, "response": done})
        self.assertEqual([call.result(LONG_SECONDS) for call in calls], [c.id for c in calls])

    def test_k033_a_cancel_and_a_timeout_are_told(self) -> None:
        call = self.principal.start("a/b")
        self.stage.post()
        call.cancel()
        self.assertEqual(self.stage.post(), {"type": "cancel", "id": call.id})
        with self.assertRaises(Canceled):
            call.result()
        with self.assertRaises(Fault) as caught:
            self.principal.call("a/b", timeout=0.01)
        self.assertEqual(caught.exception.code, "tool.timeout")
        self.assertEqual(self.stage.post_of("cancel")["type"], "cancel")
        with self.principal.start("a/b") as call:
            pass
        self.assertEqual(self.stage.post_of("cancel")["id"], call.id)

    def test_k033_questions_have_an_answer_for_each_end(self) -> None:
        for response, status in (
            ({"status": "accepted", "content": "red"}, "answered"),
            ({"status": "declined"}, "declined"),
            ({"status": "cancelled"}, "cancelled"),
            ({"status": "denied"}, "denied"),
            ({"status": "other", "content": "hm"}, "off_script"),
        ):
            answers: List[Any] = []
            ask = lambda: answers.append(self.principal.ask("Which?", {"type": "string"}))
            asking = threading.Thread(target=ask)
            asking.start()
            asked = self.answer(response)
            self.assertEqual(asked["payload"], {"message": "Which?", "schema": {"type": "string"}})
            asking.join(LONG_SECONDS)
            self.assertEqual(answers[0].status, status)

    def test_k033_the_end_of_the_connection_fails_what_is_open_and_the_next_call_connects(
        self,
    ) -> None:
        first = self.principal.start("a/b")
        self.stage.post()
        self.stage.opened.get(timeout=LONG_SECONDS)
        self.stage.cut()
        with self.assertRaises(Fault) as caught:
            first.result(LONG_SECONDS)
        self.assertEqual(
            (caught.exception.code, caught.exception.retryable), ("transport.lost", True)
        )
        second = self.principal.start("a/b")
        self.stage.opened.get(timeout=LONG_SECONDS)
        self.answer({"status": "accepted", "content": 2})
        self.assertEqual(second.result(LONG_SECONDS), 2)

    def test_closing_calls_off_what_is_open(self) -> None:
        call = self.principal.start("a/b")
        self.stage.post()
        self.principal.close()
        self.assertEqual(self.stage.post(), {"type": "cancel", "id": call.id})
        with self.assertRaises(Canceled):
            call.result()

    def test_what_is_too_large_is_said_at_once(self) -> None:
        with self.assertRaises(Fault) as caught:
            self.principal.call("a/b", {"text": "x" * (5 << 20)})
        self.assertEqual(caught.exception.code, "tool.input_too_large")

    def test_nobody_at_the_other_end_is_said_at_once(self) -> None:
        with Principal("http://127.0.0.1:1", "t") as principal:
            with self.assertRaises(WharfError) as caught:
                principal.call("a/b")
        self.assertEqual(caught.exception.code, "core.unreachable")

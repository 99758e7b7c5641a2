"""Operatives at the end of a real connection, with this test as their core."""

from __future__ import annotations

import asyncio
import contextlib
import io
import threading
import unittest
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Literal

from wharf_sdk import Declined, Denied, Fault, Operative, Request, WharfError

from tests.peer import Stage, request
from tests.support import LONG_SECONDS

TOKEN = "t"


@dataclass
class Place:
    name: str
    floor: int = 0


class Served(unittest.TestCase):
    """An operative that is connected, with the tools of `tools`."""

    def setUp(self) -> None:
        self.stage = Stage()
        self.addCleanup(self.stage.close)
        self.begun, self.gate = threading.Event(), threading.Event()
        self.told: List[str] = []
        self.operative = Operative("desk", self.stage.url, TOKEN, calls_max=2)
        self.tools(self.operative)

    def serve(self) -> Dict[str, Any]:
        """Connects, and gives the offer."""
        starting = threading.Thread(target=self.operative.start)
        starting.start()
        offer = self.stage.post_of("offer")
        names = ["desk/" + tool["name"] for tool in offer["tools"]]
        self.stage.tell({"type": "offered", "tools": names})
        starting.join(LONG_SECONDS)
        self.addCleanup(self.operative.stop, 0.0)
        self.stage.opened.get(timeout=LONG_SECONDS)
        return offer

    def call(self, tool: str, payload: Any = None, call_id: str = "r1") -> Dict[str, Any]:
        """Calls a tool, and gives the answer."""
        self.stage.tell(request(call_id, tool, payload))
        return self.response(call_id)

    def response(self, call_id: str = "r1") -> Dict[str, Any]:
        message = self.stage.post_of("response")
        self.assertEqual(message["id"], call_id)
        response: Dict[str, Any] = message["response"]
        return response

    def tools(self, operative: Operative) -> None:
        @operative.tool(side_effects=False, progress=Dict[str, float])
        def where(request: Request, precise: bool = False) -> Place:
            "Says where this desk is."
            request.report({"found": 0.5})
            request.progress(2, "sure")
            return Place("window", 3 if precise else 0)

        @operative.tool
        def fail(kind: Literal["fault", "declined", "denied", "other", "nothing"]) -> Any:
            if kind == "fault":
                raise Fault("desk.no", "No.", retryable=True, details={"why": "so"})
            if kind == "declined":
                raise Declined()
            if kind == "denied":
                raise Denied()
            if kind == "other":
                raise KeyError("/home/secret")
            return {"value": object()}

        @operative.tool
        def wait(request: Request) -> None:
            self.begun.set()
            try:
                request.pause(3600)
            finally:
                self.told.append("cleaned up")
                self.gate.set()

        @operative.tool(name="wait-async")
        async def wait_async() -> None:
            self.begun.set()
            try:
                await asyncio.sleep(3600)
            finally:
                self.told.append("cleaned up")
                self.gate.set()

        @operative.tool
        def say() -> Iterator[str]:
            yield "a"
            yield "b"

        @operative.tool
        def relay(request: Request, tool: str) -> Any:
            pieces: List[Any] = []
            output = request.call(tool, {"n": 1}, on_progress=pieces.append)
            return {"output": output, "pieces": pieces}

        @operative.tool
        def chat(request: Request) -> Any:
            request.log("begins", "debug")
            request.notify("half", progress=0.5)
            asked = request.ask("Which?", Place)
            said = request.sample("Hello", max_tokens=5)
            return {"status": asked.status, "name": asked.value.name, "said": said.text}


class Serving(Served):
    def test_k033_tools_are_offered_with_their_schemas(self) -> None:
        offer = self.serve()
        where, fail = offer["tools"][0], offer["tools"][1]
        self.assertEqual(
            (where["name"], where["description"]), ("where", "Says where this desk is.")
        )
        self.assertEqual(where["input"]["properties"]["precise"]["type"], "boolean")
        self.assertIs(where["input"]["x-wharf-side-effects"], False)
        self.assertEqual(where["output"]["required"], ["name"])
        self.assertEqual(where["progress"]["type"], "object")
        self.assertNotIn("x-wharf-side-effects", fail["input"])
        self.assertIn("desk/wait-async", self.operative.tools)

    def test_the_query_says_who_connects(self) -> None:
        starting = threading.Thread(target=self.operative.start)
        starting.start()
        query, last = self.stage.opened.get(timeout=LONG_SECONDS)
        self.assertEqual((query["role"], query["provider"]), ("operative", "desk"))
        self.assertEqual((query["protocol"], last), ("wharf.tool.v1", ""))
        self.assertGreaterEqual(len(query["session"]), 16)
        self.stage.tell({"type": "offered", "tools": []})
        starting.join(LONG_SECONDS)
        self.operative.stop()

    def test_k033_a_call_is_validated_run_and_answered_behind_its_progress(self) -> None:
        self.serve()
        self.stage.tell(request("r1", "where", {"precise": True}))
        first, second, third = (self.stage.post() for _ in range(3))
        self.assertEqual(first, {"type": "progress", "id": "r1", "data": {"found": 0.5}})
        self.assertEqual(second["data"], {"phase": "sure", "fraction": 1.0})
        answer = {"status": "accepted", "content": {"name": "window", "floor": 3}}
        self.assertEqual(third, {"type": "response", "id": "r1", "response": answer})
        for payload in ({"precise": "yes"}, {"other": 1}, [1]):
            response = self.call("where", payload)
            self.assertEqual(response["status"], "other")
            self.assertEqual(response["fault"]["code"], "tool.invalid_input")
            self.assertEqual(response["fault"]["details"], {"executed": "no"})
        # An envelope and a missing payload are taken, too.
        bare = {"id": "r2", "kind": "elicit", "type": "where"}
        self.stage.tell({"type": "request", "payload": bare})
        self.assertEqual(self.response("r2")["content"]["floor"], 0)

    def test_failures_are_told_with_their_code_and_nothing_else(self) -> None:
        self.serve()
        told = self.call("fail", {"kind": "fault"})
        wanted = {"code": "desk.no", "message": "No.", "retryable": True, "details": {"why": "so"}}
        self.assertEqual(told, {"status": "other", "content": "No.", "fault": wanted})
        self.assertEqual(self.call("fail", {"kind": "declined"}), {"status": "declined"})
        self.assertEqual(self.call("fail", {"kind": "denied"}), {"status": "denied"})
        with contextlib.redirect_stderr(io.StringIO()) as said:
            told = self.call("fail", {"kind": "other"})
        self.assertEqual(told["fault"]["code"], "tool.internal")
        self.assertNotIn("secret", str(told))
        self.assertIn("secret", said.getvalue())
        self.assertEqual(
            self.call("fail", {"kind": "nothing"})["fault"]["code"], "tool.invalid_output"
        )
        self.assertEqual(self.call("nobody")["fault"]["code"], "tool.not_found")

    def test_text_that_is_yielded_is_progress_and_output(self) -> None:
        self.serve()
        self.stage.tell(request("r1", "say"))
        shown = [self.stage.post()["data"] for _ in range(2)]
        self.assertEqual(shown, [{"text": "a"}, {"text": "ab"}])
        self.assertEqual(self.response()["content"], {"text": "ab"})

    def test_a_cancel_ends_the_function_and_nothing_is_answered(self) -> None:
        self.serve()
        for tool in ("wait", "wait-async"):
            self.begun.clear()
            self.gate.clear()
            self.stage.tell(request("r1", tool))
            self.assertTrue(self.begun.wait(LONG_SECONDS))
            self.stage.tell({"type": "cancel", "id": "r1"})
            self.assertTrue(self.gate.wait(LONG_SECONDS))
            self.stage.tell({"type": "cancel", "id": "r1"})
            self.assertEqual(self.call("where", {}, "r2")["status"], "accepted")
        self.assertEqual(self.told, ["cleaned up"] * 2)

    def test_more_calls_than_allowed_are_refused_and_can_be_tried_again(self) -> None:
        self.serve()
        self.stage.tell(request("r1", "wait"))
        self.stage.tell(request("r2", "wait"))
        told = self.call("where", {}, "r3")
        self.assertEqual((told["fault"]["code"], told["fault"]["retryable"]), ("tool.busy", True))
        self.assertEqual(told["fault"]["details"], {"executed": "no"})

    def test_what_stands_on_the_stream_beside_messages_is_ignored(self) -> None:
        self.serve()
        self.stage.tell_raw(": keep-alive\n\nid: 2\ndata: {no\n\n")
        self.stage.tell({"type": "news", "id": "r1"})
        self.stage.tell({"type": "response", "id": "nobody", "response": {"ok": True}})
        self.stage.tell_raw(
            'id: 5\r\ndata: {"id":"r1","kind":"elicit",\r\ndata: "type":"say"}\r\n\r\n'
        )
        self.assertEqual(self.response()["status"], "accepted")


class Children(Served):
    def test_k033_a_tool_is_called_on_behalf_of_the_request(self) -> None:
        self.serve()
        self.stage.tell(request("r1", "relay", {"tool": "wharf/count"}))
        child = self.stage.post_of("child")
        self.assertEqual(child["of"], "r1")
        asked = child["payload"]
        self.assertEqual((asked["kind"], asked["type"]), ("elicit", "wharf/count"))
        self.assertEqual(asked["payload"], {"n": 1})
        self.stage.tell({"type": "progress", "id": asked["id"], "data": 7})
        done = {"status": "accepted", "content": {"sum": 1}}
        self.stage.tell({"type": "response", "id": asked["id"], "response": done})
        self.assertEqual(self.response()["content"], {"output": {"sum": 1}, "pieces": [7]})

    def test_a_childs_failure_is_the_calls_unless_it_is_caught(self) -> None:
        self.serve()
        for response, code in (
            ({"status": "declined"}, "tool.declined"),
            ({"status": "denied"}, "permission.denied"),
            ({"status": "cancelled"}, "tool.canceled"),
            ({"status": "other", "content": "no"}, "tool.failed"),
            ({"status": "other", "content": "no", "fault": {"code": "a.b"}}, "a.b"),
            ({"status": "new"}, "tool.failed"),
        ):
            self.stage.tell(request("r1", "relay", {"tool": "x/y"}))
            child = self.stage.post_of("child")["payload"]["id"]
            self.stage.tell({"type": "response", "id": child, "response": response})
            self.assertEqual(self.response()["fault"]["code"], code)

    def test_k033_people_are_asked_and_told_and_a_model_goes_on(self) -> None:
        self.serve()
        self.stage.tell(request("r1", "chat"))
        log = self.stage.post_of("child")["payload"]
        self.assertEqual(log["payload"], {"message": "begins", "level": "debug"})
        told = self.stage.post_of("child")["payload"]
        self.assertEqual((told["kind"], told["type"]), ("notify", "notification"))
        self.assertEqual(told["payload"], {"message": "half", "level": "info", "progress": 0.5})
        self.stage.tell({"type": "response", "id": told["id"], "response": {"ok": True}})
        asked = self.stage.post_of("child")["payload"]
        self.assertEqual((asked["type"], asked["payload"]["message"]), ("form", "Which?"))
        self.assertEqual(asked["payload"]["schema"]["required"], ["name"])
        given = {"status": "accepted", "content": {"name": "door"}}
        self.stage.tell({"type": "response", "id": asked["id"], "response": given})
        sample = self.stage.post_of("child")["payload"]
        self.assertEqual(sample["payload"], {"prompt": "Hello", "maxTokens": 5})
        said = {"status": "accepted", "content": {"text": "Hi", "finishReason": "stop"}}
        self.stage.tell({"type": "response", "id": sample["id"], "response": said})
        content = {"status": "answered", "name": "door", "said": "Hi"}
        self.assertEqual(self.response()["content"], content)

    def test_a_canceled_call_cancels_what_it_started(self) -> None:
        self.serve()
        self.stage.tell(request("r1", "relay", {"tool": "wharf/sleep"}))
        child = self.stage.post_of("child")["payload"]["id"]
        self.stage.tell({"type": "cancel", "id": "r1"})
        self.assertEqual(self.stage.post_of("cancel"), {"type": "cancel", "id": child})


class Connections(Served):
    def test_k033_a_broken_stream_goes_on_behind_the_last_event(self) -> None:
        self.serve()
        self.stage.tell(request("r1", "relay", {"tool": "x/y"}))
        child = self.stage.post_of("child")["payload"]["id"]
        self.stage.cut()
        query, last = self.stage.opened.get(timeout=LONG_SECONDS)
        self.assertEqual(last, "2")
        done = {"status": "accepted", "content": 1}
        self.stage.tell({"type": "response", "id": child, "response": done})
        self.assertEqual(self.response()["content"]["output"], 1)

    def test_k033_a_session_that_is_gone_is_begun_anew_and_what_was_open_is_canceled(self) -> None:
        self.serve()
        self.stage.tell(request("r1", "wait"))
        self.assertEqual(self.call("where", {}, "r2")["status"], "accepted")
        self.stage.refusals = [503, 410]
        self.stage.cut()
        opened = [self.stage.opened.get(timeout=LONG_SECONDS) for _ in range(3)]
        self.assertEqual(opened[0][0]["session"], opened[1][0]["session"])
        self.assertNotEqual(opened[1][0]["session"], opened[2][0]["session"])
        self.assertEqual(opened[2][1], "")
        self.assertTrue(self.gate.wait(LONG_SECONDS), "the call was canceled")
        self.assertEqual(self.stage.post_of("offer")["tools"][0]["name"], "where")

    def test_another_connection_under_the_name_ends_this_one(self) -> None:
        self.serve()
        self.stage.tell({"type": "closed", "code": 1000, "reason": "another one serves it"})
        with self.assertRaises(WharfError) as caught:
            self.operative.wait()
        self.assertEqual(caught.exception.code, "tool.conflict")
        self.assertIn("another one serves it", caught.exception.message)

    def test_an_offer_that_is_refused_is_raised(self) -> None:
        said = {"type": "offered", "error": {"code": "tool.schema_invalid", "message": "No."}}
        self.stage.tell(said)
        with self.assertRaises(WharfError) as caught:
            self.operative.start()
        self.assertEqual(
            (caught.exception.code, caught.exception.message), ("tool.schema_invalid", "No.")
        )

    def test_two_tools_of_one_name_are_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "two tools"):
            self.operative.tool(name="where")(lambda: None)

    def test_k033_an_orderly_stop_answers_what_is_under_way(self) -> None:
        self.serve()
        self.stage.tell(request("r1", "wait"))
        self.assertEqual(self.call("where", {}, "r2")["status"], "accepted")
        self.operative.stop(0.01)
        told = self.response("r1")
        self.assertEqual(told["fault"]["code"], "tool.agent_lost")
        self.assertTrue(self.gate.wait(LONG_SECONDS))
        self.operative.wait()

    def test_a_stop_lets_calls_end_first(self) -> None:
        @self.operative.tool
        def gated() -> str:
            self.gate.wait(LONG_SECONDS)
            return "done"

        self.serve()
        self.stage.tell(request("r1", "gated"))
        self.assertEqual(self.call("where", {}, "r2")["status"], "accepted")
        stopping = threading.Thread(target=self.operative.stop, args=(LONG_SECONDS,))
        stopping.start()
        self.stage.tell(request("r3", "where", {}))
        self.assertEqual(self.response("r3")["fault"]["code"], "tool.busy")
        self.gate.set()
        self.assertEqual(self.response("r1")["content"], {"value": "done"})
        stopping.join(LONG_SECONDS)
        self.assertFalse(stopping.is_alive())
        self.assertEqual(self.stage.post(), {"type": "closed"}, "the core need not wait for it")

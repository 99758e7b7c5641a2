"""Agents written with the package: by the protocol, and fenced in by a real core."""

from __future__ import annotations

import json
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any, Dict, List, Optional

from wharf_sdk import Agent, Client, wharf_agent
from wharf_sdk.events import Text
from wharf_sdk.vendor import RUNTIME
from wharf_sdk.vendor import main as vendor

from tests.support import LONG_SECONDS, ROOT, SOURCE, WithCore, program, wait_for

HELLO = Path(__file__).with_name("hello")
ID = "dev.wharf.hello-typed"
EXAMPLES = ("llm-text", "multi-turn", "video")


def example(name: str) -> Dict[str, Any]:
    """An example message of the wire, as both ends in Rust read and write it."""
    folder = ROOT / "crates" / "kernel" / "wire" / "testdata" / "agent_v1"
    message: Dict[str, Any] = json.loads((folder / (name + ".json")).read_text("utf-8"))
    return message


class Keys(unittest.TestCase):
    """What is remembered of idempotency keys."""

    def call(self, key: str, number: int = 1) -> Any:
        message = {"payload": {"call_id": key, "tool_id": "a/t", "input": {"n": number}}}
        message["payload"]["idempotency_key"] = key
        return wharf_agent.Call(None, message)  # type: ignore[arg-type]

    def test_r169_none_is_forgotten_sooner_than_promised_and_none_is_kept_longer(self) -> None:
        once = wharf_agent.Once(kept_seconds=0.05, keys_max=2)
        done = {"status": "succeeded", "output": {"n": 1}}
        for key in ("a", "b"):
            call = self.call(key)
            self.assertEqual(once.begin(call), (True, None))
            once.end(call, done)
        execute, outcome = once.begin(self.call("c"))
        self.assertFalse(execute)
        assert outcome is not None
        self.assertEqual(outcome["error"]["code"], "tool.busy")
        self.assertFalse(once.begin(self.call("a"))[0])
        wait_for("the keys to be old", lambda: once.begin(self.call("c"))[0] or None)
        self.assertEqual(once.begin(self.call("a")), (True, None))


class Protocol(unittest.TestCase):
    def test_k033_an_agent_written_with_the_package_keeps_the_protocol(self) -> None:
        with tempfile.TemporaryDirectory() as home:
            done = subprocess.run(
                [str(program()), "conformance", "agent-protocol", "--json", "--dir", str(HELLO)]
                + ["--", sys.executable, "-B", "agent.py"],
                env={"PATH": "/usr/bin:/bin", "HOME": home, "WHARF_HOME": home},
                capture_output=True,
                text=True,
                timeout=300,
            )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertGreater(done.stdout.count('"pass"'), 50)

    def test_the_examples_bring_the_runtime_of_the_package(self) -> None:
        folders = [str(ROOT / "examples" / "agents" / name) for name in EXAMPLES]
        self.assertEqual(vendor(["--check", *folders]), 0, "run: python3 -m wharf_sdk.vendor")
        self.assertNotIn("wharf_sdk import", RUNTIME.read_text("utf-8"))

    def test_two_tools_of_one_name_are_refused(self) -> None:
        agent = Agent("dev.example.twice", "0.1.0")

        @agent.tool
        def same() -> None: ...

        with self.assertRaisesRegex(ValueError, "two tools"):
            agent.tool(name="same")(lambda: None)
        self.assertEqual(agent.tools, ["same"])

    def test_without_a_core_it_says_how_it_is_started(self) -> None:
        done = subprocess.run(
            [sys.executable, "-B", str(HELLO / "agent.py")], env={}, capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("started by a core", done.stderr)


class Scripted(unittest.TestCase):
    """The agent at the end of a socket, with this test as its core."""

    def setUp(self) -> None:
        self.core, agent = socket.socketpair()
        self.core.settimeout(LONG_SECONDS)
        self.reader = self.core.makefile("rb")
        environment = {"OPENSENTIENCE_SOCKET": "fd:%d" % agent.fileno(), "PATH": "/usr/bin:/bin"}
        self.process = subprocess.Popen(
            [sys.executable, "-B", str(HELLO / "agent.py")],
            env=environment,
            pass_fds=[agent.fileno()],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        agent.close()
        self.addCleanup(self.end)
        self.hello = self.receive("agent.hello")
        self.send(
            "core.welcome",
            {
                "accepted_version": 1,
                "session_id": "s",
                "heartbeat_interval_ms": 60_000,
                "max_frame_bytes": 4 << 20,
                "server": {"core_version": "0", "instance_id": "i"},
                "capabilities": ["idempotency", "invoke", "ask", "notify"],
            },
        )
        self.registered = self.receive("agent.tools.register")

    def end(self) -> None:
        self.reader.close()
        self.core.close()
        try:
            self.process.wait(LONG_SECONDS)
        finally:
            self.process.kill()
            self.process.wait()

    def send(self, kind: str, payload: Dict[str, Any]) -> None:
        message = {"v": 1, "type": kind, "id": "m-%d" % time.monotonic_ns(), "payload": payload}
        message["ts"] = "2026-01-01T00:00:00Z"
        self.send_as_it_is(message)

    def send_as_it_is(self, message: Dict[str, Any]) -> None:
        data = json.dumps(message).encode("utf-8")
        self.core.sendall(struct.pack(">I", len(data)) + data)

    def receive(self, kind: str) -> Dict[str, Any]:
        payload: Dict[str, Any] = self.receive_whole(kind)["payload"]
        return payload

    def receive_whole(self, kind: str) -> Dict[str, Any]:
        while True:
            (length,) = struct.unpack(">I", self.reader.read(4))
            message: Dict[str, Any] = json.loads(self.reader.read(length))
            if message["type"] == kind:
                return message

    def call(self, call_id: str, tool: str, given: Dict[str, Any], key: Optional[str]) -> None:
        payload = {"call_id": call_id, "tool_id": ID + "/" + tool, "input": given}
        self.send("core.tool.call", dict(payload, idempotency_key=key) if key else payload)

    def test_r169_the_promise_is_in_the_hello(self) -> None:
        self.assertIn("idempotency", self.hello["protocol"]["capabilities"])
        promise = {"kept_for": "process", "kept_for_ms": 600_000, "keys_max": 100_000}
        self.assertEqual(self.hello["protocol"]["idempotency"], promise)
        golden = example("agent.hello.promise")["payload"]["protocol"]
        self.assertEqual(golden["idempotency"], promise)

    def test_r165_a_cost_is_told_as_it_is_spent(self) -> None:
        self.call("a", "shout", {"text": "hi there"}, None)
        told = []
        while len(told) < 2:
            piece = self.receive("agent.tool.stream")
            if "cost_micro" in piece:
                told.append((piece["cost_micro"], sorted(piece), piece["data"]))
        keys = sorted(example("agent.tool.stream.cost")["payload"])
        self.assertEqual(told, [(2, keys, {"text": ""}), (4, keys, {"text": ""})])
        self.assertEqual(self.receive("agent.tool.result")["metrics"]["cost_micro"], 4)

    def test_r085_a_tool_says_that_it_can_pretend(self) -> None:
        tools = {tool["name"]: tool for tool in self.registered["tools"]}
        self.assertIn("mock", tools["shout"]["capabilities"])
        self.assertEqual(tools["shout"]["tags"], ["text"])
        self.assertNotIn("mock", tools["once"]["capabilities"])

    def test_r068_a_tool_says_that_it_is_free(self) -> None:
        tools = {tool["name"]: tool for tool in self.registered["tools"]}
        free = [name for name, tool in tools.items() if "free" in tool["capabilities"]]
        self.assertEqual(free, ["once"])

    def test_r063_r064_it_ends_on_a_goodbye_and_does_not_come_back(self) -> None:
        self.send("core.goodbye", {"reason": "core.restart", "retry_after_ms": 0})
        self.assertEqual(self.process.wait(LONG_SECONDS), 0)

    def test_messages_of_the_wire_s_examples_are_understood(self) -> None:
        ping = example("core.ping")
        self.send_as_it_is(ping)
        self.assertEqual(self.receive_whole("agent.pong")["in_reply_to"], ping["id"])
        call = example("core.tool.call")
        call["payload"].update(tool_id=ID + "/once", input={"n": 1})
        self.send_as_it_is(call)
        result = self.receive_whole("agent.tool.result")
        self.assertEqual(result["payload"]["status"], "succeeded")
        self.assertEqual(result["in_reply_to"], call["id"])
        for name in ("request_id", "correlation_id", "causation_id", "traceparent"):
            self.assertEqual(result.get(name), call.get(name), name)
        for name in ("core.tools.registered", "core.tools.unregistered", "core.error"):
            self.send_as_it_is(example(name))
        self.send_as_it_is(dict(ping, id="still-there"))
        self.assertEqual(self.receive_whole("agent.pong")["in_reply_to"], "still-there")

    def test_r099_r101_a_key_is_executed_once(self) -> None:
        for call_id in ("a", "b"):
            self.call(call_id, "once", {"n": 1}, "k")
            result = self.receive("agent.tool.result")
            self.assertEqual((result["call_id"], result["output"]["runs"]), (call_id, 1))
        self.call("c", "once", {"n": 2}, "k")
        result = self.receive("agent.tool.result")
        self.assertEqual(result["error"]["code"], "tool.idempotency_conflict")
        self.call("d", "once", {"n": 1}, "other")
        self.assertEqual(self.receive("agent.tool.result")["output"]["runs"], 2)

    def test_r100_a_key_under_way_gives_both_calls_one_result_each(self) -> None:
        self.call("a", "decide", {}, "k")
        ask = self.receive("agent.question.ask")
        self.call("b", "decide", {}, "k")
        self.call("c", "decide", {}, "k")
        self.send("core.tool.cancel", {"call_id": "c"})
        canceled = self.receive("agent.tool.result")
        self.assertEqual((canceled["call_id"], canceled["status"]), ("c", "canceled"))
        answer = {"ask_id": ask["ask_id"], "status": "answered", "value": True}
        self.send("core.question.answer", answer)
        results = [self.receive("agent.tool.result") for _ in range(2)]
        self.assertEqual({result["call_id"] for result in results}, {"a", "b"})
        self.assertTrue(all(result["output"] == {"decided": True} for result in results))

    def test_r164_a_drain_lets_calls_end_and_takes_no_others(self) -> None:
        self.call("a", "decide", {}, None)
        ask = self.receive("agent.question.ask")
        self.send("core.goodbye", {"reason": "test", "drain_ms": 60_000})
        self.call("b", "hello_world", {}, None)
        self.assertEqual(self.receive("agent.tool.result")["error"]["code"], "tool.busy")
        self.send("core.question.answer", {"ask_id": ask["ask_id"], "status": "declined"})
        result = self.receive("agent.tool.result")
        self.assertEqual((result["call_id"], result["error"]["code"]), ("a", "hello.undecided"))
        self.assertEqual(self.process.wait(LONG_SECONDS), 0)


class Fenced(WithCore):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        folder = cls.core.folder / "agent"
        shutil.copytree(HELLO, folder, ignore=shutil.ignore_patterns("__pycache__"))
        ignored = shutil.ignore_patterns("__pycache__", "_worker")
        shutil.copytree(SOURCE / "wharf_sdk", folder / "wharf_sdk", ignore=ignored)
        manifest = {
            "manifest_version": 1,
            "id": ID,
            "name": "Hello",
            "version": "0.1.0",
            "entrypoint": {"type": "command", "value": "python3", "args": ["agent.py"]},
            "permissions": ["tool:invoke:wharf/*"],
            "capabilities": ["tools", "streaming", "cancellation"],
        }
        (folder / "opensentience.agent.json").write_text(json.dumps(manifest), "utf-8")
        cls.core.add_agent(folder, ID)

    def setUp(self) -> None:
        self.client = Client(home=str(self.core.home))
        self.addCleanup(self.client.close)

    def run_it(self, tool: str, inputs: Dict[str, Any], **more: Any) -> Any:
        return self.client.run(ID + "/" + tool, inputs, **more)

    def test_k033_typed_tools_stream_and_cost(self) -> None:
        run = self.run_it("shout", {"text": "hi there"})
        self.assertEqual(run.result(), {"response": "HI THERE "})
        self.assertEqual(run.cost_micro, 4)
        tool = self.client.tool(ID + "/hello_world")
        self.assertEqual((tool.description, tool.side_effects), ("Greets by name.", False))
        self.assertEqual(tool.input_schema["properties"]["name"]["default"], "world")

    def test_r163_files_go_in_and_out(self) -> None:
        self.client.files().put("/in.bin", b"\x00\xffabc")
        wanted = {"copy.world": "/out.bin", "note.world": "/note.bin"}
        run = self.run_it("copy", {"source.world": "/in.bin", "times": 3}, outputs=wanted)
        self.assertEqual(run.result()["copy"], "world://default/out.bin")
        self.assertEqual(self.client.files().get("/out.bin"), b"\x00\xffabc" * 3)
        self.assertEqual(self.client.files().get("/note.bin"), b"raw bytes")

    def test_r088_r126_failures_are_told_and_nothing_leaks(self) -> None:
        run = self.run_it("fail", {"kind": "fault"})
        self.assertEqual((run.error.code, run.error.message), ("hello.told", "As told."))
        self.assertEqual(run.error.details["kind"], "fault")
        run = self.run_it("fail", {"kind": "other"})
        self.assertEqual(run.error.code, "tool.internal")
        self.assertNotIn("canary", json.dumps(dict(run.data)))

    def test_r159_tools_of_others_are_called(self) -> None:
        asked = {"tool_id": "wharf/count", "input": {"n": 2, "delay_ms": 0}}
        run = self.client.start(ID + "/relay", asked)
        text = "".join(event.text for event in self.client.stream(run) if isinstance(event, Text))
        self.assertEqual(text, "1\n2\n")
        self.assertEqual(self.client.get(run).result(), {"output": {"n": 2, "sum": 3}})
        run = self.run_it("relay", {"tool_id": "wharf/fail", "input": {"code": "acme.no"}})
        self.assertEqual(run.error.code, "acme.no")
        run = self.run_it("relay", {"tool_id": ID + "/hello_world"})
        self.assertEqual(run.error.code, "permission.denied")

    def test_r161_people_are_asked(self) -> None:
        run = self.client.start(ID + "/decide", {}, run_id="decide")

        def asked() -> Optional[Any]:
            found = [ask for ask in self.client.inbox() if ask.run_id == "decide"]
            return found[0] if found else None

        self.client.answer(wait_for("the question", asked), True)
        self.assertEqual(self.client.wait(run).result(), {"decided": True})

    def test_r130_async_and_waiting_tools_are_canceled(self) -> None:
        given: List[Any] = [
            ("sleep", {"ms": 3_600_000}),
            ("stream_counter", {"n": 9, "delay_ms": 60_000}),
        ]
        for tool, inputs in given:
            run = self.client.start(ID + "/" + tool, inputs)
            wait_for("it to run", lambda run=run: self.client.get(run).status == "running" or None)
            self.client.cancel(run)
            self.assertEqual(self.client.wait(run).status, "canceled", tool)

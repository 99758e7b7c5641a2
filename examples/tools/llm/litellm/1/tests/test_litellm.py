"""The tool against a provider on a real socket."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
import types
import unittest
from email.utils import formatdate
from pathlib import Path
from typing import Any, Dict, List
from unittest import mock

HERE = Path(__file__).resolve().parents[1]
ROOT = HERE.parents[4]
sys.path[:0] = [str(HERE), str(ROOT / "sdks" / "python" / "src")]

import handler  # noqa: E402

from tests.provider import Answer, Provider, breaks_off, refuses, says  # noqa: E402

KEY = "sk-canary-key"


class Tried(unittest.TestCase):
    def setUp(self) -> None:
        self.frames: List[Dict[str, Any]] = []
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        (Path(folder.name) / "OPENAI_API_KEY").write_text(KEY + "\n", "utf-8")
        self.environment = {"WHARF_SECRETS_DIR": folder.name, "no_proxy": "127.0.0.1"}
        # Pauses between tries are short here; what Retry-After says is kept to.
        pause = mock.patch("chat.PAUSE_SECONDS", 0.001)
        pause.start()
        self.addCleanup(pause.stop)

    def provider(self, *answers: Answer) -> Provider:
        provider = Provider(*answers)
        self.addCleanup(provider.close)
        self.environment["OPENAI_API_BASE"] = provider.base
        return provider

    def run_it(self, mode: str = "real", ctrl: Any = None, **inputs: Any) -> Dict[str, Any]:
        payload = {"run_id": "r", "mode": mode, "inputs": inputs, "outputs": {}}
        with mock.patch.dict(os.environ, self.environment):
            response: Dict[str, Any] = handler.entry(payload, self.frames.append, ctrl)
        self.assertNotIn(KEY, json.dumps([response, self.frames]))
        return response

    def logs(self) -> List[str]:
        return [frame["data"]["msg"] for frame in self.frames if frame["kind"] == "Log"]

    def grown(self) -> List[str]:
        partial = [frame["outputs"] for frame in self.frames if frame["kind"] == "Response"]
        return [outputs["response"] for outputs in partial if "response" in outputs]

    def error(self, response: Dict[str, Any]) -> str:
        self.assertEqual(response["control"]["status"], "error", response)
        return str(response["error"]["code"])


class Real(Tried):
    def test_t046_t009_text_grows_and_ends_with_tokens_and_a_price(self) -> None:
        provider = self.provider(says("Hi", " there"))
        messages = [{"role": "user", "content": "Hello"}]
        response = self.run_it(messages=messages, model="gpt-4o-mini", temperature=0.5)
        self.assertEqual(
            response["outputs"],
            {
                "response": "Hi there",
                "finish_reason": "stop",
                "model": "gpt-4o-mini",
                "prompt_tokens": 100,
                "completion_tokens": 50,
                "tokens": 150,
            },
        )
        self.assertEqual(self.grown(), ["Hi", "Hi there"])
        # 100 × 0.15 + 50 × 0.60 millionths of a dollar.
        self.assertEqual(response["control"]["cost_micro"], 45)
        [request] = provider.requests
        self.assertEqual(request["path"], "/v1/chat/completions")
        self.assertEqual(request["body"]["messages"], messages)
        self.assertEqual(request["body"]["temperature"], 0.5)
        self.assertNotIn("max_tokens", request["body"])
        self.assertTrue(request["body"]["stream"])

    def test_the_key_comes_from_its_file_and_goes_to_the_owners_provider_only(self) -> None:
        own, other = self.provider(says("a")), Provider(says("b"))
        self.addCleanup(other.close)
        self.run_it(prompt="x")
        self.assertEqual(own.requests[0]["headers"]["Authorization"], "Bearer " + KEY)
        self.assertEqual(self.run_it(prompt="x", api_base=other.base)["outputs"]["response"], "b")
        self.assertNotIn("Authorization", other.requests[0]["headers"])

    def test_a_prompt_and_schema_v1_are_taken_too(self) -> None:
        provider = self.provider(says("a"), says("b"))
        self.run_it(prompt="Hello", messages=[{"role": "system", "content": "Be brief."}])
        self.run_it(schema="v1", params={"prompt": "Hello", "model": "gpt-4o", "max_tokens": 5})
        bodies = [request["body"] for request in provider.requests]
        self.assertEqual([m["role"] for m in bodies[0]["messages"]], ["system", "user"])
        self.assertEqual((bodies[1]["model"], bodies[1]["max_tokens"]), ("gpt-4o", 5))
        self.assertEqual(
            self.error(self.run_it(schema="v1", params={"promt": 1})), "tool.invalid_input"
        )
        wrong = self.run_it(schema="v1", params={"prompt": 1})
        self.assertEqual(self.error(wrong), "ERR_INPUTS")
        self.assertIn("params.prompt", wrong["error"]["message"])

    def test_dated_models_have_a_price_and_unknown_ones_a_warning(self) -> None:
        self.provider(says("a"), says("a"))
        dated = self.run_it(prompt="x", model="openai/gpt-4o-2024-08-06")
        self.assertEqual(dated["control"]["cost_micro"], 750)
        self.assertEqual(self.logs(), [])
        unknown = self.run_it(prompt="x", model="somebody/else")
        self.assertEqual(unknown["control"]["cost_micro"], 0)
        self.assertIn("not known", self.logs()[0])

    def test_a_provider_that_tells_no_usage_is_estimated(self) -> None:
        self.provider(says("Hi", " there", usage=False))
        response = self.run_it(prompt="one two three")
        self.assertEqual(
            (response["outputs"]["prompt_tokens"], response["outputs"]["completion_tokens"]), (3, 2)
        )
        self.assertEqual(response["control"]["cost_micro"], 2)
        self.assertIn("estimated", self.logs()[0])


class Trouble(Tried):
    def test_429_is_tried_again_when_the_provider_says(self) -> None:
        provider = self.provider(refuses(429, Retry_After="0.2"), says("at last"))
        began = time.monotonic()
        response = self.run_it(prompt="x")
        self.assertGreaterEqual(time.monotonic() - began, 0.2)
        self.assertEqual(response["outputs"]["response"], "at last")
        self.assertEqual(len(provider.requests), 2)
        self.assertIn("tried again in 0.2 s", self.logs()[0])

    def test_a_pause_that_is_too_long_is_not_waited_for(self) -> None:
        provider = self.provider(
            refuses(429, Retry_After=formatdate(time.time() + 3600, usegmt=True))
        )
        response = self.run_it(prompt="x")
        self.assertEqual(self.error(response), "llm.rate_limited")
        self.assertTrue(response["error"]["retryable"])
        self.assertEqual(len(provider.requests), 1)

    def test_failures_of_the_provider_are_tried_four_times(self) -> None:
        provider = self.provider(*[refuses(503)] * 4)
        self.assertEqual(self.error(self.run_it(prompt="x")), "llm.unavailable")
        self.assertEqual(len(provider.requests), 4)
        self.provider(refuses(500), refuses(502), says("ok"))
        self.assertEqual(self.run_it(prompt="x")["outputs"]["response"], "ok")

    def test_an_answer_that_breaks_off_before_it_began_is_tried_again(self) -> None:
        provider = self.provider(breaks_off(), says("whole"))
        self.assertEqual(self.run_it(prompt="x")["outputs"]["response"], "whole")
        self.assertEqual(len(provider.requests), 2)

    def test_an_answer_that_breaks_off_later_fails_and_is_paid_for(self) -> None:
        provider = self.provider(breaks_off("half", " of"))
        response = self.run_it(prompt="one two")
        self.assertEqual(self.error(response), "llm.stream_cut")
        self.assertEqual(response["control"]["cost_micro"], 2)
        self.assertEqual(self.grown(), ["half", "half of"])
        self.assertEqual(len(provider.requests), 1)

    def test_t014_refusals_are_told_without_the_key(self) -> None:
        self.provider(refuses(401, "Incorrect API key provided: " + KEY))
        self.assertEqual(self.error(self.run_it(prompt="x")), "llm.unauthorized")
        self.provider(refuses(400, "Unknown model. Your key is " + KEY))
        self.assertEqual(self.run_it(prompt="x")["error"]["message"], "The provider answered 400.")
        self.provider(refuses(400, "Unknown model."))
        response = self.run_it(prompt="x")
        self.assertEqual(response["error"], {"code": "llm.refused", "message": "Unknown model."})
        del self.environment["WHARF_SECRETS_DIR"]
        self.provider(refuses(401))
        self.assertEqual(self.error(self.run_it(prompt="x")), "llm.key_missing")

    def test_a_missing_key_is_told_before_anybody_is_asked(self) -> None:
        self.environment = {}
        with mock.patch("urllib.request.urlopen", side_effect=AssertionError("no network")):
            response = self.run_it(prompt="x")
        self.assertEqual(self.error(response), "llm.key_missing")
        self.assertIn("wharf secret set OPENAI_API_KEY", response["error"]["message"])
        self.assertFalse(response["error"].get("retryable", False))

    def test_answers_that_are_none_are_refused(self) -> None:
        def nonsense(request: Any) -> None:
            request.begin()
            request.chunk("{nonsense")

        def failing(request: Any) -> None:
            request.begin()
            request.delta("a")
            request.chunk({"error": {"message": "overloaded"}})

        self.provider(nonsense)
        self.assertEqual(self.error(self.run_it(prompt="x")), "llm.answer_invalid")
        self.provider(failing)
        self.assertEqual(self.error(self.run_it(prompt="x")), "llm.refused")
        self.assertEqual(
            self.error(self.run_it(prompt="x", api_base="nonsense")), "tool.invalid_input"
        )

    def test_a_provider_that_falls_silent_is_given_up(self) -> None:
        over = threading.Event()
        self.addCleanup(over.set)

        def silent(request: Any) -> None:
            request.begin()
            request.delta("a")
            over.wait(60)

        self.provider(silent)
        self.assertEqual(self.error(self.run_it(prompt="x", timeout_s=0.2)), "llm.unreachable")

    def test_t019_cancel_ends_a_stream(self) -> None:
        ctrl = threading.Event()

        def endless(request: Any) -> None:
            request.begin()
            ctrl.set()
            try:
                while True:
                    request.delta("x")
            except OSError:
                pass

        provider = self.provider(endless)
        self.assertEqual(self.error(self.run_it(prompt="x", ctrl=ctrl)), "ERR_CANCELED")
        self.assertEqual(len(provider.requests), 1)


class Mock(Tried):
    def test_t046_mock_needs_nothing_and_shows_a_price(self) -> None:
        self.environment = {"OPENAI_API_BASE": "http://127.0.0.1:9"}
        with mock.patch("urllib.request.urlopen", side_effect=AssertionError("no network")):
            response = self.run_it("mock", prompt="Hello there", model="gpt-4o")
        self.assertEqual(response["outputs"]["response"], "You said: Hello there")
        self.assertEqual(self.grown()[:2], ["You", "You said:"])
        self.assertGreater(response["control"]["cost_micro"], 0)

    def test_t046_mock_takes_no_messages_unless_it_is_strict(self) -> None:
        # What the smoke test of the authors' software sends.
        for given in ({"schema": "v1", "params": {}}, {"messages": []}, {}):
            response = self.run_it("mock", **given)
            self.assertEqual(response["control"]["status"], "success", response)
            self.assertEqual(response["outputs"]["response"], "You said:")
        for strict in ({"strict": True}, {"params": {}, "strict": True}, {"params": {"strict": True}}):
            self.assertEqual(self.error(self.run_it("mock", **strict)), "tool.invalid_input")
        self.assertEqual(self.error(self.run_it("real")), "tool.invalid_input")


class Package(Tried):
    def test_without_the_package_litellm_says_so(self) -> None:
        with mock.patch.dict(sys.modules, {"litellm": None}):
            self.assertEqual(
                self.error(self.run_it(prompt="x", use="litellm")), "llm.litellm_missing"
            )

    def test_the_package_is_used_when_it_is_asked_for(self) -> None:
        asked: Dict[str, Any] = {}

        def completion(**given: Any) -> List[Any]:
            asked.update(given)
            piece = types.SimpleNamespace
            choice = piece(delta=piece(content="Hi"), finish_reason="length")
            usage = piece(prompt_tokens=10, completion_tokens=20)
            return [piece(choices=[choice]), piece(choices=[], usage=usage)]

        package = types.SimpleNamespace(
            completion=completion,
            exceptions=types.SimpleNamespace(
                RateLimitError=KeyError, AuthenticationError=IndexError
            ),
        )
        with mock.patch.dict(sys.modules, {"litellm": package}):
            response = self.run_it(prompt="x", use="litellm")
        self.assertEqual(response["outputs"]["finish_reason"], "length")
        self.assertEqual(response["outputs"]["tokens"], 30)
        self.assertEqual(asked["model"], "gpt-4o-mini")


class Manifest(unittest.TestCase):
    def test_the_schema_beside_the_manifest_is_the_handlers(self) -> None:
        written = json.loads((HERE / "input.schema.json").read_text("utf-8"))
        self.assertEqual(written, handler.entry.schema())

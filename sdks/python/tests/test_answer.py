"""What handlers give back, in the forms of the authors' software: the same files that Rust reads."""

from __future__ import annotations

import json
import unittest
from pathlib import Path
from typing import Any, Dict, List

from wharf_sdk import Context, Fault, tool
from wharf_sdk._worker.answer import read, says_how_it_went

UPSTREAM = Path(__file__).resolve().parents[3] / "crates/kernel/wire/testdata/run_v1/upstream"


def frame(name: str) -> Any:
    return json.loads((UPSTREAM / (name + ".json")).read_text("utf-8"))


class Answers(unittest.TestCase):
    def test_t016_a_reported_error_is_never_a_success(self) -> None:
        for name in ("envelope.error.meta", "envelope.error.execution_id"):
            fault = read(frame(name)).fault
            assert fault is not None, name
            self.assertEqual((fault.code, fault.message), ("ERR_PROVIDER", "rate limited"))
        fault = read(frame("response.validation")).fault
        assert fault is not None
        self.assertEqual(fault.code, "ERR_VALIDATION")
        for given in (
            {"status": "error", "error": "It broke."},
            {"status": "error", "outputs": {"a": 1}, "meta": {}},
            {"status": "success", "outputs": {}, "error": {"code": "E"}},
            {"kind": "Response", "control": {"status": "success"}, "error": {"code": "E"}},
            {"outputs": {}, "error": {"code": "E"}},
        ):
            self.assertIsNotNone(read(given).fault, given)

    def test_t016_an_envelope_may_hold_more(self) -> None:
        answer = read(frame("envelope.success"))
        self.assertIsNone(answer.fault)
        self.assertEqual(answer.outputs, {"response": "world://w1/r1/response"})
        self.assertEqual(answer.cost, 100)
        self.assertIsNone(read({"status": "success", "outputs": {}, "error": None}).fault)

    def test_t016_outputs_that_only_look_like_it_stay_outputs(self) -> None:
        for given in (
            {"status": "open", "outputs": {}, "meta": 1},
            {"status": "error", "message": "a tool may say so"},
            {"status": "success", "text": "x"},
        ):
            self.assertFalse(says_how_it_went(given))
            self.assertEqual(read(given).outputs, given)


class Costs(unittest.TestCase):
    def test_t011_what_a_tool_has_cost_is_told_as_it_says_it(self) -> None:
        told: List[Any] = []

        def emit(frame: Dict[str, Any]) -> None:
            told.append(frame["control"].get("cost_micro"))

        @tool
        def spend(context: Context) -> None:
            context.cost(300)
            context.cost(0)
            context.cost(400)
            raise Fault("E", "Paid for nothing.")

        response = spend({"run_id": "r", "inputs": {}}, emit)
        self.assertEqual([cost for cost in told if cost is not None], [300, 700])
        self.assertEqual(response["control"]["status"], "error")
        self.assertEqual(response["control"]["cost_micro"], 700)


if __name__ == "__main__":
    unittest.main()

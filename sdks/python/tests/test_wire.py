"""The example files of the tool wire, the same that the core's own tests read."""

from __future__ import annotations

import json
import unittest
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from wharf_sdk import Declined, Denied, Fault, Operative, Request
from wharf_sdk.calling import Pending, Table
from wharf_sdk.fault import Canceled

FOLDER = Path(__file__).resolve().parents[3] / "crates/kernel/wire/testdata/tool_v1"


def example(name: str) -> Dict[str, Any]:
    read: Dict[str, Any] = json.loads((FOLDER / (name + ".json")).read_text("utf-8"))
    return read


class Wire:
    """A connection that keeps what is sent."""

    def __init__(self) -> None:
        self.sent: List[Dict[str, Any]] = []
        self.over: Optional[Exception] = None

    def send(self, message: Any, failed: Any = None, wait: bool = True) -> None:
        self.sent.append(json.loads(json.dumps(message)))


class Calling(unittest.TestCase):
    """This side calls: what comes back is read from the files."""

    def begin(self, call_id: str = "r1") -> Tuple[Table, Pending]:
        table = Table()
        pending = Pending(call_id, lambda _: None)
        table._pending[call_id] = pending
        return table, pending

    def test_k023_every_answer_of_the_examples_has_its_meaning(self) -> None:
        meant = {
            "response.accepted": {"lat": 53.5, "lng": 9.9},
            "response.cost": "here",
            "response.declined": "tool.declined",
            "response.denied": "permission.denied",
            "response.cancelled": "tool.canceled",
            "response.other": "tool.failed",
            "response.fault": "tool.failed",
            "response.fault_and_cost": "tool.failed",
            "response.ok": None,
        }
        names = {path.stem for path in FOLDER.glob("response*.json")}
        self.assertEqual(set(meant), names, "each example is read")
        for name, expected in meant.items():
            message = example(name)
            table, pending = self.begin(message["id"])
            table.take(message)
            try:
                self.assertEqual(pending.result(0), expected, name)
            except Fault as fault:
                self.assertEqual(fault.code, expected, name)
            self.assertEqual(pending.cost_micro, message.get("cost_micro", 0), name)

    def test_k036_costs_come_with_progress_or_alone(self) -> None:
        table, pending = self.begin()
        told = ["progress", "progress.cost", "progress.null", "progress.data_and_cost"]
        self.assertEqual(set(told), {path.stem for path in FOLDER.glob("progress*.json")})
        costs = []
        for name in told:
            table.take(example(name))
            costs.append(pending.cost_micro)
        self.assertEqual(costs, [0, 500, 500, 900])
        for nonsense in (-1, 0.5, "12", None, True, 10):
            table.take({"type": "progress", "id": "r1", "data": 7, "cost_micro": nonsense})
        self.assertEqual(pending.cost_micro, 900, "what was spent stays spent")
        table.take(example("response.declined"))
        self.assertEqual(list(pending), [{"status": "acquired"}, None, 0.5] + [7] * 6)

    def test_k023_calls_are_written_as_the_examples_are(self) -> None:
        wire = Wire()
        table = Table()
        asked = example("request.bare")
        pending = table.begin(wire, asked["kind"], asked["type"], asked["payload"])  # type: ignore
        self.assertEqual(wire.sent.pop(), dict(asked, id=pending.id))
        pending.cancel()
        self.assertEqual(wire.sent.pop(), dict(example("cancel"), id=pending.id))
        child = example("child")
        inner = child["payload"]
        pending = table.begin(
            wire, inner["kind"], inner["type"], inner["payload"], of=child["of"]  # type: ignore
        )
        self.assertEqual(wire.sent.pop(), dict(child, payload=dict(inner, id=pending.id)))

    def test_k023_the_original_frames_are_understood_word_by_word(self) -> None:
        wire, table = Wire(), Table()
        asked = example("seed/request")
        pending = table.begin(wire, "elicit", "get-location", {"accuracy": "high"})  # type: ignore
        self.assertEqual(wire.sent.pop(), dict(asked, id=pending.id))
        for name in ("progress.requesting", "progress.acquired", "response.accepted"):
            table.take(dict(example("seed/" + name), id=pending.id))
        said = [{"status": "requesting-permission"}, {"status": "acquired"}]
        self.assertEqual(list(pending), said)
        self.assertEqual(pending.result(0), {"lat": 40.7128, "lng": -74.006})


class Serving(unittest.TestCase):
    """This side executes: what it is asked is read from the files, and so is what it answers."""

    def answers(self, asked: Dict[str, Any], work: Any) -> List[Dict[str, Any]]:
        operative = Operative("browser", "http://127.0.0.1:1", "t")
        operative.tool(name="get-location")(work)
        wire = Wire()
        operative._link = wire  # type: ignore[assignment]
        operative._receive(asked)
        with operative._changed:
            over = lambda: not operative._calls
            self.assertTrue(operative._changed.wait_for(over, 20))
        return wire.sent

    def test_k023_requests_with_and_without_an_envelope_are_answered(self) -> None:
        def locate(request: Request, accuracy: str) -> Any:
            request.report({"status": "acquired"})
            return {"lat": 53.5, "lng": 9.9}

        for name in ("request", "request.bare", "seed/request", "seed/request.enveloped"):
            sent = self.answers(example(name), locate)
            wanted = [example("progress"), example("response.accepted")]
            call_id = "1" if name.startswith("seed") else "r1"
            self.assertEqual(sent, [dict(one, id=call_id) for one in wanted], name)

    def test_k023_k028_each_ending_is_written_as_the_examples_are(self) -> None:
        def ends(raised: Exception) -> Any:
            def work(accuracy: str) -> Any:
                raise raised

            return work

        fault = Fault("tool.failed", "No satellite.", True, {"executed": "yes"})
        for raised, name in (
            (Declined(), "response.declined"),
            (Denied(), "response.denied"),
            (Canceled(), "response.cancelled"),
            (fault, "response.fault"),
        ):
            sent = self.answers(example("request"), ends(raised))
            self.assertEqual(sent, [example(name)])

    def test_k036_a_cost_is_told_at_once_and_with_the_answer(self) -> None:
        def buy(request: Request, accuracy: str) -> Any:
            request.cost(500)
            request.cost(0)
            request.cost(700)
            raise Fault("tool.failed", "No satellite.")

        sent = self.answers(example("request"), buy)
        first = example("progress.cost")
        second = dict(first, cost_micro=1200)
        self.assertEqual(sent, [first, second, example("response.fault_and_cost")])


if __name__ == "__main__":
    unittest.main()

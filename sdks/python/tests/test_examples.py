"""The small example tools, run as a tool server would run them."""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any, Dict, Optional

from tests.support import ROOT, Frames

TOOLS = ROOT / "examples" / "tools"


class Examples(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.frames = Frames()

    def run_it(
        self, name: str, inputs: Dict[str, Any], outputs: Dict[str, str], ctrl: Any = None
    ) -> Dict[str, Any]:
        module = "example_" + name.replace("/", "_").replace("-", "_")
        path = TOOLS / name / "1" / "handler.py"
        spec = importlib.util.spec_from_file_location(module, path)
        assert spec is not None and spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[module] = loaded
        spec.loader.exec_module(loaded)
        payload = {"run_id": "r", "mode": "real", "inputs": inputs, "outputs": outputs}
        refs = [key for key, value in inputs.items() if str(value).startswith(str(self.folder))]
        response: Dict[str, Any] = loaded.entry(dict(payload, refs=refs), self.frames, ctrl)
        return response

    def turn(self, message: str, state: Optional[str], to: str) -> Dict[str, Any]:
        inputs = {"message": message} if state is None else {"message": message, "state": state}
        response = self.run_it("chat/multi-turn", inputs, {"state": to})
        self.assertEqual(response["control"]["status"], "success", response)
        self.assertEqual(response["control"]["cost_micro"], 10)
        outputs: Dict[str, Any] = response["outputs"]
        return outputs

    def test_t046_a_conversation_remembers_by_its_state(self) -> None:
        first, second = str(self.folder / "1.json"), str(self.folder / "2.json")
        self.assertEqual(
            self.turn("What's the weather?", None, first)["response"], "Where are you?"
        )
        outputs = self.turn("San Francisco", first, second)
        self.assertEqual(outputs["response"], "The weather in San Francisco is foggy.")
        self.assertEqual((outputs["turn"], outputs["state"]), (2, second))
        self.assertEqual(len(json.loads(Path(first).read_text("utf-8"))["turns"]), 1)

    def test_a_state_of_somebody_else_is_refused(self) -> None:
        place = self.folder / "state"
        place.write_text("[]", "utf-8")
        response = self.run_it("chat/multi-turn", {"message": "x", "state": str(place)}, {})
        self.assertEqual(response["error"]["code"], "tool.invalid_input")

    def test_t046_a_video_tells_how_far_it_is_and_is_whole(self) -> None:
        place = self.folder / "cat.avi"
        inputs = {"prompt": "A cat playing piano", "duration": 2}
        response = self.run_it("media/video", inputs, {"video": str(place)})
        self.assertEqual(response["outputs"], {"frames": 8, "video": str(place)})
        self.assertEqual(response["control"]["cost_micro"], 40_000)
        events = [frame for frame in self.frames.all if frame["kind"] == "Event"]
        # What a run has cost so far says nothing of how far it is.
        events = [event for event in events if "cost_micro" not in event["control"]]
        fractions = [event["data"].get("progress") for event in events]
        self.assertEqual(fractions, [None, 0.5, 1.0])
        self.assertEqual(self.frames.of("Log")[0]["msg"], "Loading model")
        video = place.read_bytes()
        self.assertEqual((video[:4], video[8:12]), (b"RIFF", b"AVI "))
        self.assertEqual(int.from_bytes(video[4:8], "little"), len(video) - 8)
        self.assertEqual(self.pictures(video), [8, 8])

    def pictures(self, video: bytes) -> Any:
        """How many pictures the head of an AVI file speaks of, and how many there are."""
        at, counts = 12, []
        while at < len(video):
            length = int.from_bytes(video[at + 4 : at + 8], "little")
            kind = video[at : at + 4] + video[at + 8 : at + 12]
            if kind == b"LISThdrl":
                counts.append(int.from_bytes(video[at + 36 : at + 40], "little"))
            elif kind == b"LISTmovi":
                counts.append((length - 4) // (8 + 64 * 48 * 3))
            at += 8 + length
        self.assertEqual(at, len(video))
        return counts

    def test_a_canceled_video_leaves_no_file_and_costs_what_was_made(self) -> None:
        place, ctrl = self.folder / "cat.avi", threading.Event()
        self.frames = CancelAfter(ctrl, 0.25)
        response = self.run_it(
            "media/video", {"prompt": "x", "duration": 4}, {"video": str(place)}, ctrl
        )
        self.assertEqual(response["error"]["code"], "ERR_CANCELED")
        self.assertEqual(response["control"]["cost_micro"], 20_000)
        self.assertFalse(place.exists())


class CancelAfter(Frames):
    """Calls the run off once it is this far."""

    def __init__(self, ctrl: threading.Event, fraction: float) -> None:
        super().__init__()
        self._ctrl, self._fraction = ctrl, fraction

    def __call__(self, frame: Dict[str, Any]) -> None:
        super().__call__(frame)
        if frame["kind"] == "Event" and frame["data"].get("progress") == self._fraction:
            self._ctrl.set()

"""The example operator speaks the operator wire as its example files show it."""

from __future__ import annotations

import http.server
import importlib.util
import json
import sys
import threading
import unittest
from typing import Any, Dict, List, Set, Tuple
from unittest import mock

from tests.support import ROOT

FOLDER = ROOT / "examples" / "operators" / "python"
WIRE = ROOT / "crates" / "kernel" / "wire" / "testdata" / "operator_v1"


def examples(folder: str) -> Dict[str, Dict[str, Any]]:
    found = {path.stem: json.loads(path.read_text()) for path in (WIRE / folder).glob("*.json")}
    assert found, folder
    return found


def load() -> Any:
    """The operator's module; its name is also one of the standard library's."""
    sys.path.append(str(FOLDER))
    try:
        path = FOLDER / "operator.py"
        spec = importlib.util.spec_from_file_location("example_operator", path)
        assert spec is not None and spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        return loaded
    finally:
        sys.path.remove(str(FOLDER))


class FakeSocket:
    def __init__(self) -> None:
        self.sent: List[Dict[str, Any]] = []

    def send(self, data: bytes) -> None:
        self.sent.append(json.loads(data))


class Worker:
    """A worker that ends at once."""

    pid = 1
    returncode = 0

    def __init__(self, _command: List[str], env: Dict[str, str]) -> None:
        self.env = env
        self.stopped = False

    def wait(self) -> int:
        return 0

    def terminate(self) -> None:
        self.stopped = True


class Operators(unittest.TestCase):
    def setUp(self) -> None:
        self.module = load()
        made = examples("http")["seat_made"]
        patches = [
            mock.patch.object(self.module, "call", return_value=made),
            mock.patch.object(self.module, "tell"),
            mock.patch.object(self.module.subprocess, "Popen", Worker),
        ]
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)
        self.operator = self.module.Operator()
        self.operator.socket = self.socket = FakeSocket()

    def hear(self, message: Dict[str, Any]) -> List[Dict[str, Any]]:
        before = len(self.socket.sent)
        threads = set(threading.enumerate())
        self.operator.hear(message)
        for thread in set(threading.enumerate()) - threads:
            thread.join(timeout=20)
        return self.socket.sent[before:]

    def test_o008_every_message_of_a_core_is_understood(self) -> None:
        wanted = {"ask": "answer", "hook_before": "hook_ack", "spawn": "spawn_ack"}
        for folder in ("core", "seed/core"):
            for name, message in sorted(examples(folder).items()):
                if "worker_handle" not in message and message["type"] == "spawn":
                    continue  # the example needs the short form
                self.operator.workers.clear()
                replies = self.hear(message)
                kinds = [reply["type"] for reply in replies]
                expected = wanted.get(message["type"])
                self.assertEqual(kinds, [expected] if expected else [], name)
                for reply in replies:
                    self.assertEqual(reply["req_id"], message["req_id"], name)

    def test_o009_its_replies_have_the_fields_of_the_examples(self) -> None:
        known: Dict[str, Set[str]] = {}
        for folder in ("operator", "seed/operator"):
            for reply in examples(folder).values():
                known.setdefault(reply["type"], set()).update(reply)
        for message in examples("core").values():
            self.operator.workers.clear()
            for reply in self.hear(message):
                self.assertLessEqual(set(reply), known[reply["type"]], reply)

    def test_o017_a_worker_gets_what_the_spawn_says_and_no_token_of_the_operator(self) -> None:
        spawn = examples("core")["spawn"]
        with mock.patch.dict(self.module.os.environ, {"WHARF_TOKEN": "secret"}):
            self.hear(spawn)
        env = self.operator.workers[spawn["req_id"]].env
        self.assertEqual(env["WHARF_TASK_ID"], spawn["task_id"])
        self.assertEqual(env["WHARF_WORKER_HANDLE"], spawn["worker_handle"])
        self.assertNotIn("WHARF_TOKEN", env)

    def test_o026_a_cancel_ends_the_worker(self) -> None:
        spawn, cancel = examples("core")["spawn"], examples("core")["cancel"]
        self.hear(spawn)
        self.hear(dict(cancel, req_id=spawn["req_id"]))
        self.assertTrue(self.operator.workers[spawn["req_id"]].stopped)


class Requests(unittest.TestCase):
    def test_o001_bodies_are_declared_as_json(self) -> None:
        seen: List[Tuple[str, Any]] = []

        class Core(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # noqa: N802
                body = self.rfile.read(int(self.headers["content-length"]))
                seen.append((self.headers["content-type"], json.loads(body)))
                answer = json.dumps(examples("http")["seat_made"]).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Core)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        module = load()
        module.URL = f"http://127.0.0.1:{server.server_address[1]}"
        with mock.patch.object(module, "tell"):
            module.Operator()
        self.assertEqual(seen[0][0], "application/json")


if __name__ == "__main__":
    unittest.main()

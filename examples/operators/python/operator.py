"""An operator in plain Python: it answers, lets runs pass, and starts a worker for every job.

    WHARF_URL=http://127.0.0.1:7420 WHARF_TOKEN=… python3 operator.py

It makes a seat, prints one line of JSON for all that happens, and gives the seat up on Ctrl-C.
"""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

from link import Socket

URL = os.environ.get("WHARF_URL", "http://127.0.0.1:7420").rstrip("/")
TOKEN = os.environ.get("WHARF_TOKEN", "")
ANSWER = os.environ.get("OPERATOR_ANSWER", "yes")
DENIED = os.environ.get("OPERATOR_DENY", "").split()
WORKER = [sys.executable, str(Path(__file__).with_name("worker.py"))]


def tell(**event: object) -> None:
    """Prints one line; it holds nothing that opens anything."""
    print(json.dumps(event), flush=True)


def call(method: str, path: str, body: object = None) -> dict:
    """Asks the core for something with the caller's own token."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, method=method)
    request.add_header("authorization", f"Bearer {TOKEN}")
    request.add_header("content-type", "application/json")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read() or b"{}")


class Operator:
    """One seat. The core sends everything again that waits, so a lost connection loses nothing."""

    def __init__(self) -> None:
        self.seat = call("POST", "/v1/operators", {"desc": "the Python example"})
        self.workers: dict[str, subprocess.Popen] = {}
        self.socket: Socket | None = None
        tell(event="seat", sid=self.seat["sid"])

    def reply(self, **message: object) -> None:
        """Says something; what is lost on its way is asked for again."""
        try:
            if self.socket:
                self.socket.send(json.dumps(message).encode())
        except OSError:
            pass

    def work(self, message: dict) -> None:
        """Starts a worker. It fetches its prompt and gives its result over HTTP by itself."""
        request = message["req_id"]
        if request in self.workers:
            return  # it came again, and somebody works on it
        env = {name: value for name, value in os.environ.items() if name != "WHARF_TOKEN"}
        env.update(WHARF_BASE_URL=URL, WHARF_AGENT=message["agent"],
                   WHARF_TASK_ID=message["task_id"], WHARF_WORKER_HANDLE=message["worker_handle"])
        self.workers[request] = worker = subprocess.Popen(WORKER, env=env)
        tell(event="worker", req_id=request, pid=worker.pid)

        def wait() -> None:
            failed = worker.wait() != 0
            error = {"error": f"the worker ended with {worker.returncode}"} if failed else {}
            self.reply(type="spawn_ack", req_id=request, value={}, ok=not failed, **error)
        threading.Thread(target=wait, daemon=True).start()

    def hear(self, message: dict) -> None:
        kind, request = message["type"], message.get("req_id", "")
        tell(event=kind, req_id=request, redelivered=message.get("redelivered", False))
        if kind == "ask":
            self.reply(type="answer", req_id=request, value=ANSWER)
        elif kind == "hook_before":
            ok = message["agent"] not in DENIED
            self.reply(type="hook_ack", req_id=request, ok=ok, reason=None if ok else "not here")
        elif kind == "spawn":
            self.work(message)
        elif kind == "cancel" and request in self.workers:
            self.workers[request].terminate()

    def run(self) -> None:
        pause = 0.1
        while True:
            try:
                sid = self.seat["sid"]
                self.socket = Socket(URL, f"/v1/operators/{sid}/ws", self.seat["token"])
                pause = 0.1
                tell(event="connected")
                while True:
                    self.hear(self.socket.receive())
            except PermissionError:
                raise
            except (OSError, ValueError, IndexError) as error:
                tell(event="lost", reason=str(error))
                time.sleep(pause)
                pause = min(pause * 2, 5.0)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        # Also where interrupts are ignored, as in the background of a script.
        signal.signal(number, signal.default_int_handler)
    operator = Operator()
    try:
        operator.run()
    except PermissionError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        for worker in operator.workers.values():
            worker.terminate()
        call("DELETE", f"/v1/operators/{operator.seat['sid']}")


if __name__ == "__main__":
    main()

"""The channel between a worker and its server: JSON lines over one socket.

Nothing reads it in the background. Whoever waits for an answer, or asks whether the run was called
off, reads what is there, so that a worker has no thread but those of its handler.
"""

from __future__ import annotations

import json
import os
import select
import socket
import threading
import time
from typing import Any, Dict, List, Mapping, Optional

from ..fault import Fault

PIECE_BYTES = 1 << 16
STORY_CHARACTERS_MAX = 1 << 16
# How long one thread waits at a time while another may read the answer it waits for.
LOOK_SECONDS = 0.05


class Gone(Exception):
    """The server is gone; the worker has nobody to work for."""


def encode(message: Mapping[str, Any]) -> bytes:
    """A message as a line. Raises `ValueError` for what JSON cannot express."""
    text = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8") + b"\n"


def bounded(story: str) -> str:
    """The end of a long text, where a trace says what happened."""
    return story[-STORY_CHARACTERS_MAX:].encode("utf-8", "replace").decode("utf-8")


class Channel:
    """The worker's end. Safe to use from many threads; not from processes that it forked."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._pid = os.getpid()
        self._reading, self._writing = threading.Lock(), threading.Lock()
        self._buffer = bytearray()
        self._messages: List[Dict[str, Any]] = []
        self._answers: Dict[int, Dict[str, Any]] = {}
        self._asked = 0
        self._canceled = threading.Event()

    def start(self) -> Dict[str, Any]:
        """Waits for the first message."""
        while not self._messages:
            self._read(None)
        return self._messages.pop(0)

    def send(self, line: bytes) -> None:
        """Sends an encoded message; waits while the server is behind."""
        if os.getpid() != self._pid:
            raise RuntimeError("Only the process that runs the handler can speak for the run.")
        with self._writing:
            try:
                self._socket.sendall(line)
            except OSError:
                raise Gone() from None

    def trouble(self, story: str) -> None:
        """Tells the server's log, which callers do not read."""
        self.send(encode({"kind": "trouble", "detail": bounded(story)}))

    def ask(self, message: Dict[str, Any]) -> Dict[str, Any]:
        """Sends a request and waits for its answer; a refusal is raised as `Fault`."""
        with self._writing:
            self._asked += 1
            number = self._asked
        self.send(encode(dict(message, id=number)))
        while True:
            with self._reading:
                answer = self._answers.pop(number, None)
                if answer is None:
                    self._read(LOOK_SECONDS)
                    answer = self._answers.pop(number, None)
            if answer is not None:
                break
        if answer.get("kind") == "refused":
            raise Fault(str(answer.get("code")), str(answer.get("message")))
        return answer

    def is_canceled(self) -> bool:
        """Whether the run was called off."""
        if not self._canceled.is_set() and self._reading.acquire(blocking=False):
            try:
                self._read(0)
            finally:
                self._reading.release()
        return self._canceled.is_set()

    def wait_canceled(self, seconds: Optional[float]) -> bool:
        """Waits until the run is called off, at most so long."""
        until = None if seconds is None else time.monotonic() + seconds
        while not self.is_canceled():
            left = LOOK_SECONDS if until is None else min(LOOK_SECONDS, until - time.monotonic())
            if left <= 0:
                return False
            self._canceled.wait(left)
        return True

    def _read(self, seconds: Optional[float]) -> None:
        """Takes what has arrived, after waiting for it at most so long."""
        if seconds is not None:
            poll = select.poll()
            poll.register(self._socket, select.POLLIN)
            if not poll.poll(int(seconds * 1000)):
                return
        piece = self._socket.recv(PIECE_BYTES)
        if not piece:
            raise Gone()
        if b"\n" not in piece:
            self._buffer += piece
            return
        lines = (bytes(self._buffer) + piece).split(b"\n")
        self._buffer = bytearray(lines.pop())
        for line in lines:
            self._take(json.loads(line))

    def _take(self, message: Dict[str, Any]) -> None:
        if message.get("kind") == "cancel":
            self._canceled.set()
        elif "id" in message:
            self._answers[int(message["id"])] = message
        else:
            self._messages.append(message)


class Control:
    """What a handler gets as `ctrl`: tells whether the run was called off."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def is_set(self) -> bool:
        """Whether the run was called off."""
        return self._channel.is_canceled()

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until the run is called off, and says whether it was."""
        return self._channel.wait_canceled(timeout)

"""A session of the tool protocol: events come on a stream, messages go out as posts.

A connection that breaks is opened again and goes on behind the last event, so that a short loss
of the network is not noticed. The session ends once, with the reason.
"""

from __future__ import annotations

import http.client
import json
import socket
import sys
import threading
import time
import urllib.parse
import uuid
from collections import deque
from typing import Any, Callable, Deque, Dict, Iterator, Mapping, NamedTuple, Optional

from ._http import Broken, Core, Transport, away, checked, connect
from .errors import WharfError
from .fault import Fault

PROTOCOL = "wharf.tool.v1"
PATH = "/v1/tool/sse"
# The core shows every 15 seconds that it is there; after three times that it is not.
SILENCE_SECONDS_MAX = 45.0
# A session that nobody reads is kept for 30 seconds by the core.
RESUME_SECONDS_MAX = 25.0
PAUSE_SECONDS = 0.1
PAUSE_SECONDS_MAX = 2.0
FRAME_BYTES_MAX = 4 << 20
LINE_BYTES_MAX = FRAME_BYTES_MAX + (1 << 20)
# Messages that wait to be sent; whoever has more to say waits.
QUEUE_BYTES_MAX = 16 << 20
REPLACED = 1000
NOT_ALLOWED = 1008

Message = Dict[str, Any]


class Unsent(NamedTuple):
    """A message that waits to be sent. One that must not arrive twice says who is to be told
    when it may not have arrived."""

    data: bytes
    failed: Optional[Callable[[Fault], None]]


class Link:
    """One session. `find` says where the core is, each time it is connected to. `receive` is told
    each message, `ended` once why there will be no more; both on a thread of the link's own."""

    def __init__(
        self,
        find: Callable[[], Core],
        query: Mapping[str, str],
        receive: Callable[[Message], None],
        ended: Callable[[WharfError], None],
    ) -> None:
        given = dict(query, protocol=PROTOCOL, session=uuid.uuid4().hex)
        self._find, self._path = find, PATH + "?" + urllib.parse.urlencode(given)
        self._receive, self._ended = receive, ended
        self._changed = threading.Condition()
        self._queue: Deque[Unsent] = deque()
        self._queued = 0
        self._connected = False
        self._over: Optional[WharfError] = None
        self._closing = False
        self._socket: Optional[socket.socket] = None
        self._last = 0
        self._threads = [
            threading.Thread(target=self._read_on, name="wharf-events", daemon=True),
            threading.Thread(target=self._send_on, name="wharf-posts", daemon=True),
        ]

    def open(self) -> None:
        """Begins the session, or raises what the core says against it."""
        self._stream = self._opened()
        for thread in self._threads:
            thread.start()

    def send(
        self,
        message: Mapping[str, Any],
        failed: Optional[Callable[[Fault], None]] = None,
        wait: bool = True,
    ) -> None:
        """Sends a message behind all others; waits while too much is on its way. A `ValueError`
        says that it is too large or no JSON. After the end nothing is sent."""
        data = json.dumps(message, allow_nan=False, ensure_ascii=False).encode("utf-8")
        if len(data) > FRAME_BYTES_MAX:
            raise ValueError("too large")
        with self._changed:
            while wait and self._over is None and self._queued > QUEUE_BYTES_MAX:
                self._changed.wait()
            taken = self._over is None
            if taken:
                self._queue.append(Unsent(data, failed))
                self._queued += len(data)
                self._changed.notify_all()
        if not taken and failed is not None:
            failed(lost())

    def close(self, seconds: float) -> None:
        """Sends what waits, for so long at most, and ends the session. The core is told, so that
        it does not wait for this end to come back."""
        until = time.monotonic() + seconds
        self.send({"type": "closed"}, wait=False)
        with self._changed:
            while self._queued and self._over is None and time.monotonic() < until:
                self._changed.wait(max(until - time.monotonic(), 0.01))
        self._end(WharfError("transport.lost", "The connection was closed here."))

    @property
    def over(self) -> Optional[WharfError]:
        """Why the session has ended, if it has."""
        return self._over

    def _end(self, error: WharfError) -> None:
        with self._changed:
            if self._over is not None:
                return
            self._over = error
            unsent, self._queue = list(self._queue), deque()
            self._queued = 0
            self._changed.notify_all()
        self._hang_up()
        for one in unsent:
            if one.failed is not None:
                one.failed(lost())
        self._ended(error)

    def _hang_up(self) -> None:
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # It was gone already.

    # The stream of events.

    def _opened(self) -> http.client.HTTPResponse:
        core = self._find()
        headers = {"Accept": "text/event-stream", "Authorization": "Bearer " + core.token}
        if self._last:
            headers["Last-Event-ID"] = str(self._last)
        connection = connect(core, SILENCE_SECONDS_MAX)
        try:
            connection.connect()
            self._socket = connection.sock
            connection.request("GET", self._path, headers=dict(headers, Connection="close"))
            response = connection.getresponse()
            if response.status >= 400:
                with response:
                    checked(response.status, response.read(1 << 20))
        except (*Broken, WharfError) as error:
            connection.close()
            raise away(error) from None
        self._connect(True)
        return response

    def _connect(self, connected: bool) -> None:
        with self._changed:
            self._connected = connected
            self._changed.notify_all()

    def _read_on(self) -> None:
        while self._over is None:
            try:
                with self._stream:
                    for message in self._messages(self._stream):
                        if message.get("type") == "closed":
                            return self._end(_closed(message))
                        self._take(message)
            except Broken:
                pass  # It is opened again, and goes on behind the last event.
            self._connect(False)
            if self._over is None:
                self._resume()

    def _take(self, message: Message) -> None:
        try:
            self._receive(message)
        except Exception:  # One message that cannot be dealt with must not end all others.
            print("wharf: a message could not be taken", file=sys.stderr)

    def _messages(self, stream: http.client.HTTPResponse) -> Iterator[Message]:
        number, data = "", ""
        while True:
            line = stream.readline(LINE_BYTES_MAX)
            if not line:
                return
            name, _, value = line.decode("utf-8", "replace").rstrip("\r\n").partition(":")
            value = value[1:] if value.startswith(" ") else value
            if name == "id":
                number = value
            elif name == "data":
                data = data + "\n" + value if data else value
            elif not line.strip():
                if number.isdigit():
                    self._last = int(number)
                message = _message(data)
                number, data = "", ""
                if message is not None:
                    yield message

    def _resume(self) -> None:
        if not self._last:
            # Nothing was read, so that nobody could say whether the session is the same.
            return self._end(WharfError("transport.lost", "The connection ended.", True))
        until, pause = time.monotonic() + RESUME_SECONDS_MAX, PAUSE_SECONDS
        while self._over is None:
            try:
                self._stream = self._opened()
                return
            except WharfError as error:
                if not _may_pass(error) or time.monotonic() > until:
                    return self._end(error)
            with self._changed:
                self._changed.wait_for(lambda: self._over is not None, pause)
            pause = min(pause * 2, PAUSE_SECONDS_MAX)

    # Messages to the core.

    def _send_on(self) -> None:
        transport = Transport(self._find, 30.0, 0.0)
        try:
            while True:
                with self._changed:
                    ready = lambda: self._over is not None or (self._queue and self._connected)
                    self._changed.wait_for(ready)
                    if self._over is not None:
                        return
                    unsent = self._queue[0]
                self._post(transport, unsent)
        finally:
            transport.close()

    def _post(self, transport: Transport, unsent: Unsent) -> None:
        try:
            transport.call("POST", self._path, unsent.data, repeatable=False)
        except WharfError as error:
            if unsent.failed is None and _may_pass(error):
                # It is sent again once the stream is there; until then nobody could answer.
                with self._changed:
                    self._changed.wait_for(lambda: self._over is not None, PAUSE_SECONDS)
                return
            if unsent.failed is not None:
                unsent.failed(_of(error))
            elif error.status in (401, 403, 410) or error.code == "transport.lost":
                return self._end(error)
        with self._changed:
            if self._queue and self._queue[0] is unsent:
                self._queue.popleft()
                self._queued -= len(unsent.data)
                self._changed.notify_all()


def _message(data: str) -> Optional[Message]:
    """What an event says; what is no JSON object is nobody's."""
    try:
        message = json.loads(data) if data else None
    except ValueError:
        message = None
    return message if isinstance(message, dict) else None


def _closed(message: Message) -> WharfError:
    """Why the core ended the session."""
    code, reason = message.get("code"), str(message.get("reason") or "it was ended")
    text = "The core ended the connection: %s." % reason
    if code == REPLACED:
        return WharfError("tool.conflict", text)
    if code == NOT_ALLOWED:
        return WharfError("permission.denied", text)
    return WharfError("transport.lost", text, retryable=True)


def _may_pass(error: WharfError) -> bool:
    """Whether the core may answer differently in a moment."""
    return error.status != 410 and (error.retryable or error.status >= 500)


def _of(error: WharfError) -> Fault:
    if error.code == "core.unreachable":
        return lost()
    return Fault(error.code, error.message, error.retryable, error.details)


def lost() -> Fault:
    """The connection ended before an answer came."""
    text = "The connection ended before the call was answered."
    return Fault("transport.lost", text, True, {"executed": "maybe"})

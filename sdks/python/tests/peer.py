"""The other end of a session of the tool protocol, played by a test."""

from __future__ import annotations

import json
import queue
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Dict, List, Optional, Tuple

from tests.support import LONG_SECONDS


class Stage:
    """A server of events and posts that does what the test says, and nothing else."""

    def __init__(self) -> None:
        self.posts: queue.Queue[Dict[str, Any]] = queue.Queue()
        self.opened: queue.Queue[Tuple[Dict[str, str], str]] = queue.Queue()
        self.refusals: List[int] = []
        self._changed = threading.Condition()
        self._events: List[Tuple[int, str]] = []
        self._cut = 0
        stage = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                stage._read(self)

            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(202)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")
                self.wfile.flush()
                stage.posts.put(json.loads(data))

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                pass  # The other end has hung up, as tests do.

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return "http://127.0.0.1:%d" % self._server.server_address[1]

    def close(self) -> None:
        self.cut()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def tell(self, message: Any) -> None:
        """Sends an event, now and to whoever comes back."""
        text = message if isinstance(message, str) else json.dumps(message)
        with self._changed:
            number = len(self._events) + 1
            self._events.append((number, "id: %d\ndata: %s\n\n" % (number, text)))
            self._changed.notify_all()

    def tell_raw(self, text: str) -> None:
        """Sends bytes that the test has written itself."""
        with self._changed:
            self._events.append((len(self._events) + 1, text))
            self._changed.notify_all()

    def cut(self) -> None:
        """Breaks all streams off."""
        with self._changed:
            self._cut += 1
            self._changed.notify_all()

    def post(self) -> Dict[str, Any]:
        """The next message."""
        return self.posts.get(timeout=LONG_SECONDS)

    def post_of(self, kind: str) -> Dict[str, Any]:
        """The next message of a type; others before it are passed over."""
        while True:
            message = self.post()
            if message.get("type") == kind:
                return message

    def _read(self, handler: BaseHTTPRequestHandler) -> None:
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(handler.path).query))
        last = handler.headers.get("Last-Event-ID") or ""
        self.opened.put((query, last))
        if self.refusals:
            status = self.refusals.pop(0)
            body = json.dumps({"error": {"code": "transport.lost", "message": "Gone."}}).encode()
            handler.send_response(status)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)
            return
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(b": connected\n\n")
        handler.wfile.flush()
        after, cut = int(last or 0), self._cut
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._cut != cut or len(self._events) > after)
                if self._cut != cut:
                    break
                number, text = self._events[after]
            handler.wfile.write(text.encode())
            handler.wfile.flush()
            after = number
        handler.close_connection = True


def request(call_id: str, tool: str, payload: Optional[Any] = None) -> Dict[str, Any]:
    """A call, as it stands on a stream of events."""
    return {"id": call_id, "kind": "elicit", "type": tool, "payload": payload}

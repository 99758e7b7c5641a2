"""A server that offers chat as OpenAI does, on a real socket, and does what a test tells it."""

from __future__ import annotations

import http.server
import json
import threading
from typing import Any, Callable, Dict, List

Answer = Callable[["Request"], None]


class Request(http.server.BaseHTTPRequestHandler):
    """One request, and the ways to answer it."""

    protocol_version = "HTTP/1.1"
    body: Dict[str, Any]

    def do_POST(self) -> None:
        self.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        provider: Provider = self.server.provider  # type: ignore[attr-defined]
        provider.requests.append(
            {"path": self.path, "body": self.body, "headers": dict(self.headers)}
        )
        provider.answers.pop(0)(self)
        self.close_connection = True

    def begin(self) -> None:
        """A stream, which ends with the connection."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()

    def chunk(self, data: Any) -> None:
        """One event of it."""
        text = data if isinstance(data, str) else json.dumps(data)
        self.wfile.write(("data: %s\n\n" % text).encode("utf-8"))
        self.wfile.flush()

    def delta(self, text: str, finish_reason: Any = None) -> None:
        """One piece of text."""
        choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish_reason}
        self.chunk({"choices": [choice]})

    def refuse(self, status: int, message: str, **headers: str) -> None:
        """An error."""
        data = json.dumps({"error": {"message": message}}).encode("utf-8")
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Prints nothing."""


class Provider:
    """The server. Answers are given in the order of the list."""

    def __init__(self, *answers: Answer) -> None:
        self.answers: List[Answer] = list(answers)
        self.requests: List[Dict[str, Any]] = []
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Request)
        self._server.provider = self  # type: ignore[attr-defined]
        self.base = "http://127.0.0.1:%d/v1" % self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        """Ends it."""
        self._server.shutdown()
        self._server.server_close()


def says(*texts: str, usage: bool = True) -> Answer:
    """An answer that goes well."""

    def answer(request: Request) -> None:
        request.begin()
        for text in texts:
            request.delta(text)
        request.delta("", "stop")
        if usage:
            request.chunk({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 50}})
        request.chunk("[DONE]")

    return answer


def breaks_off(*texts: str) -> Answer:
    """An answer that ends in the middle."""

    def answer(request: Request) -> None:
        request.begin()
        for text in texts:
            request.delta(text)

    return answer


def refuses(status: int, message: str = "No.", **headers: str) -> Answer:
    """An answer that is none."""
    return lambda request: request.refuse(status, message, **headers)

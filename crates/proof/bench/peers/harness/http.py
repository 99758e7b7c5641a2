"""Small requests over HTTP to servers on this machine, none of which is measured."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from typing import Any

from .children import Broken

# No proxy of the environment is ever asked for loopback.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def request(url: str, body: Any = None, *, token: str = "", method: str = "") -> tuple[int, Any]:
    """One request; the status, and the answer as JSON or else as text."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    verb = method or ("GET" if body is None else "POST")
    asked = urllib.request.Request(url, data=data, headers=headers, method=verb)
    try:
        with OPENER.open(asked, timeout=60) as answer:
            status, text = answer.status, answer.read().decode(errors="replace")
    except urllib.error.HTTPError as refused:
        with refused:
            status, text = refused.code, refused.read().decode(errors="replace")
    except OSError as error:
        raise Broken(f"{url}: {error}") from error
    try:
        return status, json.loads(text)
    except ValueError:
        return status, text


def ask(url: str, body: Any = None, *, token: str = "", method: str = "") -> Any:
    """The answer to a request that must be taken."""
    status, answer = request(url, body, token=token, method=method)
    if status >= 300:
        raise Broken(f"{url} answered {status}: {str(answer)[:300]}")
    return answer


def answers(url: str) -> bool:
    """Whether there is somebody who says yes."""
    try:
        with OPENER.open(url, timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False


def listens(port: int) -> bool:
    """Whether somebody takes connections on a port of loopback."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0

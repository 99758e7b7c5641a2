"""The connection to a seat: a WebSocket client, with the standard library alone."""
from __future__ import annotations

import base64
import json
import os
import socket
import struct
import threading
from urllib.parse import urlsplit


class Socket:
    """As much of a WebSocket as an operator needs."""

    def __init__(self, url: str, path: str, token: str) -> None:
        at = urlsplit(url)
        self.raw = socket.create_connection((at.hostname or "", at.port or 80), timeout=20)
        self.raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.lock = threading.Lock()
        key = base64.b64encode(os.urandom(16)).decode()
        head = [f"GET {path} HTTP/1.1", f"Host: {at.netloc}", "Upgrade: websocket",
                "Connection: Upgrade", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}",
                f"Authorization: Bearer {token}", "", ""]
        self.raw.sendall("\r\n".join(head).encode())
        self.reader = self.raw.makefile("rb")
        status = int(self.reader.readline().split(b" ")[1])
        while self.reader.readline().strip():
            pass
        if status != 101:
            raise PermissionError(f"the seat was not opened: {status}")
        self.raw.settimeout(90)  # the core pings every half minute

    def take(self, count: int) -> bytes:
        data = self.reader.read(count)
        if len(data) < count:
            raise ConnectionError("the connection was lost")
        return data

    def send(self, data: bytes, kind: int = 1) -> None:
        """Sends one frame, masked as clients must."""
        size, mask = len(data), os.urandom(4)
        if size < 126:
            head = struct.pack("!BB", 0x80 | kind, 0x80 | size)
        elif size < 65536:
            head = struct.pack("!BBH", 0x80 | kind, 0x80 | 126, size)
        else:
            head = struct.pack("!BBQ", 0x80 | kind, 0x80 | 127, size)
        masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
        with self.lock:
            self.raw.sendall(head + mask + masked)

    def receive(self) -> dict:
        """The next message; pings are answered on the way."""
        text = b""
        while True:
            first, second = self.take(2)
            size = second & 0x7F
            if size > 125:
                size = int.from_bytes(self.take(2 if size == 126 else 8), "big")
            data = self.take(size)
            kind = first & 0x0F
            if kind == 8 and data[:2] == (1000).to_bytes(2, "big"):
                raise PermissionError(data[2:].decode())  # the seat is not ours any more
            if kind == 8:
                raise ConnectionError(data[2:].decode() or "closed")
            if kind == 9:
                self.send(data, 10)
            elif kind in (0, 1):
                text += data
                if first & 0x80:
                    return json.loads(text)

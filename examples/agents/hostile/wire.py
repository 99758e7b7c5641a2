"""The agent protocol, as much of it as a hostile agent needs: frames, hello, calls, heartbeats."""

import json
import os
import socket
import struct
import threading
import time
import uuid

ECHOED = ("request_id", "correlation_id", "causation_id", "traceparent")


def connect(address):
    """Opens the connection the core named."""
    if address.startswith("tcp:"):
        host, _, port = address[len("tcp:"):].rpartition(":")
        return socket.create_connection((host, int(port)))
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.connect(address)
    return link


class Wire:
    """One connection to the core."""

    def __init__(self, agent_id):
        self.agent_id = agent_id
        self.token = os.environ.get("OPENSENTIENCE_SESSION_TOKEN", "")
        self.address = os.environ["OPENSENTIENCE_SOCKET"]
        self.started = time.monotonic()
        self.lock = threading.Lock()
        self.socket = connect(self.address)
        self.reader = self.socket.makefile("rb")

    def send(self, kind, payload, about=None):
        """Sends a message; `about` is the one whose correlation fields come back."""
        message = {"v": 1, "type": kind, "id": str(uuid.uuid4()), "payload": payload,
                   "ts": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        if about:
            message.update({name: about[name] for name in ECHOED if name in about})
            message["in_reply_to"] = about["id"]
        data = json.dumps(message).encode()
        with self.lock:
            self.socket.sendall(struct.pack(">I", len(data)) + data)

    def receive(self):
        """The next message; None when the core is gone."""
        head = self.reader.read(4)
        if len(head) < 4:
            return None
        return json.loads(self.reader.read(struct.unpack(">I", head)[0]))

    def hello(self):
        """Says hello with the token; answers what the core says."""
        protocol = {"supported_versions": [1], "capabilities": ["tools", "invoke"]}
        self.send("agent.hello", {"session_token": self.token, "agent_id": self.agent_id,
                                  "agent_version": "0.1.0", "protocol": protocol})
        return self.receive()

    def keep_beating(self, welcome):
        """Sends heartbeats for ever, in a thread of its own."""
        session = welcome["payload"]["session_id"]
        pause = welcome["payload"]["heartbeat_interval_ms"] / 1000

        def beat():
            while True:
                uptime = int((time.monotonic() - self.started) * 1000)
                self.send("agent.heartbeat", {"session_id": session, "inflight_calls": 0,
                                              "status": "ok", "uptime_ms": uptime})
                time.sleep(pause)

        threading.Thread(target=beat, daemon=True).start()

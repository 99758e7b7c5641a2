"""An agent that keeps the protocol, but for the one fault it is told to have."""

import json
import os
import socket
import struct
import sys
import threading
import time
import uuid

FAULT = sys.argv[1]
AGENT_ID = "dev.wharf.broken"
ECHOED = ("request_id", "correlation_id", "causation_id")
SOCKET = os.environ["OPENSENTIENCE_SOCKET"]
TOKEN = os.environ["OPENSENTIENCE_SESSION_TOKEN"]
STARTED = time.monotonic()
LOCK = threading.Lock()


class Session:
    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(SOCKET)
        self.reader = self.socket.makefile("rb")
        self.seen = set()

    def send(self, kind, payload, re=None, **extra):
        message = {"v": 1, "type": kind, "id": str(uuid.uuid4()), "payload": payload}
        message["ts"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        if re is not None:
            message["in_reply_to"] = re["id"]
            message.update({name: re[name] for name in ECHOED if name in re})
        if kind == "agent.tool.result" and FAULT == "wrong-echo":
            message["correlation_id"] = "something else"
        if kind == "agent.tool.result" and FAULT == "no-reply-to":
            del message["in_reply_to"]
        data = json.dumps(dict(message, **extra)).encode()
        with LOCK:
            self.socket.sendall(struct.pack(">I", len(data)) + data)

    def receive(self):
        prefix = self.reader.read(4)
        if len(prefix) < 4:
            sys.exit(0)
        length = int.from_bytes(prefix, "big")
        if length == 0 and FAULT == "takes-empty-frames":
            return self.receive()
        if not 0 < length <= 4 << 20 and FAULT != "waits-for-any-size":
            sys.exit("frame of a forbidden size")
        body = self.reader.read(length)
        if len(body) < length:
            sys.exit(0)
        try:
            return json.loads(body.decode("utf-8"))
        except ValueError:
            if FAULT != "skips-what-is-not-json":
                raise
            return self.receive()

    def shake_hands(self):
        if FAULT == "result-first":
            self.send("agent.tool.result", {"call_id": "c1", "status": "succeeded", "output": {}})
        protocol = {"supported_versions": [1], "capabilities": ["tools"]}
        hello = {"session_token": TOKEN, "agent_id": AGENT_ID, "agent_version": "0.1.0"}
        self.send("agent.hello", dict(hello, protocol=protocol))
        return self.receive()

    def beat(self, welcome):
        count = 0
        while FAULT != "no-heartbeat":
            uptime = int((time.monotonic() - STARTED) * 1000)
            count += 1
            if FAULT == "uptime-goes-back":
                uptime = 1_000_000 - count
            payload = {"session_id": welcome["session_id"], "uptime_ms": uptime}
            self.send("agent.heartbeat", dict(payload, inflight_calls=0, status="ok"))
            time.sleep(welcome["heartbeat_interval_ms"] / 1000)

    def call(self, message):
        call_id = message["payload"]["call_id"]
        if call_id in self.seen and FAULT != "runs-again":
            error = {"code": "tool.duplicate_call", "message": "Known."}
            return self.send("agent.error", {}, message, error=error)
        self.seen.add(call_id)
        error = {"code": "tool.not_found", "message": "No such tool."}
        if FAULT == "stack-trace":
            error["message"] = "Traceback (most recent call last):\n  File x, line 1"
        if FAULT == "wrong-code":
            error["code"] = "tool.internal"
        result = {"call_id": call_id, "status": "failed", "error": error}
        self.send("agent.tool.result", result, message)
        if FAULT == "two-results":
            self.send("agent.tool.result", result, message)

    def run(self):
        welcome = self.shake_hands()
        if "error" in welcome:
            return False
        if welcome["payload"]["accepted_version"] != 1 and FAULT != "any-version":
            sys.exit("unknown version")
        schema = {"type": "object"}
        tool = {"tool_id": AGENT_ID + "/hello", "name": "hello", "description": "Says hello."}
        if FAULT == "foreign-tool":
            tool["tool_id"] = "dev.wharf.other/hello"
        self.send("agent.tools.register", {"tools": [dict(tool, input_schema=schema)]})
        threading.Thread(target=self.beat, args=(welcome["payload"],), daemon=True).start()
        while True:
            self.take(self.receive())

    def take(self, message):
        kind = message["type"]
        if kind == "core.tool.call":
            self.call(message)
        elif kind == "core.goodbye" and FAULT != "stays":
            sys.exit(0)
        elif kind == "core.ping":
            for _ in range(2 if FAULT == "two-pongs" else 1):
                self.send("agent.pong", {}, message)
        elif kind == "core.tool.cancel":
            ack = {"call_id": message["payload"]["call_id"]}
            ack["accepted"] = FAULT == "accepts-any-cancel"
            self.send("agent.tool.cancel_ack", ack, message)
        elif kind == "core.tools.registered" or (kind == "core.error" and FAULT != "answers-errors"):
            pass
        elif "request_id" in message or FAULT == "answers-notices":
            error = {"code": "protocol.unknown_type", "message": "Unknown."}
            self.send("agent.error", {}, message, error=error)


if FAULT == "prints-token":
    print("connecting with", TOKEN, flush=True)
while not Session().run():
    if FAULT != "retry-loop":
        sys.exit("refused")
    time.sleep(0.05)

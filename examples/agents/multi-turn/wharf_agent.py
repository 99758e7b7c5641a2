"""A small runtime for agents in plain Python, standard library only.

A tool is a function from a `Call` to a dictionary. One thread reads what the core sends, one
sends heartbeats, and every call has a thread of its own. Copy this file beside your own agent.
"""

import json
import os
import signal
import socket
import struct
import sys
import threading
import time
import urllib.request
import uuid
from datetime import datetime, timezone

FRAME_BYTES_MAX = 4 * 1024 * 1024
CALLS_REMEMBERED_MAX = 10_000
FETCH_SECONDS_MAX = 30
ECHOED = ("request_id", "correlation_id", "causation_id", "traceparent")


class Failed(Exception):
    """A call that fails, with the code that says why."""

    def __init__(self, code, message, retryable=False):
        super().__init__(message)
        self.error = {"code": code, "message": message, "retryable": retryable}


class Canceled(Exception):
    """The core called the call off."""


class Ended(Exception):
    """The connection is over."""


class Tool:
    """A tool: a name, a function, and what the core should know of it."""

    def __init__(self, name, work, description, inputs, required=(), outputs=None):
        self.name, self.work, self.description = name, work, description
        self.input_schema = {"type": "object", "properties": inputs, "required": list(required)}
        self.output_schema = {"type": "object", "properties": outputs or {}}

    def definition(self, agent_id):
        return {
            "tool_id": agent_id + "/" + self.name,
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
            "output_schema": self.output_schema,
            "capabilities": ["streaming", "cancellation"],
            "side_effects": False,
            "requires_directive": False,
        }


class Call:
    """One call in flight: what a tool sees of it."""

    def __init__(self, agent, message):
        payload = message["payload"]
        context = payload.get("context")
        context = context if isinstance(context, dict) else {}
        self.agent, self.message = agent, message
        self.id, self.tool_id, self.input = payload["call_id"], payload["tool_id"], payload["input"]
        self.refs = context.get("refs") or []
        self.outputs = context.get("outputs") or {}
        self.outputs_dir = context.get("outputs_dir")
        self.cost_micro = 0
        self.canceled = threading.Event()
        self.seq = 0

    def stream(self, channel, **data):
        """Sends one piece of progress; stops the tool if the call was canceled meanwhile."""
        if self.canceled.is_set():
            raise Canceled()
        self.seq += 1
        payload = {"call_id": self.id, "seq": self.seq, "channel": channel, "data": data}
        self.agent.send("agent.tool.stream", payload, about=self.message)

    def log(self, text):
        self.stream("log", text=text)

    def phase(self, name, fraction):
        """Says what the tool is doing and how far it is: from 0 to 1."""
        self.stream("status", text=name, fraction=fraction)

    def partial(self, **outputs):
        """Shows outputs that are not final."""
        self.stream("partial_result", json=outputs)

    def pause(self, seconds):
        """Waits, and wakes at once when the call is canceled."""
        if self.canceled.wait(seconds):
            raise Canceled()

    def open_input(self, name):
        """An input that is a file, to be read: one that was copied here, or one at an address."""
        place = self.input.get(name)
        if name not in self.refs or not isinstance(place, str):
            raise Failed("tool.invalid_input", "`%s` must be a file." % name)
        try:
            if "://" in place:
                return urllib.request.urlopen(place, timeout=FETCH_SECONDS_MAX)
            return open(place, "rb")
        except OSError:  # Its text may hold the address, which nobody should see.
            raise Failed("storage.unavailable", "`%s` cannot be read." % name, True) from None

    def write_output(self, name, data):
        """Writes an output as a file, to where the core wants it; gives what stands for it."""
        place = self.outputs.get(name)
        if place is None and self.outputs_dir is not None:
            place = os.path.join(self.outputs_dir, name)
        if place is None:
            raise Failed("tool.output_too_large", "There is no place for `%s`." % name)
        try:
            if "://" in place:
                kind = {"Content-Type": "application/octet-stream"}
                put = urllib.request.Request(place, data=data, method="PUT", headers=kind)
                urllib.request.urlopen(put, timeout=FETCH_SECONDS_MAX).close()
            else:
                with open(place, "wb") as file:
                    file.write(data)
        except OSError:
            raise Failed("storage.unavailable", "`%s` cannot be written." % name, True) from None
        return {"$written": True}


class Agent:
    """The agent's end of one session."""

    def __init__(self, agent_id, version, tools):
        self.id, self.version = agent_id, version
        self.tools = {agent_id + "/" + tool.name: tool for tool in tools}
        self.started = time.monotonic()
        self.ended = threading.Event()
        self.lock, self.write_lock = threading.Lock(), threading.Lock()
        self.calls, self.finished = {}, {}
        self.send_bytes_max = 64 * 1024

    def connect(self):
        address = os.environ.get("OPENSENTIENCE_SOCKET")
        # Taken out of the environment, so that nothing this process starts could inherit it.
        token = os.environ.pop("OPENSENTIENCE_SESSION_TOKEN", None)
        if not address or not token:
            sys.exit("This agent is started by a core, which says where to connect.")
        if address.startswith("tcp:"):
            host, _, port = address[len("tcp:"):].rpartition(":")
            self.socket = socket.create_connection((host, int(port)))
        else:
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.socket.connect(address)
        self.reader = self.socket.makefile("rb")
        return token

    def send(self, kind, payload, answers=None, about=None, error=None):
        """Sends a message; False when it would be larger than the core allows."""
        moment = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        message = {"v": 1, "type": kind, "id": str(uuid.uuid4())}
        message["ts"] = moment.replace("+00:00", "Z")
        about = about or answers or {}
        message.update({name: about[name] for name in ECHOED if about.get(name) is not None})
        if answers is not None:
            message["in_reply_to"] = answers["id"]
        if error is not None:
            message["error"] = error
        message["payload"] = payload
        data = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
        if len(data) > self.send_bytes_max:
            return False
        with self.write_lock:
            try:
                self.socket.sendall(struct.pack(">I", len(data)) + data)
            except OSError:
                raise Ended() from None
        return True

    def receive(self):
        (length,) = struct.unpack(">I", self.exactly(4))
        if not 0 < length <= FRAME_BYTES_MAX:
            sys.exit("The core sent a frame of a forbidden size.")
        try:
            message = json.loads(self.exactly(length).decode("utf-8"))
        except (ValueError, RecursionError):
            sys.exit("The core sent a frame that is not JSON.")
        return message if isinstance(message, dict) else sys.exit("The core sent no object.")

    def exactly(self, count):
        try:
            data = self.reader.read(count)
        except OSError:
            data = b""
        if len(data) < count:
            raise Ended()
        return data

    def run(self):
        hello = {"session_token": self.connect(), "agent_id": self.id, "agent_version": self.version}
        capabilities = ["tools", "streaming", "cancellation"]
        hello["protocol"] = {"supported_versions": [1], "capabilities": capabilities}
        self.send("agent.hello", hello)
        welcome = self.receive()
        if welcome.get("type") != "core.welcome" or "error" in welcome:
            sys.exit("The core refused this agent.")
        payload = welcome["payload"]
        if payload["accepted_version"] != 1:
            sys.exit("The core chose a version of the protocol that was not offered.")
        self.session_id = payload["session_id"]
        self.send_bytes_max = payload.get("max_frame_bytes", FRAME_BYTES_MAX)
        tools = [tool.definition(self.id) for tool in self.tools.values()]
        self.send("agent.tools.register", {"tools": tools, "replace": True})
        interval = max(payload["heartbeat_interval_ms"], 1) / 1000
        threading.Thread(target=self.beat, args=(interval,), daemon=True).start()
        while not self.ended.is_set():
            self.take(self.receive())

    def beat(self, interval):
        try:
            while True:
                with self.lock:
                    inflight = len(self.calls)
                uptime_ms = int((time.monotonic() - self.started) * 1000)
                beat = {"session_id": self.session_id, "uptime_ms": uptime_ms}
                self.send("agent.heartbeat", dict(beat, inflight_calls=inflight, status="ok"))
                if self.ended.wait(interval):
                    return
        except Ended:
            pass

    def take(self, message):
        kind, payload = message.get("type"), message.get("payload")
        if not isinstance(kind, str) or not isinstance(payload, dict):
            self.refuse(message, "protocol.invalid_envelope", "The message is not complete.")
        elif kind == "core.tool.call":
            self.begin(message)
        elif kind == "core.tool.cancel":
            self.cancel(message)
        elif kind == "core.ping":
            self.send("agent.pong", {}, answers=message)
        elif kind == "core.goodbye":
            raise Ended()
        elif "request_id" in message and "in_reply_to" not in message and "error" not in message:
            self.refuse(message, "protocol.unknown_type", "This agent does not know that type.")

    def refuse(self, message, code, text):
        answers = message if isinstance(message.get("id"), str) else None
        error = {"code": code, "message": text, "where": "agent.runtime"}
        self.send("agent.error", {}, answers=answers, about=message, error=error)

    def begin(self, message):
        payload = message["payload"]
        for field, kind in (("call_id", str), ("tool_id", str), ("input", dict)):
            if not isinstance(payload.get(field), kind):
                text = "`payload.%s` is missing or has the wrong form." % field
                return self.refuse(message, "protocol.invalid_envelope", text)
        call = Call(self, message)
        with self.lock:
            known = call.id in self.calls or call.id in self.finished
            if not known:
                self.calls[call.id] = call
        if known:
            return self.refuse(message, "tool.duplicate_call", "This call was made before.")
        threading.Thread(target=self.work, args=(call,), daemon=True).start()

    def work(self, call):
        result = {"call_id": call.id}
        try:
            tool = self.tools.get(call.tool_id)
            if tool is None:
                raise Failed("tool.not_found", "This agent has no such tool.")
            result.update(status="succeeded", output=tool.work(call))
        except Canceled:
            error = {"code": "tool.canceled", "message": "The call was canceled."}
            result.update(status="canceled", error=error)
        except Failed as failed:
            result.update(status="failed", error=failed.error)
        except Ended:
            return
        except Exception:  # A tool's fault must not end the agent, nor leak what it held.
            error = {"code": "tool.internal", "message": "The tool failed inside."}
            result.update(status="failed", error=error)
        # What was spent is spent, however the call ended.
        result["metrics"] = {"cost_micro": call.cost_micro}
        self.finish(call, result)

    def finish(self, call, result):
        with self.lock:
            self.calls.pop(call.id, None)
            self.finished[call.id] = True
            if len(self.finished) > CALLS_REMEMBERED_MAX:
                del self.finished[next(iter(self.finished))]
        try:
            if not self.send("agent.tool.result", result, answers=call.message):
                text = "The output is larger than a frame may be."
                result = {"call_id": call.id, "status": "failed", "metrics": result["metrics"]}
                result["error"] = {"code": "tool.output_too_large", "message": text}
                self.send("agent.tool.result", result, answers=call.message)
        except Ended:
            pass

    def cancel(self, message):
        """Accepts a cancel while the lock keeps the call from ending, so that the result follows."""
        with self.lock:
            call = self.calls.get(message["payload"].get("call_id"))
            ack = {"call_id": message["payload"].get("call_id"), "accepted": call is not None}
            self.send("agent.tool.cancel_ack", ack, answers=message)
        if call is not None:
            call.canceled.set()


def serve(agent_id, version, tools):
    """Connects to the core that started this process, and serves until it says goodbye."""
    agent = Agent(agent_id, version, tools)

    def terminate(*_):
        raise Ended()

    signal.signal(signal.SIGTERM, terminate)
    try:
        agent.run()
    except Ended:
        pass
    except (KeyError, TypeError):
        sys.exit("The core's welcome is not complete.")
    finally:
        agent.ended.set()

"""Hello Tools: a reference agent in plain Python, standard library only.

One thread reads what the core sends, one sends heartbeats, and every call has a thread of its own,
so that a tool that blocks stops neither. All of them write through one lock. Nothing is ever
written to standard output or standard error but short sentences about how the agent ended.
"""

import json
import os
import queue
import signal
import socket
import struct
import sys
import threading
import time
import urllib.request
import uuid
from datetime import datetime, timezone

AGENT_ID = "dev.wharf.hello-python"
AGENT_VERSION = "0.1.0"
PROTOCOL_VERSION = 1

FRAME_BYTES_MAX = 4 * 1024 * 1024
CALLS_MAX = 256
OUTPUT_BYTES_MAX = 256 * 1024
FILE_BYTES_MAX = 16 * 1024 * 1024
CALLS_REMEMBERED_MAX = 10_000
FETCH_SECONDS_MAX = 30
ECHOED = ("request_id", "correlation_id", "causation_id", "traceparent")


def now():
    """This moment as RFC 3339 says it."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def no_number(_):
    """Refuses NaN and the infinities, which Python reads and JSON does not have."""
    raise ValueError()


class Refused(Exception):
    """The core, or what it sent, leaves no way to go on. The text is safe to print."""


class Ended(Exception):
    """The connection is over."""


class Failed(Exception):
    """A call that fails, with the code that says why."""

    def __init__(self, code, message, retryable=False, **details):
        super().__init__(message)
        self.error = {"code": code, "message": message, "retryable": retryable}
        if details:
            self.error["details"] = details


class Canceled(Exception):
    """The core called the call off."""


class Connection:
    """Frames in both directions: four bytes of length, then that many bytes of JSON."""

    def __init__(self, address):
        if address.startswith("fd:"):
            # The process was started with a connection; what it starts itself does not get it.
            number = int(address[len("fd:"):])
            os.set_inheritable(number, False)
            self.socket = socket.socket(fileno=number)
        elif address.startswith("tcp:"):
            host, _, port = address[len("tcp:"):].rpartition(":")
            self.socket = socket.create_connection((host, int(port)))
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.socket.connect(address)
        self.reader = self.socket.makefile("rb")
        self.lock = threading.Lock()
        self.receive_bytes_max = FRAME_BYTES_MAX
        self.send_bytes_max = 64 * 1024

    def send(self, kind, payload, answers=None, about=None, error=None):
        """Sends a message; False when it would be larger than the core allows.

        `about` is the message whose correlation fields come back, `answers` the one that this
        message is a direct reply to.
        """
        message = {"v": PROTOCOL_VERSION, "type": kind, "id": str(uuid.uuid4()), "ts": now()}
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
        with self.lock:
            try:
                self.socket.sendall(struct.pack(">I", len(data)) + data)
            except OSError:
                raise Ended() from None
        return True

    def receive(self):
        """The next message; what is not even a message ends the connection."""
        (length,) = struct.unpack(">I", self.exactly(4))
        if not 0 < length <= self.receive_bytes_max:
            raise Refused("The core sent a frame of a forbidden size.")
        try:
            text = self.exactly(length).decode("utf-8")
            message = json.loads(text, parse_constant=no_number)
            if "\\ud" in text.lower():
                # Half of a surrogate pair is no text: writing it fails, as reading it should.
                json.dumps(message, ensure_ascii=False).encode("utf-8")
        except (ValueError, RecursionError):
            raise Refused("The core sent a frame that is not JSON.") from None
        if not isinstance(message, dict):
            raise Refused("The core sent JSON that is not an object.")
        return message

    def exactly(self, count):
        try:
            data = self.reader.read(count)
        except OSError:
            data = b""
        if len(data) < count:
            raise Ended()
        return data

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class Call:
    """One call in flight: what a tool sees of it."""

    def __init__(self, agent, message):
        payload = message["payload"]
        self.agent, self.connection, self.message = agent, agent.connection, message
        self.id, self.tool_id, self.input = payload["call_id"], payload["tool_id"], payload["input"]
        context = payload.get("context")
        context = context if isinstance(context, dict) else {}
        self.refs, self.outputs = context.get("refs") or [], context.get("outputs") or {}
        self.outputs_dir = context.get("outputs_dir")
        self.canceled = threading.Event()
        self.invokes = {}
        self.seq = 0

    def stream(self, channel, text, **more):
        """Sends one chunk; stops the tool if the call was canceled meanwhile."""
        if self.canceled.is_set():
            raise Canceled()
        self.seq += 1
        payload = {"call_id": self.id, "seq": self.seq, "channel": channel}
        payload["data"] = dict(more, text=text)
        self.connection.send("agent.tool.stream", payload, about=self.message)

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

    def has_place(self, name):
        """Whether an output can be a file."""
        return name in self.outputs or self.outputs_dir is not None

    def write_output(self, name, data):
        """Writes an output as a file, to where the core wants it; gives what stands for it."""
        if not self.has_place(name):
            raise Failed("tool.output_too_large", "There is no place for `%s`." % name)
        place = self.outputs.get(name) or os.path.join(self.outputs_dir, name)
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

    def call(self, tool_id, given):
        """Calls another tool through the core and passes on what it streams."""
        if "invoke" not in self.agent.granted:
            raise Failed("permission.denied", "The core does not let this agent call tools.")
        invoke_id, news = str(uuid.uuid4()), queue.Queue()
        payload = {"invoke_id": invoke_id, "tool_id": tool_id, "input": given}
        payload["parent_call_id"] = self.id
        self.invokes[invoke_id] = news
        try:
            self.connection.send("agent.tool.invoke", payload, about=self.message)
            while not self.canceled.is_set():
                kind, payload = news.get()
                if kind == "core.tool.invoke_stream":
                    self.pass_on(payload.get("channel"), payload.get("data"))
                elif kind == "core.tool.invoke_result":
                    if payload.get("status") == "succeeded":
                        return payload.get("output", {})
                    raise failure_of(payload)
            self.connection.send("agent.tool.invoke_cancel", {"invoke_id": invoke_id})
            raise Canceled()
        finally:
            del self.invokes[invoke_id]

    def pass_on(self, channel, data):
        if channel in ("stdout", "stderr", "log", "status") and isinstance(data, dict):
            more = {"fraction": data["fraction"]} if "fraction" in data else {}
            self.stream(channel, data.get("text", ""), **more)

    def cancel(self):
        """Wakes the tool, whether it pauses or waits for another one."""
        self.canceled.set()
        for news in list(self.invokes.values()):
            news.put(("canceled", {}))

    def pause(self, milliseconds):
        """Waits, and wakes at once when the call is canceled."""
        if self.canceled.wait(milliseconds / 1000):
            raise Canceled()


def hello_world(call):
    return {"greeting": "Hello, %s!" % call.input.get("name", "world")}


def stream_counter(call):
    n, delay_ms = call.input["n"], call.input.get("delay_ms", 0)
    for count in range(1, n + 1):
        call.stream("stdout", "%d\n" % count)
        call.stream("status", "counted to %d of %d" % (count, n), fraction=count / n)
        call.pause(delay_ms)
    return {"counted": n}


def sleep(call):
    call.pause(call.input["ms"])
    return {"slept_ms": call.input["ms"]}


def invalid_input(call):
    return {"integer": call.input["must_be"]}


def large_output(call):
    wanted = call.input["bytes"]
    if wanted > OUTPUT_BYTES_MAX and call.has_place("text"):
        given = min(wanted, FILE_BYTES_MAX)
        text = call.write_output("text", b"x" * given)
        return {"text": text, "bytes": given, "wanted": wanted, "truncated": given < wanted}
    given = min(wanted, OUTPUT_BYTES_MAX, call.connection.send_bytes_max // 2)
    return {"text": "x" * given, "bytes": given, "wanted": wanted, "truncated": given < wanted}


def relay(call):
    return {"output": call.call(call.input["tool_id"], call.input.get("input", {}))}


def integer(most, least=0):
    return {"type": "integer", "minimum": least, "maximum": most}


# Each tool with its description, the properties of its input, and which of them it needs.
TOOLS = {
    "hello_world": (hello_world, "Greets by name.", {"name": {"type": "string"}}, []),
    "stream_counter": (
        stream_counter,
        "Counts to n and streams every step.",
        {"n": integer(4000), "delay_ms": integer(60_000)},
        ["n"],
    ),
    "sleep": (sleep, "Waits for some milliseconds.", {"ms": integer(3_600_000)}, ["ms"]),
    "invalid_input": (
        invalid_input,
        "Takes nothing but an integer.",
        {"must_be": {"type": "integer"}},
        ["must_be"],
    ),
    "large_output": (
        large_output,
        "Returns that many bytes, or as many as are allowed.",
        {"bytes": integer(1 << 40)},
        ["bytes"],
    ),
    "relay": (
        relay,
        "Calls another tool and passes on what it says.",
        {"tool_id": {"type": "string"}, "input": {"type": "object"}},
        ["tool_id"],
    ),
}
# Tools that may act on the world, by what they call.
ACTING = {"relay"}


def definition(name):
    _, description, properties, required = TOOLS[name]
    return {
        "tool_id": AGENT_ID + "/" + name,
        "name": name,
        "description": description,
        "input_schema": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        },
        "output_schema": {"type": "object"},
        "capabilities": ["streaming", "cancellation"],
        "side_effects": name in ACTING,
        "requires_directive": False,
    }


def check(name, given):
    """Holds an input against its schema; only the words our own schemas use are known."""
    _, _, properties, required = TOOLS[name]
    for field in required:
        if field not in given:
            raise Failed("tool.invalid_input", "`%s` is missing." % field)
    for field, value in given.items():
        rule = properties.get(field)
        if rule is None:
            raise Failed("tool.invalid_input", "The input has a field that the tool does not take.")
        if rule["type"] == "string" and not isinstance(value, str):
            raise Failed("tool.invalid_input", "`%s` must be text." % field)
        if rule["type"] == "object" and not isinstance(value, dict):
            raise Failed("tool.invalid_input", "`%s` must be an object." % field)
        if rule["type"] == "integer":
            # A boolean is an integer in Python and is none in JSON.
            if isinstance(value, bool) or not isinstance(value, int):
                raise Failed("tool.invalid_input", "`%s` must be an integer." % field)
            least, most = rule.get("minimum", value), rule.get("maximum", value)
            if not least <= value <= most:
                text = "`%s` must lie between %d and %d." % (field, least, most)
                raise Failed("tool.invalid_input", text)


class Agent:
    """The agent's end of one session."""

    def __init__(self, address, token):
        self.connection = Connection(address)
        self.token = token
        self.started = time.monotonic()
        self.ended = threading.Event()
        self.lock = threading.Lock()
        self.calls = {}
        self.finished = {}
        self.granted = []

    def run(self):
        self.shake_hands()
        tools = [definition(name) for name in TOOLS]
        self.connection.send("agent.tools.register", {"tools": tools, "replace": True})
        threading.Thread(target=self.beat, daemon=True).start()
        while not self.ended.is_set():
            self.take(self.connection.receive())

    def shake_hands(self):
        capabilities = ["tools", "streaming", "cancellation", "invoke"]
        hello = {
            "session_token": self.token,
            "agent_id": AGENT_ID,
            "agent_version": AGENT_VERSION,
            "protocol": {"supported_versions": [PROTOCOL_VERSION], "capabilities": capabilities},
        }
        self.token = None
        self.connection.send("agent.hello", hello)
        try:
            welcome = self.connection.receive()
        except Ended:
            raise Refused("The core closed the connection before it welcomed this agent.") from None
        if welcome.get("type") != "core.welcome":
            raise Refused("The core answered with something other than a welcome.")
        if isinstance(welcome.get("error"), dict):
            raise Refused("The core refused this agent: %s." % safe_code(welcome["error"]))
        payload = welcome["payload"]
        if payload["accepted_version"] != PROTOCOL_VERSION:
            raise Refused("The core chose a version of the protocol that was not offered.")
        self.session_id = payload["session_id"]
        self.interval = max(payload["heartbeat_interval_ms"], 1) / 1000
        granted = payload.get("capabilities")
        self.granted = granted if isinstance(granted, list) else []
        limit = payload.get("max_frame_bytes", FRAME_BYTES_MAX)
        self.connection.send_bytes_max = self.connection.receive_bytes_max = limit

    def beat(self):
        """Heartbeats on a fixed beat, so that a slow one does not shift those after it."""
        due = time.monotonic()
        try:
            while not self.ended.wait(max(0, due - time.monotonic())):
                with self.lock:
                    inflight = len(self.calls)
                uptime_ms = int((time.monotonic() - self.started) * 1000)
                payload = {"session_id": self.session_id, "uptime_ms": uptime_ms}
                payload.update(inflight_calls=inflight, status="ok")
                self.connection.send("agent.heartbeat", payload)
                due = max(due + self.interval, time.monotonic())
        except Ended:
            pass

    def take(self, message):
        kind = message.get("type")
        wrong = fault_of(message)
        if wrong is not None:
            if "error" not in message:
                self.refuse(message, "protocol.invalid_envelope", wrong)
        elif kind == "core.tool.call":
            self.begin(message)
        elif kind == "core.tool.cancel":
            self.cancel(message)
        elif kind in ("core.tool.invoke_stream", "core.tool.invoke_result"):
            self.tell(kind, message["payload"])
        elif kind == "core.ping":
            self.connection.send("agent.pong", {}, answers=message)
        elif kind == "core.goodbye":
            raise Ended()
        elif kind in ("core.tools.registered", "core.tools.unregistered", "core.error"):
            pass
        elif kind.startswith("agent."):
            raise Refused("The core sent a message that only an agent may send.")
        elif "request_id" in message and "in_reply_to" not in message and "error" not in message:
            self.refuse(message, "protocol.unknown_type", "This agent does not know that type.")

    def tell(self, kind, payload):
        """Gives news of a call through the core to the tool that waits for them, if it does."""
        with self.lock:
            calls = list(self.calls.values())
        for call in calls:
            news = call.invokes.get(payload.get("invoke_id"))
            if news is not None:
                news.put((kind, payload))

    def refuse(self, message, code, text):
        answers = message if isinstance(message.get("id"), str) else None
        error = {"code": code, "message": text, "where": "agent.runtime"}
        self.connection.send("agent.error", {}, answers=answers, about=message, error=error)

    def begin(self, message):
        payload = message["payload"]
        for field, kind in (("call_id", str), ("tool_id", str), ("input", dict)):
            if not isinstance(payload.get(field), kind):
                text = "`payload.%s` is missing or has the wrong form." % field
                return self.refuse(message, "protocol.invalid_envelope", text)
        call = Call(self, message)
        with self.lock:
            known = call.id in self.calls or call.id in self.finished
            busy = len(self.calls) >= CALLS_MAX
            if not known and not busy:
                self.calls[call.id] = call
        if known:
            return self.refuse(message, "tool.duplicate_call", "This call was made before.")
        if busy:
            error = Failed("tool.busy", "The agent has too many calls at once.", True).error
            return self.finish(call, {"status": "failed", "error": error})
        threading.Thread(target=self.work, args=(call,), daemon=True).start()

    def work(self, call):
        started_at = now()
        outcome = {"started_at": started_at}
        try:
            outcome.update(status="succeeded", output=self.execute(call))
        except Canceled:
            error = {"code": "tool.canceled", "message": "The call was canceled."}
            outcome.update(status="canceled", error=error)
        except Failed as failed:
            outcome.update(status="failed", error=failed.error)
        except Ended:
            return
        except Exception:  # A handler's fault must not end the agent, nor leak what it held.
            error = {"code": "tool.internal", "message": "The tool failed inside."}
            outcome.update(status="failed", error=error)
        outcome["finished_at"] = now()
        self.finish(call, outcome)

    def execute(self, call):
        name = call.tool_id[len(AGENT_ID) + 1:]
        if call.tool_id != AGENT_ID + "/" + name or name not in TOOLS:
            raise Failed("tool.not_found", "This agent has no such tool.")
        check(name, call.input)
        return TOOLS[name][0](call)

    def finish(self, call, outcome):
        """Sends the one result of a call. It leaves the calls in flight first, so that no
        heartbeat counts a call whose result the core has already seen."""
        with self.lock:
            self.calls.pop(call.id, None)
            self.finished[call.id] = True
            if len(self.finished) > CALLS_REMEMBERED_MAX:
                del self.finished[next(iter(self.finished))]
        payload = dict(outcome, call_id=call.id)
        try:
            if not self.connection.send("agent.tool.result", payload, answers=call.message):
                text = "The output is larger than a frame may be."
                error = {"code": "tool.output_too_large", "message": text}
                payload = {"call_id": call.id, "status": "failed", "error": error}
                self.connection.send("agent.tool.result", payload, answers=call.message)
        except Ended:
            pass

    def cancel(self, message):
        """Accepts a cancel while the lock keeps the call from ending, so that the result follows."""
        call_id = message["payload"].get("call_id")
        if not isinstance(call_id, str):
            return
        with self.lock:
            call = self.calls.get(call_id)
            ack = {"call_id": call_id, "accepted": call is not None}
            self.connection.send("agent.tool.cancel_ack", ack, answers=message)
        if call is not None:
            call.cancel()

    def stop(self):
        """Wakes every tool that waits, and ends the session."""
        self.ended.set()
        with self.lock:
            calls = list(self.calls.values())
        for call in calls:
            call.cancel()
        self.connection.close()


def fault_of(message):
    """What is wrong with an envelope, or None."""
    version = message.get("v")
    if isinstance(version, bool) or not isinstance(version, int):
        return "`v` is missing or has the wrong form."
    if version != PROTOCOL_VERSION:
        raise Refused("The core changed the version of the protocol.")
    for field in ("type", "id", "ts"):
        if not isinstance(message.get(field), str) or not message[field]:
            return "`%s` is missing or has the wrong form." % field
    if not isinstance(message.get("payload"), dict):
        return "`payload` is missing or has the wrong form."
    return None


def failure_of(payload):
    """Why another tool did not succeed: its code, and words of our own."""
    error = payload.get("error") if isinstance(payload.get("error"), dict) else {}
    code = safe_code(error)
    known = "." in code
    return Failed(code if known else "tool.failed", "The tool that was called did not succeed.")


def safe_code(error):
    """An error's code if it looks like one: nothing else of a refusal is worth printing."""
    code = error.get("code")
    plain = isinstance(code, str) and code.replace(".", "").replace("_", "").isalnum()
    return code if plain and len(code) <= 100 else "no reason was given"


def main():
    address = os.environ.get("OPENSENTIENCE_SOCKET")
    # Taken out of the environment, so that nothing this process starts could inherit it.
    token = os.environ.pop("OPENSENTIENCE_SESSION_TOKEN", None)
    if address and address.startswith("fd:"):
        # Whoever holds the connection needs no other proof.
        token = token or "inherited"
    if not address or not token:
        sys.exit("This agent is started by a core, which says where to connect.")
    try:
        agent = Agent(address, token)
    except (OSError, ValueError):
        sys.exit("The core cannot be reached.")

    def terminate(*_):
        # Taking a lock here could wait for the very code that was interrupted.
        agent.ended.set()
        raise Ended()

    signal.signal(signal.SIGTERM, terminate)
    try:
        agent.run()
    except Ended:
        pass
    except Refused as refused:
        sys.exit(str(refused))
    except (KeyError, TypeError):
        sys.exit("The core's welcome is not complete.")
    finally:
        agent.stop()


if __name__ == "__main__":
    main()

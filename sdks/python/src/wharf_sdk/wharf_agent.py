"""The runtime of an agent in one file, standard library only.

A tool is a function from a `Call` to a dictionary. One thread reads what the core sends, one
sends heartbeats, and every call has a thread of its own, so that a tool that blocks stops neither.
`wharf_sdk.Agent` builds on it; an agent that should need nothing installed copies this file beside
itself (`python3 -m wharf_sdk.vendor FOLDER`). Nothing an agent is sent is ever printed.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import struct
import sys
import threading
import time
import unicodedata
import uuid
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any, BinaryIO, Callable, Dict, Iterable, Iterator, List, Mapping
from typing import Optional, Set, Tuple, Union, cast

VERSION = 1
FRAME_BYTES_MAX = 4 * 1024 * 1024
HELLO_BYTES_MAX = 64 * 1024
CALLS_MAX = 256
CALLS_REMEMBERED_MAX = 10_000
# How long an idempotency key is kept after its call, and how many: that is what the core is told.
KEYS_KEPT_SECONDS = 600
KEYS_MAX = 100_000
FETCH_SECONDS_MAX = 30
STEP_NAME_BYTES_MAX = 128
# Steps that `each` does at once. A core takes 256 from all calls of an agent together.
AT_ONCE_MAX = 16
CAPABILITIES = ("tools", "streaming", "cancellation", "invoke", "ask", "notify", "steps")
ECHOED = ("request_id", "correlation_id", "causation_id", "traceparent")

Json = Dict[str, Any]
News = Tuple[str, Mapping[str, Any]]


class Failed(Exception):
    """A call that fails, with the code that says why. The text is meant for the caller."""

    def __init__(self, code: str, message: str, retryable: bool = False, **details: Any) -> None:
        super().__init__(message)
        self.error: Json = {"code": code, "message": message, "retryable": retryable}
        self.error.update({"details": details} if details else {})


class Canceled(Exception):
    """The core called the call off."""


class Ended(Exception):
    """The connection is over."""


class Refused(Exception):
    """The core, or what it sent, leaves no way to go on. The text is safe to print."""


class Tool:
    """A tool: a name, a function, and what the core should know of it."""

    def __init__(
        self,
        name: str,
        work: Callable[[Call], Mapping[str, Any]],
        description: str,
        inputs: Mapping[str, Any],
        required: Iterable[str] = (),
        outputs: Optional[Mapping[str, Any]] = None,
        side_effects: Optional[bool] = False,
        requires_directive: bool = False,
        mock: bool = False,
        tags: Iterable[str] = (),
        free: bool = False,
        durable: bool = False,
    ) -> None:
        self.name, self.work, self.description = name, work, description
        self.side_effects, self.requires_directive = side_effects, requires_directive
        # It can pretend (it is called in mode `mock` too), is free, finds its steps again.
        self.capabilities = ["mock"] * mock + ["free"] * free + ["durable"] * durable
        self.tags = list(tags)
        self.input_schema: Json = {"type": "object", "properties": dict(inputs)}
        self.input_schema["required"] = list(required)
        self.output_schema: Json = {"type": "object", "properties": dict(outputs or {})}

    def definition(self, agent_id: str) -> Json:
        """The tool as it is registered."""
        definition: Json = {
            "tool_id": agent_id + "/" + self.name,
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
            "output_schema": self.output_schema,
            "capabilities": ["streaming", "cancellation"] + self.capabilities,
            "requires_directive": self.requires_directive,
        }
        definition.update({"tags": self.tags} if self.tags else {})
        definition.update({} if self.side_effects is None else {"side_effects": self.side_effects})
        return definition


class Connection:
    """Frames in both directions: four bytes of length, then that many bytes of JSON."""

    def __init__(self, address: str) -> None:
        if address.startswith("fd:"):
            # The process was started with a connection; what it starts itself does not get it.
            number = int(address[len("fd:") :])
            os.set_inheritable(number, False)
            self._socket = socket.socket(fileno=number)
        elif address.startswith("tcp:"):
            host, _, port = address[len("tcp:") :].rpartition(":")
            self._socket = socket.create_connection((host, int(port)))
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.connect(address)
        self._reader = self._socket.makefile("rb")
        self._writing = threading.Lock()
        self.receive_bytes_max = FRAME_BYTES_MAX
        self.send_bytes_max = HELLO_BYTES_MAX

    def send(
        self,
        kind: str,
        payload: Mapping[str, Any],
        answers: Optional[Json] = None,
        about: Optional[Json] = None,
        error: Optional[Json] = None,
    ) -> bool:
        """Sends a message; False when it would be larger than the core allows.

        `about` is the message whose correlation fields come back, `answers` the one that this
        message is a direct reply to.
        """
        message: Json = {"v": VERSION, "type": kind, "id": str(uuid.uuid4()), "ts": moment()}
        source = about or answers or {}
        message.update({name: source[name] for name in ECHOED if source.get(name) is not None})
        if answers is not None:
            message["in_reply_to"] = answers["id"]
        if error is not None:
            message["error"] = error
        message["payload"] = payload
        text = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        data = text.encode("utf-8")
        if len(data) > self.send_bytes_max:
            return False
        with self._writing:
            try:
                self._socket.sendall(struct.pack(">I", len(data)) + data)
            except OSError:
                raise Ended() from None
        return True

    def receive(self) -> Json:
        """The next message; what is not even a message ends the connection."""
        (length,) = struct.unpack(">I", self._exactly(4))
        if not 0 < length <= self.receive_bytes_max:
            raise Refused("The core sent a frame of a forbidden size.")
        try:
            text = self._exactly(length).decode("utf-8")
            message = json.loads(text, parse_constant=_no_number)
            if "\\ud" in text.lower():
                # Half of a surrogate pair is no text: writing it fails, as reading it should.
                json.dumps(message, ensure_ascii=False).encode("utf-8")
        except (ValueError, RecursionError):
            raise Refused("The core sent a frame that is not JSON.") from None
        if not isinstance(message, dict):
            raise Refused("The core sent JSON that is not an object.")
        return message

    def _exactly(self, count: int) -> bytes:
        try:
            data = self._reader.read(count)
        except (OSError, ValueError):
            data = b""
        if len(data) < count:
            raise Ended()
        return data

    def close(self) -> None:
        """Ends the connection, also for a thread that reads it."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class Call:
    """One call in flight: what a tool sees of it."""

    def __init__(self, session: Session, message: Json) -> None:
        payload = message["payload"]
        context = payload.get("context")
        self.context: Json = context if isinstance(context, dict) else {}
        self.session, self.message = session, message
        self.id: str = payload["call_id"]
        self.tool_id: str = payload["tool_id"]
        self.input: Json = payload["input"]
        self.refs: List[str] = self.context.get("refs") or []
        self.outputs: Dict[str, str] = self.context.get("outputs") or {}
        self.outputs_dir: Optional[str] = self.context.get("outputs_dir")
        self.mode: str = self.context.get("mode") or "real"
        # The approval that the call runs under, if somebody gave one.
        self.approval: Optional[str] = self.context.get("approval")
        self.idempotency_key: Optional[str] = payload.get("idempotency_key")
        self.cost_micro = 0
        self.canceled = threading.Event()
        self._seq, self._streaming = 0, threading.Lock()
        self._waiting: Dict[str, queue.Queue[News]] = {}
        self._steps = Steps()

    def stream(self, channel: str, **data: Any) -> None:
        """Sends one piece of progress; stops the tool if the call was canceled meanwhile."""
        if self.canceled.is_set():
            raise Canceled()
        with self._streaming:
            payload = {"call_id": self.id, "seq": self._seq + 1, "channel": channel, "data": data}
            # A piece that is too large is left out; what it shows is not final anyway.
            if self.session.connection.send("agent.tool.stream", payload, about=self.message):
                self._seq += 1

    def log(self, text: str) -> None:
        """Writes a line to the run's log."""
        self.stream("log", text=text)

    def phase(self, name: str, fraction: float) -> None:
        """Says what the tool is doing and how far it is: from 0 to 1."""
        self.stream("status", text=name, fraction=fraction)

    def partial(self, **outputs: Any) -> None:
        """Shows outputs that are not final."""
        self.stream("partial_result", json=outputs)

    def cost(self, micro: int) -> None:
        """Adds to what the call has cost, in micro-dollars."""
        self.report_cost(self.cost_micro + micro)

    def report_cost(self, so_far_micro: int) -> None:
        """Tells the core what the call has cost so far, so that a budget can stop it."""
        with self._streaming:
            self.cost_micro = max(self.cost_micro, so_far_micro)
            payload: Json = {"call_id": self.id, "seq": self._seq + 1, "channel": "status"}
            payload.update(data={"text": ""}, cost_micro=self.cost_micro)
            if self.session.connection.send("agent.tool.stream", payload, about=self.message):
                self._seq += 1

    def pause(self, seconds: float) -> None:
        """Waits, and wakes at once when the call is canceled."""
        if self.canceled.wait(seconds):
            raise Canceled()

    def notice(self, text: str, level: str = "info") -> None:
        """Tells people something, if the core lets this agent."""
        if "notify" in self.session.granted:
            payload = {"call_id": self.id, "level": level, "text": text}
            self.session.connection.send("agent.notice", payload, about=self.message)

    def open_input(self, name: str) -> BinaryIO:
        """An input that is a file, to be read: one that was copied here, or one at an address."""
        place = self.input.get(name)
        if name not in self.refs or not isinstance(place, str):
            raise Failed("tool.invalid_input", "`%s` must be a file." % name)
        try:
            if "://" in place:
                return _fetch(place)
            return open(place, "rb")
        except OSError:  # Its text may hold the address, which nobody should see.
            raise Failed("storage.unavailable", "`%s` cannot be read." % name, True) from None

    def place_of(self, name: str) -> Optional[str]:
        """Where an output can be written as a file, if there is a place for it."""
        if name in self.outputs or self.outputs_dir is None:
            return self.outputs.get(name)
        return os.path.join(self.outputs_dir, name)

    def write_output(self, name: str, data: Union[bytes, BinaryIO]) -> Json:
        """Writes an output as a file, to where the core wants it; gives what stands for it."""
        place = self.place_of(name)
        if place is None:
            raise Failed("tool.output_too_large", "There is no place for `%s`." % name)
        try:
            if "://" in place:
                _upload(place, data)
            else:
                with open(place, "wb") as file:
                    for piece in _pieces(data):
                        file.write(piece)
        except OSError:
            raise Failed("storage.unavailable", "`%s` cannot be written." % name, True) from None
        return {"$written": True}

    def call(
        self,
        tool_id: str,
        given: Mapping[str, Any],
        timeout: Optional[float] = None,
        idempotency_key: Optional[str] = None,
        on_piece: Optional[Callable[[str, Mapping[str, Any]], None]] = None,
    ) -> Json:
        """Calls another tool through the core and gives its output.

        It needs an approved permission `tool:invoke:…`. `on_piece` is told what the tool streams:
        a channel and its data.
        """
        more: Json = {} if timeout is None else {"timeout_ms": int(timeout * 1000)}
        more.update({} if idempotency_key is None else {"idempotency_key": idempotency_key})
        return self._invoke(tool_id, given, more, on_piece)

    def _invoke(
        self,
        tool_id: str,
        given: Mapping[str, Any],
        more: Json,
        on_piece: Optional[Callable[[str, Mapping[str, Any]], None]] = None,
    ) -> Json:
        number = str(uuid.uuid4())
        payload: Json = {"invoke_id": number, "tool_id": tool_id, "input": dict(given)}
        payload.update(more, parent_call_id=self.id)
        news = self._ask("invoke", number, "agent.tool.invoke", payload)
        try:
            while True:
                kind, said = news.get()
                if kind == "canceled":
                    # A step is there for the next attempt, too; the end of the run ends it.
                    if "step" not in more:
                        cancel = {"invoke_id": number}
                        self.session.connection.send("agent.tool.invoke_cancel", cancel)
                    raise Canceled()
                if kind == "core.tool.invoke_result":
                    return _output_of(said)
                if on_piece is not None and isinstance(said.get("data"), dict):
                    on_piece(str(said.get("channel")), said["data"])
        finally:
            self._waiting.pop(number, None)

    def ask(self, title: str, schema: Mapping[str, Any], within: Optional[float] = None) -> Json:
        """Asks a person and waits; the run's time stands still meanwhile.

        Gives `status` (`answered`, `declined`, `cancelled`, `denied`, `off_script` or `expired`),
        `value` and `text`.
        """
        number = str(uuid.uuid4())
        payload: Json = {"ask_id": number, "call_id": self.id, "title": title}
        payload["schema"] = dict(schema)
        payload.update({} if within is None else {"deadline_ms": int(within * 1000)})
        news = self._ask("ask", number, "agent.question.ask", payload)
        try:
            kind, said = news.get()
        finally:
            self._waiting.pop(number, None)
        if kind == "canceled":
            raise Canceled()
        return dict(said)

    def step(
        self, name: str, tool_id: str, given: Optional[Mapping[str, Any]] = None, /, **more: Any
    ) -> Json:
        """Calls another tool as a step of a durable tool: what it gave is there again whenever the
        call is repeated. A step is known by its name and by how often the name was used."""
        with self._steps.under_way(name) as n:
            return self.call_step(name, n, tool_id, dict(given or {}, **more))

    def each(
        self, name: str, tool_id: str, all_given: Iterable[Mapping[str, Any]], at_once: int = 0
    ) -> List[Json]:
        """Calls a tool with each of these inputs, several at once, and gives what came out in
        their order. Of those that fail the first raises its error when all are over."""
        all_inputs = [dict(given) for given in all_given]
        with self._steps.under_way(name, len(all_inputs)) as first:

            def work(n: int, inputs: Json) -> Callable[[], Json]:
                return lambda: self.call_step(name, n, tool_id, inputs)

            works = [work(first + place, inputs) for place, inputs in enumerate(all_inputs)]
            return in_threads(works, at_once or AT_ONCE_MAX)

    def local(self, name: str, work: Callable[[], Any]) -> Any:
        """What `work` gives, as JSON: it runs until that is kept, and not when the call is repeated
        afterwards. What it does may so be done twice, if it is cut off before."""
        with self._steps.under_way(name) as n:
            known, value = self.keep_value(name, n)
            if known:
                return value
            value = work()
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError):
                raise Failed("tool.invalid_output", "What `%s` gave is not JSON." % name) from None
            return self.keep_value(name, n, (value,))[1]

    def now(self) -> datetime:
        """The moment it was when the code came here first."""
        now_ms = self.local("wharf.now", lambda: int(time.time() * 1000))
        return datetime.fromtimestamp(now_ms / 1000, timezone.utc)

    def call_step(self, name: str, n: int, tool_id: str, given: Mapping[str, Any]) -> Json:
        """Has the core do a step, or find it, and waits for what it gives."""
        self._check_steps()
        return self._invoke(tool_id, given, {"step": {"name": name, "n": n}})

    def keep_value(self, name: str, n: int, value: Tuple[Any, ...] = ()) -> Tuple[bool, Any]:
        """Whether the core keeps a value under a name, and which; if none is, it keeps this one."""
        step = {"name": name, "n": n}
        number = json.dumps([self.id, step], sort_keys=True)
        payload: Json = {"call_id": self.id, "step": step}
        payload.update({"value": value[0]} if value else {})
        self._check_steps()
        news = self._ask("steps", number, "agent.step.local", payload)
        try:
            kind, said = news.get()
        finally:
            self._waiting.pop(number, None)
        if kind == "canceled":
            raise Canceled()
        if isinstance(said.get("error"), dict):
            code = safe_code(said["error"])
            raise Failed(code if "." in code else "tool.failed", "It could not be kept.")
        return "value" in said, said.get("value")

    def _check_steps(self) -> None:
        if "steps" not in self.session.granted:
            raise Failed("permission.denied", "This core keeps no steps.")

    def _ask(self, right: str, number: str, kind: str, payload: Json) -> queue.Queue[News]:
        """Sends what will be answered; whoever waits is there before it is sent."""
        if right not in self.session.granted:
            raise Failed("permission.denied", "The core does not let this agent do that.")
        if self.canceled.is_set():
            raise Canceled()
        news: queue.Queue[News] = queue.Queue()
        self._waiting[number] = news
        if not self.session.connection.send(kind, payload, about=self.message):
            del self._waiting[number]
            raise Failed("tool.input_too_large", "The input is larger than a frame may be.")
        return news

    def tell(self, number: str, kind: str, payload: Mapping[str, Any]) -> None:
        """Gives news to the tool if it waits for them."""
        news = self._waiting.get(number)
        if news is not None:
            news.put((kind, payload))

    def cancel(self) -> None:
        """Wakes the tool, whether it pauses or waits for somebody."""
        self.canceled.set()
        for news in list(self._waiting.values()):
            news.put(("canceled", {}))


class Steps:
    """The steps that one attempt has asked for. The number of a step is how often its name was
    used until then, so that the same code finds the same steps again."""

    def __init__(self) -> None:
        self._used: Dict[str, int] = {}
        self._open: Set[str] = set()
        self._lock = threading.Lock()

    def begin(self, name: str, count: int = 1) -> int:
        """The number of the next step of this name, or of the first of several."""
        fits = isinstance(name, str) and 0 < len(name.encode("utf-8")) <= STEP_NAME_BYTES_MAX
        if not fits or any(unicodedata.category(letter) == "Cc" for letter in name):
            text = "A step needs a name of at most %d bytes." % STEP_NAME_BYTES_MAX
            raise Failed("request.invalid", text)
        with self._lock:
            if name in self._open:
                text = "The step `%s` is under way: give this one another name, or use `each`."
                raise Failed("step.in_use", text % name)
            self._open.add(name)
            first = self._used.get(name, 0) + 1
            self._used[name] = first + count - 1
        return first

    def end(self, name: str) -> None:
        """The steps of this name are over, so that it can be used again."""
        with self._lock:
            self._open.discard(name)

    @contextmanager
    def under_way(self, name: str, count: int = 1) -> Iterator[int]:
        """Begins steps of this name, and ends them with the block."""
        first = self.begin(name, count)
        try:
            yield first
        finally:
            self.end(name)


class Once:
    """Calls with idempotency keys: each key is executed once, for as long as was promised.

    When there is no room for more keys, new ones are refused: none is forgotten sooner. Only the
    session uses it, and holds its lock.
    """

    def __init__(self, kept_seconds: float = KEYS_KEPT_SECONDS, keys_max: int = KEYS_MAX) -> None:
        self.kept_seconds, self.keys_max = kept_seconds, keys_max
        self._first: Dict[str, Tuple[str, Optional[Json]]] = {}
        self._ended: Dict[str, float] = {}
        self._waiting: Dict[str, List[Call]] = {}

    @property
    def promise(self) -> Json:
        """What the core is told."""
        kept_for_ms = int(self.kept_seconds * 1000)
        return {"kept_for": "process", "kept_for_ms": kept_for_ms, "keys_max": self.keys_max}

    def _forget_old(self) -> None:
        while self._ended:
            key, ended = next(iter(self._ended.items()))
            if time.monotonic() - ended < self.kept_seconds:
                return
            del self._ended[key], self._first[key]

    def begin(self, call: Call) -> Tuple[bool, Optional[Json]]:
        """Whether to execute the call, and if not how it ends, if that is known yet."""
        key = _key_of(call)
        if key is None:
            return True, None
        self._forget_old()
        if key not in self._first:
            if len(self._first) >= self.keys_max:
                text = "The agent cannot remember another idempotency key now."
                return False, failure("tool.busy", text, True)
            self._first[key] = (_canonical(call), None)
            return True, None
        given, outcome = self._first[key]
        if given != _canonical(call):
            text = "The idempotency key was used with another input."
            return False, failure("tool.idempotency_conflict", text)
        if outcome is None:
            self._waiting.setdefault(key, []).append(call)
        return False, outcome

    def end(self, call: Call, outcome: Json) -> List[Call]:
        """Keeps how a call ended, and gives those that waited for it."""
        key = _key_of(call)
        if key is None or key not in self._first:
            return []
        if outcome["status"] == "succeeded":
            # The price was paid once.
            kept = dict(outcome, metrics={"cost_micro": 0})
            self._first[key] = (self._first[key][0], kept)
            self._ended[key] = time.monotonic()
        else:
            del self._first[key]
        return self._waiting.pop(key, [])

    def leave(self, call: Call) -> bool:
        """Takes a call that waits for another one out of the queue; False if it does not."""
        waiting = self._waiting.get(_key_of(call) or "", [])
        if call not in waiting:
            return False
        waiting.remove(call)
        return True


class Session:
    """The agent's end of one session."""

    def __init__(
        self, agent_id: str, version: str, tools: Iterable[Tool], calls_max: int, idempotent: bool
    ) -> None:
        self.id, self.version = agent_id, version
        self.tools = {agent_id + "/" + tool.name: tool for tool in tools}
        self.granted: List[str] = []
        self.connection: Connection
        self._calls_max = max(calls_max, 1)
        self._once = Once() if idempotent else None
        self._started = time.monotonic()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._calls: Dict[str, Call] = {}
        self._finished: Dict[str, bool] = {}
        self._draining = False

    def run(self, address: str, token: str) -> None:
        """Connects and serves until the connection is over."""
        try:
            self.connection = Connection(address)
        except (OSError, ValueError):
            raise Refused("The core cannot be reached.") from None
        try:
            welcome = self._shake_hands(token)
            session_id = welcome["session_id"]
            interval = max(welcome["heartbeat_interval_ms"], 1) / 1000
            tools = [tool.definition(self.id) for tool in self.tools.values()]
            self.connection.send("agent.tools.register", {"tools": tools, "replace": True})
            threading.Thread(target=self._beat, args=(session_id, interval), daemon=True).start()
            while not self._ended.is_set():
                self._take(self.connection.receive())
        except Ended:
            pass
        except (KeyError, TypeError):
            raise Refused("The core's welcome is not complete.") from None
        finally:
            self._stop()

    def terminate(self, *_: Any) -> None:
        """Ends the session from a signal, where taking a lock could wait for ever."""
        self._ended.set()
        raise Ended()

    def _shake_hands(self, token: str) -> Json:
        capabilities = list(CAPABILITIES)
        protocol: Json = {"supported_versions": [VERSION], "capabilities": capabilities}
        if self._once is not None:
            capabilities.append("idempotency")
            protocol["idempotency"] = self._once.promise
        hello = {"session_token": token, "agent_id": self.id, "agent_version": self.version}
        self.connection.send("agent.hello", dict(hello, protocol=protocol))
        try:
            welcome = self.connection.receive()
        except Ended:
            raise Refused("The core closed the connection before it welcomed this agent.") from None
        if welcome.get("type") != "core.welcome":
            raise Refused("The core answered with something other than a welcome.")
        if isinstance(welcome.get("error"), dict):
            raise Refused("The core refused this agent: %s." % safe_code(welcome["error"]))
        payload: Json = welcome["payload"]
        if payload["accepted_version"] != VERSION:
            raise Refused("The core chose a version of the protocol that was not offered.")
        granted = payload.get("capabilities")
        self.granted = granted if isinstance(granted, list) else []
        limit = payload.get("max_frame_bytes", FRAME_BYTES_MAX)
        self.connection.send_bytes_max = self.connection.receive_bytes_max = limit
        return payload

    def _beat(self, session_id: str, interval: float) -> None:
        """Heartbeats on a fixed beat, so that a slow one does not shift those after it."""
        due = time.monotonic()
        try:
            while not self._ended.wait(max(0.0, due - time.monotonic())):
                with self._lock:
                    inflight = len(self._calls)
                uptime_ms = int((time.monotonic() - self._started) * 1000)
                beat = {"session_id": session_id, "uptime_ms": uptime_ms, "status": "ok"}
                self.connection.send("agent.heartbeat", dict(beat, inflight_calls=inflight))
                due = max(due + interval, time.monotonic())
        except Ended:
            pass

    def _take(self, message: Json) -> None:
        wrong = fault_of(message)
        if wrong is not None:
            if "error" not in message:
                self._refuse(message, "protocol.invalid_envelope", wrong)
            return
        kind, payload = message["type"], message["payload"]
        if kind == "core.tool.call":
            self._begin(message)
        elif kind == "core.tool.cancel":
            self._cancel(message)
        elif kind in ("core.tool.invoke_stream", "core.tool.invoke_result"):
            self._tell(payload.get("invoke_id"), kind, payload)
        elif kind == "core.question.answer":
            self._tell(payload.get("ask_id"), kind, payload)
        elif kind == "core.step.kept":
            number = json.dumps([payload.get("call_id"), payload.get("step")], sort_keys=True)
            self._tell(number, kind, payload)
        elif kind == "core.ping":
            self.connection.send("agent.pong", {}, answers=message)
        elif kind == "core.goodbye":
            self._drain(payload.get("drain_ms"))
        elif kind in ("core.tools.registered", "core.tools.unregistered", "core.error"):
            return
        elif kind.startswith("agent."):
            raise Refused("The core sent a message that only an agent may send.")
        elif "request_id" in message and "in_reply_to" not in message and "error" not in message:
            self._refuse(message, "protocol.unknown_type", "This agent does not know that type.")

    def _refuse(self, message: Json, code: str, text: str) -> None:
        answers = message if isinstance(message.get("id"), str) else None
        error = {"code": code, "message": text, "where": "agent.runtime"}
        self.connection.send("agent.error", {}, answers=answers, about=message, error=error)

    def _tell(self, number: Any, kind: str, payload: Mapping[str, Any]) -> None:
        with self._lock:
            calls = list(self._calls.values())
        for call in calls:
            call.tell(str(number), kind, payload)

    def _drain(self, drain_ms: Any) -> None:
        """Ends now, or when the calls under way are over and at the latest after this time."""
        with self._lock:
            self._draining = bool(self._calls) and isinstance(drain_ms, int) and drain_ms > 0
        if not self._draining:
            raise Ended()
        timer = threading.Timer(drain_ms / 1000, self.connection.close)
        timer.daemon = True
        timer.start()

    def _cancel(self, message: Json) -> None:
        """Accepts a cancel. The lock keeps the call from ending, so that the result follows."""
        call_id = message["payload"].get("call_id")
        if not isinstance(call_id, str):
            return
        with self._lock:
            call = self._calls.get(call_id)
            ack = {"call_id": call_id, "accepted": call is not None}
            self.connection.send("agent.tool.cancel_ack", ack, answers=message)
            waited = call is not None and self._once is not None and self._once.leave(call)
        if call is not None:
            call.cancel()
            if waited:
                self._finish(call, canceled())

    def _begin(self, message: Json) -> None:
        payload = message["payload"]
        for field, kind in (("call_id", str), ("tool_id", str), ("input", dict)):
            if not isinstance(payload.get(field), kind):
                text = "`payload.%s` is missing or has the wrong form." % field
                return self._refuse(message, "protocol.invalid_envelope", text)
        call = Call(self, message)
        with self._lock:
            known = call.id in self._calls or call.id in self._finished
            outcome = None if known else self._admit(call)
        if known:
            self._refuse(message, "tool.duplicate_call", "This call was made before.")
        elif outcome is not None:
            self._finish(call, outcome)

    def _admit(self, call: Call) -> Optional[Json]:
        """Begins a call, or says at once how it ends. The lock is held."""
        if len(self._calls) >= self._calls_max or self._draining:
            return failure("tool.busy", "The agent has too many calls at once.", True)
        execute, outcome = (True, None) if self._once is None else self._once.begin(call)
        if outcome is None:
            self._calls[call.id] = call
        if execute:
            threading.Thread(target=self._work, args=(call,), daemon=True).start()
        return outcome

    def _work(self, call: Call) -> None:
        outcome: Json = {"started_at": moment()}
        try:
            tool = self.tools.get(call.tool_id)
            if tool is None:
                raise Failed("tool.not_found", "This agent has no such tool.")
            outcome.update(status="succeeded", output=tool.work(call))
        except Canceled:
            outcome.update(canceled())
        except Failed as failed:
            outcome.update(status="failed", error=failed.error)
        except Ended:
            return
        except Exception:  # A tool's fault must not end the agent, nor leak what it held.
            outcome.update(failure("tool.internal", "The tool failed inside."))
        outcome["finished_at"] = moment()
        # What was spent is spent, however the call ended.
        outcome["metrics"] = {"cost_micro": call.cost_micro}
        with self._lock:
            waited = [] if self._once is None else self._once.end(call, outcome)
        self._finish(call, outcome)
        for other in waited:
            self._finish(other, dict(outcome, metrics={"cost_micro": 0}))

    def _finish(self, call: Call, outcome: Json) -> None:
        """Sends the one result of a call. It leaves the calls in flight first, so that no
        heartbeat counts a call whose result the core has already seen."""
        with self._lock:
            self._calls.pop(call.id, None)
            self._finished[call.id] = True
            if len(self._finished) > CALLS_REMEMBERED_MAX:
                del self._finished[next(iter(self._finished))]
            is_last = self._draining and not self._calls
        try:
            self._send_result(call, outcome)
        except Ended:
            pass
        if is_last:
            self.connection.close()

    def _send_result(self, call: Call, outcome: Json) -> None:
        problem = failure("tool.output_too_large", "The output is larger than a frame may be.")
        try:
            result = dict(outcome, call_id=call.id)
            if self.connection.send("agent.tool.result", result, answers=call.message):
                return
        except (TypeError, ValueError):
            problem = failure("tool.invalid_output", "The output is not JSON.")
        result = dict(problem, call_id=call.id, metrics=outcome.get("metrics", {}))
        self.connection.send("agent.tool.result", result, answers=call.message)

    def _stop(self) -> None:
        """Wakes every tool that waits, and ends the session."""
        self._ended.set()
        with self._lock:
            calls = list(self._calls.values())
        for call in calls:
            call.cancel()
        self.connection.close()


def serve(
    agent_id: str,
    version: str,
    tools: Iterable[Tool],
    calls_max: int = CALLS_MAX,
    idempotent: bool = False,
) -> None:
    """Connects to the core that started this process, and serves until it says goodbye.

    With `idempotent` a call with an idempotency key is executed once, for as long as keys are kept
    in this process: ten minutes. The core may then repeat a call that failed within that time.
    """
    address = os.environ.get("OPENSENTIENCE_SOCKET") or ""
    # Taken out of the environment, so that nothing this process starts could inherit it.
    token = os.environ.pop("OPENSENTIENCE_SESSION_TOKEN", "")
    if address.startswith("fd:"):
        # Whoever holds the connection needs no other proof.
        token = token or "inherited"
    if not address or not token:
        sys.exit("This agent is started by a core, which says where to connect.")
    _hide_memory()
    session = Session(agent_id, version, tools, calls_max, idempotent)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, session.terminate)
    try:
        session.run(address, token)
    except Ended:
        pass
    except Refused as refused:
        sys.exit(str(refused))


def in_threads(works: List[Callable[[], Any]], at_once: int) -> List[Any]:
    """Does all of this, so many at once; gives what came out in order, or raises the first error
    in order."""
    results: List[Any] = [None] * len(works)
    errors: Dict[int, BaseException] = {}
    places, lock = iter(range(len(works))), threading.Lock()

    def run() -> None:
        while True:
            with lock:
                place = next(places, None)
            if place is None:
                return
            try:
                results[place] = works[place]()
            except BaseException as raised:
                errors[place] = raised

    threads = [threading.Thread(target=run, daemon=True) for _ in works[: max(at_once, 1)]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[min(errors)]
    return results


def failure(code: str, message: str, retryable: bool = False) -> Json:
    """The outcome of a call that fails."""
    return {"status": "failed", "error": Failed(code, message, retryable).error}


def canceled() -> Json:
    """The outcome of a call that was called off."""
    error = {"code": "tool.canceled", "message": "The call was canceled."}
    return {"status": "canceled", "error": error}


def moment() -> str:
    """This moment as RFC 3339 says it."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def fault_of(message: Json) -> Optional[str]:
    """What is wrong with an envelope, or None."""
    version = message.get("v")
    if isinstance(version, bool) or not isinstance(version, int):
        return "`v` is missing or has the wrong form."
    if version != VERSION:
        raise Refused("The core changed the version of the protocol.")
    for field in ("type", "id", "ts"):
        if not isinstance(message.get(field), str) or not message[field]:
            return "`%s` is missing or has the wrong form." % field
    if not isinstance(message.get("payload"), dict):
        return "`payload` is missing or has the wrong form."
    return None


def safe_code(error: Mapping[str, Any]) -> str:
    """An error's code if it looks like one: nothing else of a refusal is worth printing."""
    code = error.get("code")
    plain = isinstance(code, str) and code.replace(".", "").replace("_", "").isalnum()
    return str(code) if plain and len(str(code)) <= 100 else "no reason was given"


def _output_of(said: Mapping[str, Any]) -> Json:
    """What another tool gave, or why it did not succeed: its code, and words of our own."""
    if said.get("status") == "succeeded":
        output = said.get("output")
        return output if isinstance(output, dict) else {}
    error = said.get("error")
    code = safe_code(error) if isinstance(error, dict) else ""
    text = "The tool that was called did not succeed."
    raise Failed(code if "." in code else "tool.failed", text)


def _fetch(place: str) -> BinaryIO:
    # Half of all imports, which few agents need.
    import urllib.request

    return cast(BinaryIO, urllib.request.urlopen(place, timeout=FETCH_SECONDS_MAX))


def _upload(place: str, data: Union[bytes, BinaryIO]) -> None:
    import urllib.request

    headers = {"Content-Type": "application/octet-stream"}
    if not isinstance(data, bytes):
        headers["Content-Length"] = str(os.fstat(data.fileno()).st_size)
    put = urllib.request.Request(place, data=cast(Any, data), method="PUT", headers=headers)
    urllib.request.urlopen(put, timeout=FETCH_SECONDS_MAX).close()


def _pieces(data: Union[bytes, BinaryIO]) -> Iterable[bytes]:
    source = data
    return [source] if isinstance(source, bytes) else iter(lambda: source.read(1 << 20), b"")


def _key_of(call: Call) -> Optional[str]:
    """What makes two calls the same one: key, tool and caller."""
    if not isinstance(call.idempotency_key, str):
        return None
    caller = call.message["payload"].get("caller")
    return json.dumps([call.tool_id, caller, call.idempotency_key], sort_keys=True)


def _canonical(call: Call) -> str:
    """An input as it is compared; places of files differ with every call."""
    given = {name: value for name, value in call.input.items() if name not in call.refs}
    return json.dumps(given, sort_keys=True)


def _no_number(_: str) -> None:
    """Refuses NaN and the infinities, which Python reads and JSON does not have."""
    raise ValueError()


def _hide_memory() -> None:
    """Keeps others of the same user from reading this process, whose environment held a token."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
    except (ImportError, OSError, AttributeError):
        pass

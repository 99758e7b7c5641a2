"""Calls of tools over the tool protocol, and everything else one side asks of the other."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Callable, Deque, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from ._link import Link, lost
from .agent import Answer
from .encoding import to_json
from .fault import Canceled, Fault
from .schema import convert, schema_of

__all__ = ["Answer", "Caller", "Pending", "Sampled"]

# Progress that nobody has looked at yet; what is older is dropped first.
PIECES_MAX = 1024

Message = Dict[str, Any]
Prompt = Union[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Sampled:
    """What a model said."""

    text: str
    usage: Mapping[str, Any] = field(default_factory=dict)
    model: Optional[str] = None
    finish_reason: Optional[str] = None


class Pending:
    """A call that is under way. Iterate over it for what it says on the way; then ask for its
    result. Used in a `with` block it is called off when the block ends first."""

    def __init__(self, call_id: str, call_off: Callable[[Pending], None]) -> None:
        self.id = call_id
        # What it has cost so far, in micro-dollars; it grows while the call goes on.
        self.cost_micro = 0
        self._call_off = call_off
        self._changed = threading.Condition()
        self._pieces: Deque[Any] = deque(maxlen=PIECES_MAX)
        self._response: Optional[Mapping[str, Any]] = None
        self._failure: Optional[Exception] = None

    @property
    def done(self) -> bool:
        """Whether it is over."""
        return self._response is not None or self._failure is not None

    def __iter__(self) -> Iterator[Any]:
        """What the tool says on the way, in order, until it is over."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pieces or self.done)
                if not self._pieces:
                    return
                piece = self._pieces.popleft()
            yield piece

    def result(self, timeout: Optional[float] = None) -> Any:
        """A tool's output; `Fault` if it did not succeed. A call that is not over after so many
        seconds is called off."""
        return _output(self.response(timeout))

    def response(self, timeout: Optional[float] = None) -> Mapping[str, Any]:
        """The answer as it came."""
        with self._changed:
            in_time = self._changed.wait_for(lambda: self.done, timeout)
        if not in_time and self.fail(Fault("tool.timeout", "The call took too long.")):
            self._call_off(self)
        if self._response is not None:
            return self._response
        assert self._failure is not None
        raise self._failure

    def cancel(self) -> None:
        """Calls it off. One that is over stays as it is."""
        if self.fail(Canceled()):
            self._call_off(self)

    def take_piece(self, piece: Any) -> None:
        """Keeps something that was said on the way."""
        with self._changed:
            self._pieces.append(piece)
            self._changed.notify_all()

    def take_cost(self, cost_micro: Any) -> bool:
        """Keeps what it has cost so far; `False` if nothing was said about it."""
        if isinstance(cost_micro, bool) or not isinstance(cost_micro, int) or cost_micro < 0:
            return False
        self.cost_micro = max(self.cost_micro, cost_micro)
        return True

    def take_response(self, response: Mapping[str, Any]) -> None:
        """Keeps the answer; the first one stands."""
        with self._changed:
            if not self.done:
                self._response = response
                self._changed.notify_all()

    def fail(self, failure: Exception) -> bool:
        """Ends the call without an answer; `False` if it was over."""
        with self._changed:
            if self.done:
                return False
            self._failure = failure
            self._changed.notify_all()
            return True

    def __enter__(self) -> Pending:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()


class Table:
    """The calls that this side has made and that are not answered yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._pending: Dict[str, Pending] = {}

    def begin(
        self, link: Link, kind: str, method: str, payload: Any, of: Optional[str] = None
    ) -> Pending:
        """Makes a call. Whoever waits for its answer is there before it is sent."""

        def call_off(pending: Pending) -> None:
            if self._remove(pending.id) is not None:
                link.send({"type": "cancel", "id": pending.id})

        pending = Pending("c%d" % next(self._numbers), call_off)
        request = {"id": pending.id, "kind": kind, "type": method, "payload": payload}
        with self._lock:
            self._pending[pending.id] = pending

        def failed(fault: Fault) -> None:
            self._remove(pending.id)
            pending.fail(fault)

        try:
            message = request if of is None else {"type": "child", "of": of, "payload": request}
            link.send(message, failed)
        except ValueError:
            failed(Fault("tool.input_too_large", "The input is too large to be sent."))
        return pending

    def take(self, message: Message) -> None:
        """Takes progress and answers; those of nobody's calls are ignored."""
        call_id = message.get("id")
        if message.get("type") == "progress":
            with self._lock:
                pending = self._pending.get(str(call_id))
            if pending is not None:
                told = pending.take_cost(message.get("cost_micro"))
                if "data" in message or not told:
                    pending.take_piece(message.get("data"))
        elif message.get("type") == "response":
            pending = self._remove(str(call_id))
            response = message.get("response")
            if pending is not None:
                pending.take_cost(message.get("cost_micro"))
                pending.take_response(response if isinstance(response, dict) else {})

    def lose(self) -> None:
        """Fails all calls: the connection has ended."""
        with self._lock:
            pending, self._pending = list(self._pending.values()), {}
        for one in pending:
            one.fail(lost())

    def call_off(self) -> None:
        """Calls all calls off: nobody will wait for them."""
        with self._lock:
            pending = list(self._pending.values())
        for one in pending:
            one.cancel()

    def _remove(self, call_id: str) -> Optional[Pending]:
        with self._lock:
            return self._pending.pop(call_id, None)


class Caller:
    """Whoever can call tools, ask and tell over a connection."""

    def _begin(self, kind: str, method: str, payload: Any) -> Pending:
        raise NotImplementedError

    def start(self, tool: str, given: Any = None) -> Pending:
        """Starts a call of a tool, named by its id or by a name that only one tool has."""
        return self._begin("elicit", tool, to_json({} if given is None else given, "input"))

    def call(
        self,
        tool: str,
        given: Any = None,
        *,
        timeout: Optional[float] = None,
        on_progress: Optional[Callable[[Any], None]] = None,
    ) -> Any:
        """Calls a tool and gives its output; a tool that does not succeed raises `Fault`.
        `on_progress` is told what it says on the way."""
        until = None if timeout is None else time.monotonic() + timeout
        with self.start(tool, given) as pending:
            if on_progress is not None and timeout is None:
                for piece in pending:
                    on_progress(piece)
            elif on_progress is not None:
                threading.Thread(target=_follow, args=(pending, on_progress), daemon=True).start()
            return pending.result(None if until is None else max(until - time.monotonic(), 0.0))

    def ask(
        self,
        message: str,
        schema: Any = None,
        *,
        kind: str = "form",
        timeout: Optional[float] = None,
    ) -> Answer:
        """Asks a person and waits for the answer. `schema` is a JSON Schema or a type; a value of
        a type is given as one."""
        typed = schema is not None and not isinstance(schema, Mapping)
        wanted = schema_of(schema) if typed else schema
        payload = {"message": message} if wanted is None else {"message": message, "schema": wanted}
        with self._begin("elicit", kind, payload) as pending:
            answer = _answer(pending.response(timeout))
        if typed and answer.status == "answered":
            return Answer("answered", convert(schema, answer.value, "answer"))
        return answer

    def notify(
        self,
        message: str,
        *,
        level: str = "info",
        progress: Optional[float] = None,
        timeout: Optional[float] = None,
    ) -> None:
        """Tells people something, and waits until it has arrived."""
        payload: Dict[str, Any] = {"message": message, "level": level}
        if progress is not None:
            payload["progress"] = progress
        with self._begin("notify", "notification", payload) as pending:
            _output(pending.response(timeout))

    def sample(
        self,
        prompt: Prompt,
        *,
        max_tokens: Optional[int] = None,
        temperature: Optional[float] = None,
        stop: Optional[List[str]] = None,
        model: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Sampled:
        """Lets the model that the core is configured with go on from a prompt or messages."""
        given = {
            "prompt": prompt if isinstance(prompt, str) else [dict(one) for one in prompt],
            "maxTokens": max_tokens,
            "temperature": temperature,
            "stop": stop,
            "model": model,
        }
        payload = {name: value for name, value in given.items() if value is not None}
        with self._begin("elicit", "sample", payload) as pending:
            said = pending.result(timeout)
        said = said if isinstance(said, dict) else {"text": str(said)}
        return Sampled(
            str(said.get("text") or ""),
            said.get("usage") or {},
            said.get("model"),
            said.get("finishReason"),
        )


def _follow(pending: Pending, on_progress: Callable[[Any], None]) -> None:
    for piece in pending:
        on_progress(piece)


def _output(response: Mapping[str, Any]) -> Any:
    """The output of a tool call, or why there is none."""
    status = response.get("status")
    if status == "accepted":
        return response.get("content")
    if response.get("ok") is True:
        return None
    if status == "declined":
        raise Fault("tool.declined", "The call was declined.")
    if status == "denied":
        raise Fault("permission.denied", "The call was denied.")
    if status == "cancelled":
        raise Fault("tool.canceled", "The call was called off at the other end.")
    raise _fault(response)


def _answer(response: Mapping[str, Any]) -> Answer:
    """What became of a question; only a failure is raised."""
    status = response.get("status")
    if status == "accepted":
        return Answer("answered", response.get("content"))
    if status in ("declined", "cancelled", "denied"):
        return Answer(str(status))
    if status == "other" and not isinstance(response.get("fault"), dict):
        return Answer("off_script", None, _text(response))
    raise _fault(response)


def _fault(response: Mapping[str, Any]) -> Fault:
    fault = response.get("fault")
    if not isinstance(fault, dict):
        return Fault("tool.failed", _text(response) or "The tool failed.")
    details = fault.get("details")
    return Fault(
        str(fault.get("code") or "tool.failed"),
        str(fault.get("message") or "The tool failed."),
        fault.get("retryable") is True,
        details if isinstance(details, dict) else None,
    )


def _text(response: Mapping[str, Any]) -> str:
    content = response.get("content")
    return content if isinstance(content, str) else "" if content is None else str(content)

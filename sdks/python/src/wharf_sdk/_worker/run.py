"""Runs a handler once, in a process of its own, and tells the server how it went."""

from __future__ import annotations

import asyncio
import inspect
import math
import os
import socket
import sys
import tempfile
import threading
from typing import Any, Callable, Dict, Iterator, List, Mapping, Tuple

from .. import _host, _trace
from .._load import Unusable
from ..fault import Canceled, Fault, clip
from . import kernel
from .answer import Answer, read, safe_code, safe_text, says_how_it_went, wire_cost
from .channel import LOOK_SECONDS, Channel, Control, Gone, bounded, encode
from .hydration import INLINE_BYTES_MAX, WorkerHost
from .values import AROUND_BYTES, BINARY, HANDLER, LINE_BYTES_MAX, Judge, too_large

# What makes an object with a kind a frame.
FRAME = frozenset(["data", "content", "outputs"])

Entry = Callable[..., Any]


def work(connection: socket.socket, find: Callable[[], Entry]) -> int:
    """Serves the one run that arrives on a connection, and gives the exit status."""
    channel = Channel(connection)
    try:
        start = channel.start()
        _wall_off(start)
        return Worker(channel, start).run(find)
    except Gone:
        return 1


def _wall_off(start: Mapping[str, Any]) -> None:
    """Keeps this run apart from others, if the server wants that, with a folder of its own for
    temporary files."""
    walls = start.get("apart")
    if not walls:
        return
    kernel.keep_apart(walls["hidden"], walls["own"], walls["readable"])
    if start.get("folder"):
        os.environ["TMPDIR"] = str(start["folder"])
        tempfile.tempdir = None


class Worker:
    """One run."""

    def __init__(self, channel: Channel, start: Mapping[str, Any]) -> None:
        self._channel = channel
        self._payload: Dict[str, Any] = dict(start["payload"], refs=start.get("refs"))
        self._line_bytes_max = int(start.get("line_bytes_max") or LINE_BYTES_MAX)
        self._host = WorkerHost(channel, start)
        self._ctrl = Control(channel)
        self._streamed: Dict[str, Any] = {}
        _host.install(self._host)
        threading.excepthook = self._thread_failed

    def run(self, find: Callable[[], Entry]) -> int:
        """Calls the handler. Only what ends the process itself leaves no answer."""
        cost: Any = None
        try:
            answer = read(self._call(find()))
            cost = wire_cost(answer.cost)
            if answer.fault is not None:
                raise answer.fault
            self._done(answer, cost)
        except Gone:
            raise
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
        except Fault as fault:
            self._failed(safe_code(fault.code), safe_text(fault.message), "", cost)
        except Unusable as error:
            self._failed(HANDLER, error.message, error.detail, cost)
        except BaseException as error:
            if isinstance(error, (Canceled, asyncio.CancelledError)) and self._ctrl.is_set():
                self._failed("ERR_CANCELED", "The run was canceled.", "", cost)
            else:
                self._failed(HANDLER, clip(type(error).__name__), _trace.text(error), cost)
        return 0

    def emit(self, frame: Any) -> None:
        """What a handler gets as `emit`: sends a Log, an Event or a partial Response."""
        if not isinstance(frame, Mapping):
            raise Fault(HANDLER, "The handler emitted something that is not a frame.")
        frame = dict(frame)
        outputs = frame.get("outputs")
        judge = Judge(self._line_bytes_max - AROUND_BYTES)
        if isinstance(outputs, Mapping):
            judge.outputs(outputs)
            self._streamed.update(outputs)
        control = frame.get("control")
        if isinstance(control, Mapping) and "cost_micro" in control:
            # What is no cost is left out by the server, with a warning.
            frame["control"] = dict(control, cost_micro=wire_cost(control["cost_micro"]))
        for name in ("data", "content"):
            data = frame.get(name)
            if isinstance(data, Mapping) and isinstance(data.get("progress"), float):
                frame[name] = self._finite(data)
        judge.outputs({key: value for key, value in frame.items() if key != "outputs"})
        self._send({"kind": "emit", "frame": frame}, "outputs")

    def _finite(self, data: Mapping[str, Any]) -> Dict[str, Any]:
        """JSON has no progress that is infinite or no number; it is left out or clamped."""
        progress = data["progress"]
        if math.isfinite(progress):
            return dict(data)
        given = {key: value for key, value in data.items() if key != "progress"}
        if not math.isnan(progress):
            given["progress"] = 1.0 if progress > 0 else 0.0
        warning = {"msg": "The handler's progress is not a finite number.", "level": "warn"}
        self._send({"kind": "emit", "frame": {"kind": "Log", "data": warning}}, "progress")
        return given

    def _call(self, entry: Entry) -> Any:
        given = _arguments(entry, self._payload, self.emit, self._ctrl)
        result = entry(*given[0], **given[1])
        if inspect.isawaitable(result) or inspect.isasyncgen(result):
            return asyncio.run(self._watched(result))
        if inspect.isgenerator(result):
            return self._drain(result)
        return result

    def _drain(self, pieces: Iterator[Any]) -> Any:
        """Sends what a generator yields; its return value, or all it yielded, is the answer."""
        while True:
            if self._ctrl.is_set():
                pieces.close()  # type: ignore[attr-defined]
                raise Canceled()
            try:
                piece = next(pieces)
            except StopIteration as end:
                return self._streamed if end.value is None else end.value
            self._piece(piece)

    async def _watched(self, result: Any) -> Any:
        """Runs what is asynchronous, and cancels it when the run is called off."""
        task = asyncio.ensure_future(self._awaited(result))
        told = False
        while True:
            await asyncio.wait([task], timeout=LOOK_SECONDS)
            if task.done():
                return task.result()
            if not told and self._ctrl.is_set():
                told = task.cancel()

    async def _awaited(self, result: Any) -> Any:
        if not inspect.isasyncgen(result):
            return await result
        async for piece in result:
            self._piece(piece)
        return self._streamed

    def _piece(self, piece: Any) -> None:
        if not isinstance(piece, Mapping):
            raise Fault(HANDLER, "The handler yielded something that is not an object.")
        if isinstance(piece.get("kind"), str) and FRAME & set(piece):
            self.emit(piece)
        else:
            self.emit({"kind": "Response", "control": {"final": False}, "outputs": piece})

    def _done(self, answer: Answer, cost: Any) -> None:
        outputs: Dict[str, Any] = {}
        for key, value in answer.outputs.items():
            if key in self._host.written:
                value = self._host.written[key]
            elif key in self._host.places and _is_large(value):
                self._host.write(key, value)
                value = self._host.written[key]
            outputs[key] = value
        Judge(self._line_bytes_max - AROUND_BYTES).outputs(outputs)
        largest = max(outputs, key=lambda key: len(str(outputs[key])), default="outputs")
        if says_how_it_went(outputs):
            # The server would take them for an envelope, which they are not.
            outputs = {"status": "success", "outputs": outputs}
        self._send({"kind": "done", "result": outputs, "cost": cost}, largest)

    def _failed(self, code: str, message: str, detail: str, cost: Any) -> None:
        failed = {"kind": "failed", "code": code, "message": message, "cost": cost}
        self._channel.send(encode(dict(failed, detail=bounded(detail))))

    def _send(self, message: Dict[str, Any], key: str) -> None:
        line = encode(message)
        if len(line) > self._line_bytes_max:
            raise too_large(clip(key), self._line_bytes_max)
        self._channel.send(line)

    def _thread_failed(self, hook: Any) -> None:
        """A thread ended by an exception: callers learn its class, the server's log all of it."""
        name = clip(getattr(hook.exc_type, "__name__", "an exception"))
        story = "" if hook.exc_value is None else _trace.text(hook.exc_value)
        text = "A thread of the handler ended by %s." % name
        try:
            self._channel.trouble(story)
            self.emit({"kind": "Log", "data": {"msg": text, "level": "error"}})
        except Gone:
            pass


def _arguments(
    entry: Entry, payload: Mapping[str, Any], emit: Any, ctrl: Any
) -> Tuple[List[Any], Dict[str, Any]]:
    """As many arguments as the handler takes, by name where it uses the usual names."""
    try:
        # An object that wraps a function is called itself, whatever the function takes.
        called = entry if inspect.isroutine(entry) else getattr(entry, "__call__", entry)
        parameters = inspect.signature(called).parameters
    except (TypeError, ValueError):
        return [payload, emit, ctrl], {}
    kinds = [one.kind for one in parameters.values()]
    anything = inspect.Parameter.VAR_KEYWORD in kinds
    wanted = {"emit": emit, "ctrl": ctrl}
    named = {
        name: value
        for name, value in wanted.items()
        if (name in parameters and parameters[name].kind != inspect.Parameter.POSITIONAL_ONLY)
        or (anything and name not in parameters)
    }
    if named:
        return [payload], named
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = 3 if inspect.Parameter.VAR_POSITIONAL in kinds else sum(k in places for k in kinds)
    return [payload, emit, ctrl][:count], {}


def _is_large(value: Any) -> bool:
    return isinstance(value, BINARY) or (isinstance(value, str) and len(value) > INLINE_BYTES_MAX)


def leave(status: int) -> None:
    """Ends the process at once, after what was printed has left it."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass
    os._exit(status & 0xFF)

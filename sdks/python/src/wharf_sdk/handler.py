"""A tool on a tool server: `@tool` above a function is all there is to write.

    from wharf_sdk import tool

    @tool
    def shout(text: str) -> dict:
        "Says it louder."
        return {"text": text.upper() + "!"}

The function's parameters are the inputs, what it gives are the outputs. The tool stands in its
module as `entry(payload, emit, ctrl)`, which is what any server of the run protocol calls.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, Union, overload

from . import _host
from .context import LEVELS, Context
from .encoding import to_json
from .fault import Canceled, Fault, InvalidInput
from .files import Written
from .function import Function, Result
from .schema import Schema

__all__ = ["Context", "Result", "Tool", "tool"]

# How often a run says how far it is; more often nobody could read it.
PROGRESS_BURST = 20
PROGRESS_PER_SECOND = 10
PHASE_CHARACTERS_MAX = 200

Frame = Dict[str, Any]
Emit = Callable[[Frame], Any]


class Tool:
    """A function that a tool server can run."""

    def __init__(
        self,
        work: Callable[..., Any],
        stream: str = "text",
        *,
        name: Optional[str] = None,
        mock: bool = False,
        durable: bool = False,
    ) -> None:
        self.function = Function(work, stream)
        self.function.name = name or self.function.name
        self.mock, self.durable = mock, durable
        self.__name__, self.__doc__ = work.__name__, work.__doc__
        self.__module__, self.__wrapped__ = work.__module__, work

    @property
    def name(self) -> str:
        """The function's name, unless it was given another."""
        return self.function.name

    @property
    def description(self) -> str:
        """What the function's documentation says first."""
        return self.function.description

    def schema(self) -> Schema:
        """The JSON Schema of the inputs."""
        return self.function.input_schema()

    def output_schema(self) -> Optional[Schema]:
        """The JSON Schema of the outputs, if the function says what it gives."""
        return self.function.output_schema()

    def __call__(
        self, payload: Mapping[str, Any], emit: Optional[Emit] = None, ctrl: Any = None
    ) -> Frame:
        """Runs it as a handler of the run protocol: takes a payload, gives a final Response."""
        context = ToolContext(payload, emit, ctrl)
        try:
            outputs = self._outputs(payload, context)
        except Canceled:
            fault = Fault("ERR_CANCELED", "The run was canceled.")
            return context.failed(fault)
        except InvalidInput as wrong:
            return context.failed(Fault("ERR_INPUTS", wrong.message))
        except Fault as fault:
            return context.failed(fault)
        except Exception as error:  # Its text may hold anything; only the server's log gets it.
            _host.installed().trouble()
            return context.failed(Fault("ERR_HANDLER", type(error).__name__))
        return context.response("success", outputs)

    def _outputs(self, payload: Mapping[str, Any], context: ToolContext) -> Dict[str, Any]:
        inputs = payload.get("inputs") or {}
        refs = payload.get("refs")
        context.emit_event("started", None)

        def is_reference(name: str) -> bool:
            if refs is None:
                return context._host.is_reference(name, inputs[name])
            return _host.is_reference(name, inputs[name], refs)

        outputs = self.function.run(self.function.bind(inputs, is_reference, context), context)
        if "cost_micro" in outputs:
            # Handlers give their price among the outputs where the protocol began.
            context.cost(_whole(outputs.pop("cost_micro")))
        return context.settle(outputs)

    def __repr__(self) -> str:
        return "Tool(%r)" % self.name


class Pace:
    """Lets a burst pass, and then so many a second."""

    def __init__(self, burst: int, per_second: float) -> None:
        self._room, self._burst, self._per_second = float(burst), burst, per_second
        self._at = time.monotonic()

    def has_room(self) -> bool:
        """Takes a place if there is one."""
        now = time.monotonic()
        self._room = min(self._burst, self._room + (now - self._at) * self._per_second)
        self._at = now
        if self._room < 1:
            return False
        self._room -= 1
        return True


class ToolContext(Context):
    """A run on a tool server: what is said goes out as frames of the run protocol."""

    def __init__(self, payload: Mapping[str, Any], emit: Optional[Emit], ctrl: Any) -> None:
        super().__init__(
            str(payload.get("run_id", "")),
            str(payload.get("mode", "mock")),
            int(payload.get("attempt", 1)),
            dict(payload.get("outputs") or {}),
            _host.installed(),
        )
        self.traceparent = payload.get("traceparent")
        self.tracestate = payload.get("tracestate")
        self._emit = emit if emit is not None else _nobody
        self._ctrl = ctrl if ctrl is not None else threading.Event()
        self._pace = Pace(PROGRESS_BURST, PROGRESS_PER_SECOND)
        # How far it is, where that came too fast to be told.
        self._latest: Optional[Tuple[float, str]] = None
        self._doing = ""

    @property
    def canceled(self) -> bool:
        return bool(self._ctrl.is_set())

    def log(self, text: str, level: str = "info") -> None:
        if level not in LEVELS:
            raise ValueError("A level is one of %s." % ", ".join(LEVELS))
        data = {"msg": str(text), "level": level, "timestamp": time.time()}
        self._emit({"kind": "Log", "control": {"run_id": self.run_id}, "data": data})

    def progress(self, fraction: float, text: str = "") -> None:
        self.check()
        fraction = min(max(float(fraction), 0.0), 1.0)
        # What it is doing holds until it says otherwise.
        self._doing = text = text or self._doing
        if self._pace.has_room() or fraction == 1.0:
            self._latest = None
            self.emit_event("checkpoint", fraction, text)
        else:
            self._latest = fraction, text

    def emit_event(self, phase: str, fraction: Optional[float], text: str = "") -> None:
        """Sends an Event of the run protocol. `text` says what the run is doing."""
        data: Dict[str, Any] = {"phase": phase}
        if fraction is not None and fraction == fraction:
            data["progress"] = fraction
        if text:
            data["text"] = str(text)[:PHASE_CHARACTERS_MAX]
        self._emit({"kind": "Event", "control": {"run_id": self.run_id}, "data": data})

    def _tell_cost(self) -> None:
        control = {"run_id": self.run_id, "cost_micro": self.cost_micro}
        self._emit({"kind": "Event", "control": control, "data": {"phase": "checkpoint"}})

    def _show(self, outputs: Mapping[str, Any]) -> None:
        control = {"run_id": self.run_id, "final": False}
        self._emit({"kind": "Response", "control": control, "outputs": dict(outputs)})

    def _wait(self, seconds: float) -> bool:
        wait = getattr(self._ctrl, "wait", None)
        if wait is not None:
            return bool(wait(seconds))
        until = time.monotonic() + seconds
        while not self.canceled and time.monotonic() < until:
            time.sleep(min(0.02, max(until - time.monotonic(), 0)))
        return self.canceled

    def _do(self, name: str, n: int, tool_id: str, given: Mapping[str, Any]) -> Dict[str, Any]:
        step = {"name": name, "n": n}
        answer = self._host.step({"step": step, "tool": tool_id, "inputs": dict(given)})
        return dict(answer.get("outputs") or {})

    def _kept(self, name: str, n: int, value: Tuple[Any, ...] = ()) -> Tuple[bool, Any]:
        message: Dict[str, Any] = {"step": {"name": name, "n": n}}
        message.update({"value": value[0]} if value else {})
        answer = self._host.step(message)
        return "value" in answer, answer.get("value")

    def settle(self, outputs: Mapping[str, Any]) -> Dict[str, Any]:
        """Writes what the run wants as files, and gives what the Response says of each output."""
        settled: Dict[str, Any] = {}
        for name, value in outputs.items():
            if value is not None and name in self.outputs and not isinstance(value, Written):
                value = self.write(name, value)
            if isinstance(value, Written):
                settled[name] = self.outputs[name]
            else:
                settled[name] = to_json(value, name)
        return settled

    def response(
        self, status: str, outputs: Mapping[str, Any], error: Optional[Fault] = None
    ) -> Frame:
        """The final Response."""
        if self._latest is not None:
            self.emit_event("checkpoint", *self._latest)
        control = {"run_id": self.run_id, "status": status, "cost_micro": self.cost_micro}
        frame: Frame = {"kind": "Response", "control": dict(control, final=True)}
        frame["outputs"] = dict(outputs)
        if error is not None:
            frame["error"] = error.to_json()
        return frame

    def failed(self, fault: Fault) -> Frame:
        """The final Response of a run that did not succeed. What it cost stays."""
        return self.response("error", {}, fault)


@overload
def tool(work: Callable[..., Any]) -> Tool: ...
@overload
def tool(
    *,
    stream: str = "text",
    name: Optional[str] = None,
    mock: bool = False,
    durable: bool = False,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    work: Optional[Callable[..., Any]] = None,
    *,
    stream: str = "text",
    name: Optional[str] = None,
    mock: bool = False,
    durable: bool = False,
) -> Union[Tool, Callable[[Callable[..., Any]], Tool]]:
    """Makes a tool of a function.

    `stream` names the output that yielded text belongs to, `name` the tool if its name is not
    the function's, and `mock` says that it looks at `context.is_mock` and can pretend. `durable`
    says that it does its work in steps, which are found again when the run is attempted anew.
    """

    def make(work: Callable[..., Any]) -> Tool:
        made = Tool(work, stream, name=name, mock=mock, durable=durable)
        _expose(made, work)
        return made

    return make if work is None else make(work)


class Choice:
    """Several tools of one file, where a server asks for its `entry`: one of them is named by the
    environment."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self.tools = dict(tools)

    def __call__(
        self, payload: Mapping[str, Any], emit: Optional[Emit] = None, ctrl: Any = None
    ) -> Frame:
        """Runs the one that `WHARF_FUNCTION` names."""
        name = os.environ.get("WHARF_FUNCTION", "")
        if name not in self.tools:
            text = "The file has several tools; WHARF_FUNCTION must name one of %s."
            fault = Fault("ERR_HANDLER", text % ", ".join(self.tools))
            return ToolContext(payload, emit, ctrl).failed(fault)
        return self.tools[name](payload, emit, ctrl)


def _expose(made: Tool, work: Callable[..., Any]) -> None:
    """Lets the tool stand in its module as `entry`, beside others of the file."""
    if "<locals>" in work.__qualname__:
        return
    module: Dict[str, Any] = getattr(work, "__globals__", {})
    there = module.get("entry")
    if isinstance(there, Choice):
        there.tools[made.name] = made
    elif isinstance(there, Tool) and there.name != made.name:
        module["entry"] = Choice({there.name: there, made.name: made})
    else:
        module["entry"] = made


def _whole(cost: Any) -> int:
    """A cost that formulas with fractions gave is taken when it is whole."""
    if isinstance(cost, float) and cost.is_integer():
        return int(cost)
    if isinstance(cost, bool) or not isinstance(cost, int) or cost < 0:
        raise Fault("ERR_COST", "`cost_micro` must be a whole number that is not negative.")
    return cost


def _nobody(_: Frame) -> None:
    """Takes what a tool says when nobody listens."""

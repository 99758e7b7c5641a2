"""An agent: a process that a core starts and that offers any number of tools.

from wharf_sdk import Agent, Call

agent = Agent("dev.example.greeter", "0.1.0")

@agent.tool(side_effects=False)
def greet(name: str, call: Call) -> dict:
    "Greets somebody."
    call.progress(0.5, "thinking of something nice")
    return {"text": "Hello, %s!" % name}

agent.run()
"""

from __future__ import annotations

import base64
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Tuple,
    TypeVar,
    Union,
    overload,
)

from . import wharf_agent
from ._host import DirectHost
from .context import LEVELS, Context
from .encoding import to_json
from .fault import Canceled, Fault
from .files import File, Written
from .function import Function
from .schema import Schema

__all__ = ["Agent", "Answer", "Call"]

# Longer text goes into a file where there is a place for one.
TEXT_CHARACTERS_MAX = 256 * 1024

Work = TypeVar("Work", bound=Callable[..., Any])


@dataclass(frozen=True)
class Answer:
    """What became of a question: `answered` with a value, `declined`, `cancelled`, `denied`,
    `off_script` with text, or `expired`."""

    status: str
    value: Any = None
    text: str = ""


class Call(Context):
    """A call of an agent's tool: a `Context` that can also ask people and call other tools. That
    of a durable tool can do steps."""

    def __init__(self, raw: wharf_agent.Call) -> None:
        self._files = DirectHost()
        super().__init__(raw.id, raw.mode, 1, raw.outputs, self._files)
        self.traceparent = raw.message.get("traceparent")
        self._raw = raw

    @property
    def input(self) -> Dict[str, Any]:
        """The inputs as they came; files are paths or addresses."""
        return self._raw.input

    @property
    def canceled(self) -> bool:
        return self._raw.canceled.is_set()

    @property
    def idempotency_key(self) -> Optional[str]:
        """The key under which the same call is executed once."""
        return self._raw.idempotency_key

    @property
    def approval(self) -> Optional[str]:
        """The approval that the call runs under, if somebody gave one."""
        return self._raw.approval

    def log(self, text: str, level: str = "info") -> None:
        if level not in LEVELS:
            raise ValueError("A level is one of %s." % ", ".join(LEVELS))
        with _our_words():
            self._raw.log(str(text))

    def progress(self, fraction: float, text: str = "") -> None:
        with _our_words():
            self._raw.phase(text, min(max(float(fraction), 0.0), 1.0))

    def print(self, text: str) -> None:
        """Adds text to the run's standard output."""
        with _our_words():
            self._raw.stream("stdout", text=text)

    def text(self, text: str) -> None:
        """The same as `print`, as the other languages call it."""
        self.print(text)

    def cost(self, micro: int) -> None:
        """Adds to what the run has cost, in micro-dollars; the core is told at once, so that a
        budget can stop the run."""
        super().cost(micro)
        self._raw.report_cost(self.cost_micro)

    def notice(self, text: str, level: str = "info") -> None:
        """Tells people something, if the core lets this agent."""
        self._raw.notice(text, level)

    def notify(self, text: str, level: str = "info") -> None:
        """The same as `notice`, as the other languages call it."""
        self.notice(text, level)

    def call(
        self,
        tool_id: str,
        given: Mapping[str, Any],
        *,
        timeout: Optional[float] = None,
        idempotency_key: Optional[str] = None,
        on_piece: Optional[Callable[[str, Mapping[str, Any]], None]] = None,
    ) -> Dict[str, Any]:
        """Calls another tool through the core and gives its output; a tool that does not
        succeed raises `Fault`. It needs an approved permission `tool:invoke:…`. `on_piece` is
        told what the tool streams: a channel and its data."""
        with _our_words():
            return self._raw.call(tool_id, given, timeout, idempotency_key, on_piece)

    def ask(
        self, title: str, schema: Mapping[str, Any], *, within: Optional[float] = None
    ) -> Answer:
        """Asks a person and waits for the answer; the run's time stands still meanwhile."""
        with _our_words():
            said = self._raw.ask(title, schema, within)
        return Answer(str(said.get("status")), said.get("value"), str(said.get("text") or ""))

    def is_reference(self, name: str) -> bool:
        """Whether an input refers to a file; other text is just text."""
        return name in self._raw.refs and isinstance(self._raw.input.get(name), str)

    def settle(self, outputs: Mapping[str, Any]) -> Dict[str, Any]:
        """Outputs as the result has them: files are written, everything else is inline."""
        settled: Dict[str, Any] = {}
        for name, value in outputs.items():
            is_long = isinstance(value, str) and len(value) > TEXT_CHARACTERS_MAX
            is_file = isinstance(value, (bytes, bytearray, Path, File))
            if (is_long or is_file) and self._place(name):
                value = self.write(name, value)
            if isinstance(value, Written):
                settled[name] = {"$written": True}
            elif isinstance(value, (bytes, bytearray)):
                settled[name] = {"$bytes": base64.b64encode(value).decode("ascii")}
            else:
                settled[name] = to_json(value, name)
        return settled

    def close(self) -> None:
        """Removes files that were brought here for the call."""
        self._files.close()

    def _do(self, name: str, n: int, tool_id: str, given: Mapping[str, Any]) -> Dict[str, Any]:
        with _our_words():
            return self._raw.call_step(name, n, tool_id, given)

    def _kept(self, name: str, n: int, value: Tuple[Any, ...] = ()) -> Tuple[bool, Any]:
        with _our_words():
            return self._raw.keep_value(name, n, value)

    def _show(self, outputs: Mapping[str, Any]) -> None:
        with _our_words():
            self._raw.partial(**outputs)

    def _wait(self, seconds: float) -> bool:
        return self._raw.canceled.wait(seconds)

    def _place(self, name: str) -> str:
        return self._raw.place_of(name) or ""


class Agent:
    """The tools of an agent, and its life. The id is the one of its manifest.

    With `idempotent` a call with an idempotency key is executed once: a repeated one gets the
    first one's output. Keys are kept in this process, for ten minutes after their call has ended.
    The core is told so, and may repeat a call that failed within that time, but none whose process
    is gone.
    """

    def __init__(
        self, agent_id: str, version: str, *, calls_max: int = 256, idempotent: bool = False
    ) -> None:
        self.id, self.version = agent_id, version
        self._calls_max, self._idempotent = calls_max, idempotent
        self._tools: Dict[str, wharf_agent.Tool] = {}

    @property
    def tools(self) -> List[str]:
        """The names of its tools."""
        return list(self._tools)

    @overload
    def tool(self, work: Work) -> Work: ...
    @overload
    def tool(
        self,
        *,
        name: Optional[str] = None,
        description: Optional[str] = None,
        side_effects: Optional[bool] = None,
        requires_directive: bool = False,
        mock: bool = False,
        tags: Iterable[str] = (),
        free: bool = False,
        durable: bool = False,
        output_schema: Optional[Schema] = None,
        stream: str = "text",
    ) -> Callable[[Work], Work]: ...
    def tool(
        self,
        work: Optional[Work] = None,
        *,
        name: Optional[str] = None,
        description: Optional[str] = None,
        side_effects: Optional[bool] = None,
        requires_directive: bool = False,
        mock: bool = False,
        tags: Iterable[str] = (),
        free: bool = False,
        durable: bool = False,
        output_schema: Optional[Schema] = None,
        stream: str = "text",
    ) -> Union[Work, Callable[[Work], Work]]:
        """Offers a function as a tool; the function itself stays as it is.

        Say `side_effects=False` of a tool that does not act on the world: the core may then try
        it again by itself. Say `mock=True` of one that can pretend: it is then called in mode
        `mock` too, and acts on nothing (`call.is_mock`). Say `free=True` of one that never costs
        anything: it is called even where no money is left. Say `durable=True` of one whose work is
        done in steps (`cx.step`, `cx.local`): a call that fails is then repeated whatever the
        reason, and finds its steps again. `tags` group tools for display.
        `stream` names the output that yielded text belongs to.
        """

        def add(work: Work) -> Work:
            function = Function(work, stream)
            chosen = name or function.name
            if chosen in self._tools:
                raise ValueError("The agent has two tools with the name `%s`." % chosen)
            made = wharf_agent.Tool(
                chosen,
                lambda raw: _execute(function, raw),
                description or function.description or chosen,
                {},
                side_effects=side_effects,
                requires_directive=requires_directive,
                mock=mock,
                tags=tags,
                free=free,
                durable=durable,
            )
            made.input_schema = function.input_schema()
            made.output_schema = output_schema or function.output_schema() or {"type": "object"}
            self._tools[chosen] = made
            return work

        return add if work is None else add(work)

    def run(self) -> None:
        """Connects to the core that started this process, and serves until it says goodbye."""
        tools = list(self._tools.values())
        wharf_agent.serve(self.id, self.version, tools, self._calls_max, self._idempotent)


@contextmanager
def _our_words() -> Iterator[None]:
    """Lets tools meet one kind of exception, whatever the runtime underneath raises."""
    try:
        yield
    except wharf_agent.Canceled:
        raise Canceled() from None
    except wharf_agent.Failed as failed:
        error = failed.error
        raise Fault(
            error["code"], error["message"], error["retryable"], error.get("details")
        ) from None


def _execute(function: Function, raw: wharf_agent.Call) -> Dict[str, Any]:
    """Runs a function for a call, and tells its failures in the runtime's words."""
    call = Call(raw)
    try:
        given = function.bind(call.input, call.is_reference, call)
        return call.settle(function.run(given, call))
    except Canceled:
        raise wharf_agent.Canceled() from None
    except Fault as fault:
        raise wharf_agent.Failed(
            fault.code, fault.message, fault.retryable, **fault.details
        ) from None
    finally:
        raw.cost_micro = call.cost_micro
        call.close()

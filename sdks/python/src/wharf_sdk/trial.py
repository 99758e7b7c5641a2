"""Tries a tool without a core and without a wire: for tests.

    from wharf_sdk.trial import try_tool

    tried = try_tool(greet, {"name": "Ada"})
    assert tried.outputs == {"text": "Hello, Ada!"}

Inputs are checked as the real ones are. What the tool calls and asks is answered by the test.
A durable tool is tried with `try_durable`, which also kills and repeats it at every step.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from ._host import DirectHost
from .agent import Answer
from .calling import Sampled
from .context import LEVELS, Context
from .encoding import to_json
from .fault import Fault
from .function import Function
from .handler import Tool

__all__ = ["Clock", "DurableTrial", "Trial", "try_durable", "try_tool"]

Tools = Mapping[str, Callable[[Dict[str, Any]], Any]]
Answering = Callable[[str, Any], Any]


class Trial:
    """What became of a tool that was tried."""

    outputs: Dict[str, Any]
    progress: List[Tuple[float, str]]
    reports: List[Any]
    logs: List[Tuple[str, str]]
    cost_micro: int

    def __init__(self, outputs: Dict[str, Any], seen: Tried) -> None:
        self.outputs, self.progress, self.reports = outputs, seen.steps, seen.reports
        self.logs, self.cost_micro = seen.logs, seen.cost_micro


class Clock:
    """What `cx.now()` tells in a trial; it stands still until it is moved by hand."""

    def __init__(self, now: datetime = datetime(2026, 1, 1, tzinfo=timezone.utc)) -> None:
        self.now = now

    def move(self, seconds: float) -> None:
        """Lets so much time pass."""
        self.now += timedelta(seconds=seconds)


class Killed(BaseException):
    """The tool is cut off, as if its process were killed."""


@dataclass
class Mark:
    """What is kept of one step: a call with what it gave or raised, or a value."""

    what: str
    is_over: bool = False
    value: Any = None
    fault: Optional[Fault] = None


@dataclass
class Journal:
    """What is kept of the steps of one run in memory, across its attempts."""

    marks: Dict[Tuple[str, int], Mark] = field(default_factory=dict)
    # The tool is cut off at this point of its steps; each has one before and one after it.
    kill_at: Optional[int] = None
    points: int = 0
    is_dead: bool = False
    # Set once the code has been to its end: then it asks for nothing new.
    is_closed: bool = False

    def point(self) -> None:
        if self.points == self.kill_at or self.is_dead:
            self.is_dead = True
            raise Killed()
        self.points += 1

    def mark(self, name: str, n: int, what: str) -> Mark:
        """The step, which must be the same one as before."""
        known = self.marks.get((name, n))
        if known is None:
            if self.is_closed:
                text = "The code asks for the step %s#%d only when it is repeated."
                raise AssertionError(text % (name, n))
            known = self.marks[name, n] = Mark(what)
        if known.what != what:
            text = "The step %s#%d was %s before and is %s now." % (name, n, known.what, what)
            raise Fault("step.diverged", text)
        return known


class Tried(Context):
    """The run, as a tool that is tried sees it."""

    def __init__(
        self,
        tools: Tools,
        answer: Optional[Answering],
        mode: str,
        journal: Optional[Journal] = None,
        clock: Optional[Clock] = None,
    ) -> None:
        self.files = DirectHost()
        self._journal, self._clock = journal or Journal(), clock or Clock()
        super().__init__("trial", mode, 1, {}, self.files)
        self.steps: List[Tuple[float, str]] = []
        self.reports: List[Any] = []
        self.logs: List[Tuple[str, str]] = []
        self._tools, self._answer = tools, answer

    @property
    def canceled(self) -> bool:
        return False

    def log(self, text: str, level: str = "info") -> None:
        if level not in LEVELS:
            raise ValueError("A level is one of %s." % ", ".join(LEVELS))
        self.logs.append((level, str(text)))

    def progress(self, fraction: float, text: str = "") -> None:
        self.check()
        self.steps.append((min(max(float(fraction), 0.0), 1.0), text))

    def report(self, value: Any) -> None:
        """Keeps what an operative says on the way."""
        self.check()
        self.reports.append(to_json(value, "progress"))

    def notice(self, text: str, level: str = "info") -> None:
        """Keeps what an agent tells people."""
        self.log(text, level)

    def notify(self, message: str, *, level: str = "info", **_: Any) -> None:
        """Keeps what an operative tells people."""
        self.log(message, level)

    def print(self, text: str) -> None:
        """Keeps what an agent prints."""
        self.logs.append(("stdout", text))

    def text(self, text: str) -> None:
        """The same as `print`."""
        self.print(text)

    def call(self, tool: str, given: Any = None, **_: Any) -> Any:
        """Lets the test's function of that name answer."""
        if tool not in self._tools:
            raise Fault("tool.not_found", "There is no tool %s in this test." % tool)
        return self._tools[tool](to_json(given or {}, "input"))

    def ask(self, message: str, schema: Any = None, **_: Any) -> Answer:
        """Lets the test answer; without an answer the question is declined."""
        if self._answer is None:
            return Answer("declined")
        return Answer("answered", self._answer(message, schema))

    def sample(self, prompt: Any, **_: Any) -> Sampled:
        """Lets the test's tool `sample` go on from the prompt."""
        return Sampled(str(self.call("sample", {"prompt": prompt})))

    def _do(self, name: str, n: int, tool_id: str, given: Mapping[str, Any]) -> Dict[str, Any]:
        mark = self._journal.mark(name, n, "%s with %s" % (tool_id, json.dumps(given)))
        self._journal.point()
        if not mark.is_over:
            try:
                mark.value = to_json(self.call(tool_id, given), name)
            except Fault as fault:
                mark.fault = fault
            mark.is_over = True
        self._journal.point()
        if mark.fault is not None:
            raise mark.fault
        outputs: Dict[str, Any] = copy.deepcopy(mark.value)
        return outputs

    def _kept(self, name: str, n: int, value: Tuple[Any, ...] = ()) -> Tuple[bool, Any]:
        if (name, n) not in self._journal.marks:
            self._journal.point()
            if not value:
                return False, None
        mark = self._journal.mark(name, n, "local code")
        if not mark.is_over:
            mark.value, mark.is_over = value[0], True
        self._journal.point()
        return True, copy.deepcopy(mark.value)

    def _now_ms(self) -> int:
        return int(self._clock.now.timestamp() * 1000)

    def _all(self, works: List[Callable[[], Any]], at_once: int) -> List[Any]:
        return [work() for work in works]

    def _later(self, work: Callable[[], Any], at_last: Callable[[], None]) -> Any:
        """Does the work at once, so that trials are all alike; it is over a moment later."""
        import asyncio

        loop = asyncio.get_running_loop()
        result: asyncio.Future[Any] = loop.create_future()
        value, error = None, None
        try:
            value = work()
        except Exception as raised:
            error = raised

        def settle() -> None:
            at_last()
            if result.done():
                return
            if error is None:
                result.set_result(value)
            else:
                result.set_exception(error)

        loop.call_soon(settle)
        return result

    def _show(self, outputs: Mapping[str, Any]) -> None:
        self.reports.append(dict(outputs))

    def _wait(self, seconds: float) -> bool:
        return False


def try_tool(
    work: Callable[..., Any],
    given: Optional[Mapping[str, Any]] = None,
    *,
    tools: Optional[Tools] = None,
    answer: Optional[Answering] = None,
    mode: str = "real",
) -> Trial:
    """Runs a tool with these inputs and gives what it gave; `Fault` is raised as it is told.

    `tools` answers what it calls, by id, and `answer` what it asks. Pauses take no time.
    """
    return _tried(work, given, Tried(tools or {}, answer, mode))


class DurableTrial(Trial):
    """What became of a durable tool that was tried, and of all its steps."""

    # The names of its steps with their numbers, such as `fetch#1`.
    steps: List[str]
    # How often it was killed and repeated.
    kills: int


def try_durable(
    work: Callable[..., Any],
    given: Optional[Mapping[str, Any]] = None,
    *,
    tools: Optional[Tools] = None,
    answer: Optional[Answering] = None,
    mode: str = "real",
    clock: Optional[Clock] = None,
) -> DurableTrial:
    """Runs a durable tool as `try_tool` does; then again and again, killed before and after every
    step and repeated. A tool that asks for other steps when it is repeated, or gives something
    else although its steps gave the same, raises an `AssertionError` or a `Fault`."""

    def attempt(journal: Journal) -> Union[Trial, Fault, None]:
        """One attempt, with what it gave or raised; nothing if it was killed."""
        journal.points = 0
        try:
            ended: Union[Trial, Fault] = _tried(
                work, given, Tried(tools or {}, answer, mode, journal, clock)
            )
        except Killed:
            return None
        except Fault as fault:
            if fault.code == "step.diverged":
                raise
            ended = fault
        return None if journal.is_dead else ended

    def to_the_end(journal: Journal) -> Union[Trial, Fault]:
        """An attempt that is not killed, and another that finds all its steps."""
        ended = attempt(journal)
        journal.is_closed = True
        again = attempt(journal)
        journal.is_closed = False
        assert ended is not None and again is not None
        if _told(ended) != _told(again):
            text = "Repeated with all its steps done, the tool gives %s instead of %s."
            raise AssertionError(text % (_told(again), _told(ended)))
        return ended

    journal = Journal()
    first = to_the_end(journal)
    kills = 0
    while True:
        killed = Journal(kill_at=kills)
        if attempt(killed) is not None:
            break
        killed.kill_at, killed.is_dead = None, False
        to_the_end(killed)
        kills += 1
    if isinstance(first, Fault):
        raise first
    trial = DurableTrial.__new__(DurableTrial)
    trial.__dict__.update(first.__dict__, kills=kills)
    trial.steps = ["%s#%d" % key for key in journal.marks]
    return trial


def _tried(work: Callable[..., Any], given: Optional[Mapping[str, Any]], seen: Tried) -> Trial:
    function = work.function if isinstance(work, Tool) else Function(work)
    try:
        outputs = function.run(function.bind(dict(given or {}), lambda _: False, seen), seen)
        return Trial({name: to_json(value, name) for name, value in outputs.items()}, seen)
    finally:
        seen.files.close()


def _told(ended: Union[Trial, Fault]) -> Any:
    """What an attempt came to, as it can be compared."""
    return ended.to_json() if isinstance(ended, Fault) else ended.outputs

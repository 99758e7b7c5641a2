"""Tries a tool without a core and without a wire: for tests.

    from wharf_sdk.trial import try_tool

    tried = try_tool(greet, {"name": "Ada"})
    assert tried.outputs == {"text": "Hello, Ada!"}

Inputs are checked as the real ones are. What the tool calls and asks is answered by the test.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from ._host import DirectHost
from .agent import Answer
from .calling import Sampled
from .context import LEVELS, Context
from .encoding import to_json
from .fault import Fault
from .function import Function
from .handler import Tool

__all__ = ["Trial", "try_tool"]

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


class Tried(Context):
    """The run, as a tool that is tried sees it."""

    def __init__(self, tools: Tools, answer: Optional[Answering], mode: str) -> None:
        self.files = DirectHost()
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
    function = work.function if isinstance(work, Tool) else Function(work)
    seen = Tried(tools or {}, answer, mode)
    try:
        outputs = function.run(function.bind(dict(given or {}), lambda _: False, seen), seen)
        return Trial({name: to_json(value, name) for name, value in outputs.items()}, seen)
    finally:
        seen.files.close()

"""Durable steps: what a tool has done is found again when its call is repeated.

    @agent.tool(durable=True)
    async def digest(url: str, cx: Call) -> dict:
        page = await cx.step("fetch", "web/fetch", url=url)
        return await cx.step("summary", "llm/summarise", text=page["text"])

In an async function each of these is awaited; in a plain one it gives its result at once. Nothing
here knows where the steps are kept: calls of agents, runs of tool servers and trials in memory
build on it.
"""

from __future__ import annotations

import inspect
import sys
import threading
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple

from .encoding import to_json
from .fault import Fault

if TYPE_CHECKING:
    from . import wharf_agent

__all__ = ["DurableContext"]


class DurableContext:
    """What the call of a durable tool can do besides. Steps are found again by their names and by
    how often each was used, so that the code must ask for the same ones each time."""

    def step(
        self,
        name: str,
        tool_id: str,
        given: Optional[Mapping[str, Any]] = None,
        /,
        **arguments: Any,
    ) -> Any:
        """Calls another tool, once: what it gave is there again whenever the call is repeated. It
        needs an approved permission `tool:invoke:…`. A tool that does not succeed raises `Fault`.

        Steps may go on at the same time, under different names; see `each` for those of one name.
        """
        inputs = _inputs(given, arguments)
        n = self._begin(name)
        return self._either(lambda: self._do(name, n, tool_id, inputs), name)

    def each(
        self, name: str, tool_id: str, all_given: Iterable[Mapping[str, Any]], at_once: int = 0
    ) -> Any:
        """Calls a tool with each of these inputs, several at once, and gives a list of what came
        out, in their order. Of those that fail the first raises its `Fault` when all are over."""
        inputs = [_inputs(given, {}) for given in all_given]
        first = self._begin(name, len(inputs))
        works = [
            (lambda n=first + place, one=one: self._do(name, n, tool_id, one))
            for place, one in enumerate(inputs)
        ]
        return self._either(lambda: self._all(works, at_once), name)

    def local(self, name: str, work: Callable[[], Any]) -> Any:
        """What `work` gives, as JSON: it runs until that is kept, and not when the call is repeated
        afterwards. What it does may so be done twice, if it is cut off before. Time, chance and
        requests of the tool's own belong in here."""
        n = self._begin(name)
        if _in_loop():
            return self._local_later(name, n, work)
        try:
            known, value = self._kept(name, n)
            return value if known else self._kept(name, n, (to_json(work(), name),))[1]
        finally:
            self._names().end(name)

    def now(self) -> Any:
        """The moment it was when the code came here first."""
        moment = self.local("wharf.now", self._now_ms)
        if not inspect.isawaitable(moment):
            return _moment(moment)
        return _moment_later(moment)

    # Which steps were asked for. What few tools need is loaded by those that do.

    def _names(self) -> wharf_agent.Steps:
        from . import wharf_agent

        known: Optional[wharf_agent.Steps] = self.__dict__.get("_steps")
        return known or self.__dict__.setdefault("_steps", wharf_agent.Steps())

    def _begin(self, name: str, count: int = 1) -> int:
        """The number of the next step of this name, or of the first of several."""
        from . import wharf_agent

        try:
            return self._names().begin(name, count)
        except wharf_agent.Failed as failed:
            raise Fault(failed.error["code"], failed.error["message"]) from None

    # Where the steps are.

    def _do(self, name: str, n: int, tool_id: str, given: Mapping[str, Any]) -> Dict[str, Any]:
        raise _unavailable()

    def _kept(self, name: str, n: int, value: Tuple[Any, ...] = ()) -> Tuple[bool, Any]:
        raise _unavailable()

    def _now_ms(self) -> int:
        return int(time.time() * 1000)

    def _all(self, works: List[Callable[[], Any]], at_once: int) -> List[Any]:
        from . import wharf_agent

        return wharf_agent.in_threads(works, at_once or wharf_agent.AT_ONCE_MAX)

    def _later(self, work: Callable[[], Any], at_last: Callable[[], None]) -> Any:
        return _on_a_thread(work, at_last)

    def _either(self, work: Callable[[], Any], name: str) -> Any:
        """The result of some work, or in an async function what to await for it."""
        if _in_loop():
            return self._later(work, lambda: self._names().end(name))
        try:
            return work()
        finally:
            self._names().end(name)

    async def _local_later(self, name: str, n: int, work: Callable[[], Any]) -> Any:
        try:
            known, value = await self._later(lambda: self._kept(name, n), _nothing)
            if known:
                return value
            value = work()
            if inspect.isawaitable(value):
                value = await value
            given = (to_json(value, name),)
            return (await self._later(lambda: self._kept(name, n, given), _nothing))[1]
        finally:
            self._names().end(name)


def _unavailable() -> Fault:
    text = "Only tools of agents and of tool servers have steps, and only durable ones."
    return Fault("tool.unavailable", text)


def _inputs(given: Optional[Mapping[str, Any]], arguments: Mapping[str, Any]) -> Dict[str, Any]:
    inputs: Dict[str, Any] = to_json(dict(given or {}, **arguments), "input")
    return inputs


def _in_loop() -> bool:
    """Whether this is code of an async function, which must not be held up."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _on_a_thread(work: Callable[[], Any], at_last: Callable[[], None]) -> Any:
    """Does some work on a thread of its own, beginning now; its result can be awaited."""
    import asyncio

    loop = asyncio.get_running_loop()
    result: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: Optional[BaseException]) -> None:
        at_last()
        if result.done():
            return
        if error is None:
            result.set_result(value)
        else:
            result.set_exception(error)

    def run() -> None:
        value, error = None, None
        try:
            value = work()
        except BaseException as raised:  # Whoever awaits it is to meet it.
            error = raised
        try:
            loop.call_soon_threadsafe(settle, value, error)
        except RuntimeError:
            pass  # The tool is over, and nobody waits any more.

    threading.Thread(target=run, name="wharf-step", daemon=True).start()
    return result


def _nothing() -> None:
    pass


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, timezone.utc)


async def _moment_later(ms: Any) -> datetime:
    return _moment(await ms)

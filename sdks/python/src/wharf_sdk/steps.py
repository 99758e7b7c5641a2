"""Durable steps: what a tool has done is found again when its call is repeated.

    @agent.tool(durable=True)
    async def digest(url: str, cx: Call) -> dict:
        page = await cx.step("fetch", "web/fetch", url=url)
        return await cx.step("summary", "llm/summarise", text=page["text"])

In an async function each of these is awaited; in a plain one it gives its result at once. Nothing
here knows where the steps are kept: a call of an agent and a trial in memory both build on it.
"""

from __future__ import annotations

import inspect
import json
import sys
import threading
import time
import unicodedata
import uuid
from datetime import datetime, timezone
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Set, Tuple

from . import wharf_agent
from .encoding import to_json
from .fault import Fault

__all__ = ["DurableContext", "Steps"]

STEP_NAME_BYTES_MAX = 128

# Steps that `each` does at once. A core takes 256 from all calls of an agent together.
AT_ONCE_MAX = 16


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
            raise Fault("request.invalid", text)
        with self._lock:
            if name in self._open:
                text = "The step `%s` is under way: give this one another name, or use `each`."
                raise Fault("step.in_use", text % name)
            self._open.add(name)
            first = self._used.get(name, 0) + 1
            self._used[name] = first + count - 1
        return first

    def end(self, name: str) -> None:
        """The steps of this name are over, so that it can be used again."""
        with self._lock:
            self._open.discard(name)


class DurableContext:
    """What the call of a durable tool can do besides. Steps are found again by their names and by
    how often each was used, so that the code must ask for the same ones each time."""

    _steps: Steps

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
        n = self._steps.begin(name)
        return self._either(lambda: self._do(name, n, tool_id, inputs), name)

    def each(
        self, name: str, tool_id: str, all_given: Iterable[Mapping[str, Any]], at_once: int = 0
    ) -> Any:
        """Calls a tool with each of these inputs, several at once, and gives a list of what came
        out, in their order. Of those that fail the first raises its `Fault` when all are over."""
        inputs = [_inputs(given, {}) for given in all_given]
        first = self._steps.begin(name, len(inputs))
        works = [
            (lambda n=first + place, one=one: self._do(name, n, tool_id, one))
            for place, one in enumerate(inputs)
        ]
        most = at_once or AT_ONCE_MAX
        return self._either(lambda: self._all(works, most), name)

    def local(self, name: str, work: Callable[[], Any]) -> Any:
        """What `work` gives, as JSON: it runs until that is kept, and not when the call is repeated
        afterwards. What it does may so be done twice, if it is cut off before. Time, chance and
        requests of the tool's own belong in here."""
        n = self._steps.begin(name)
        if _in_loop():
            return self._local_later(name, n, work)
        try:
            known, value = self._kept(name, n)
            return value if known else self._kept(name, n, (to_json(work(), name),))[1]
        finally:
            self._steps.end(name)

    def now(self) -> Any:
        """The moment it was when the code came here first."""
        moment = self.local("wharf.now", self._now_ms)
        if not inspect.isawaitable(moment):
            return _moment(moment)
        return _moment_later(moment)

    # Where the steps are.

    def _do(self, name: str, n: int, tool_id: str, given: Mapping[str, Any]) -> Dict[str, Any]:
        raise NotImplementedError

    def _kept(self, name: str, n: int, value: Tuple[Any, ...] = ()) -> Tuple[bool, Any]:
        raise NotImplementedError

    def _now_ms(self) -> int:
        return int(time.time() * 1000)

    def _all(self, works: List[Callable[[], Any]], at_once: int) -> List[Any]:
        return _in_threads(works, at_once)

    def _later(self, work: Callable[[], Any], at_last: Callable[[], None]) -> Any:
        return _on_a_thread(work, at_last)

    def _either(self, work: Callable[[], Any], name: str) -> Any:
        """The result of some work, or in an async function what to await for it."""
        if _in_loop():
            return self._later(work, lambda: self._steps.end(name))
        try:
            return work()
        finally:
            self._steps.end(name)

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
            self._steps.end(name)


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


def _in_threads(works: List[Callable[[], Any]], at_once: int) -> List[Any]:
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


def _nothing() -> None:
    pass


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, timezone.utc)


async def _moment_later(ms: Any) -> datetime:
    return _moment(await ms)


def call_step(
    raw: wharf_agent.Call, name: str, n: int, tool_id: str, given: Mapping[str, Any]
) -> Dict[str, Any]:
    """Has the core do a step of an agent's call, or find it, and waits for what it gives."""
    number = str(uuid.uuid4())
    payload: Dict[str, Any] = {"invoke_id": number, "tool_id": tool_id, "input": dict(given)}
    payload.update(parent_call_id=raw.id, step={"name": name, "n": n})
    _check_granted(raw)
    news = raw._ask("invoke", number, "agent.tool.invoke", payload)
    try:
        while True:
            kind, said = news.get()
            if kind == "canceled":
                # The step is there for the next attempt, too; the end of the run ends it.
                raise wharf_agent.Canceled()
            if kind == "core.tool.invoke_result":
                return wharf_agent._output_of(said)
    finally:
        raw._waiting.pop(number, None)


def keep_value(
    raw: wharf_agent.Call, name: str, n: int, value: Tuple[Any, ...]
) -> Tuple[bool, Any]:
    """Whether the core keeps a value under a name, and which; if none is, it keeps this one."""
    step = {"name": name, "n": n}
    number = json.dumps([raw.id, step], sort_keys=True)
    payload: Dict[str, Any] = {"call_id": raw.id, "step": step}
    if value:
        payload["value"] = value[0]
    _check_granted(raw)
    news = raw._ask("steps", number, "agent.step.local", payload)
    try:
        kind, said = news.get()
    finally:
        raw._waiting.pop(number, None)
    if kind == "canceled":
        raise wharf_agent.Canceled()
    if isinstance(said.get("error"), dict):
        code = wharf_agent.safe_code(said["error"])
        raise wharf_agent.Failed(code if "." in code else "tool.failed", "It could not be kept.")
    return "value" in said, said.get("value")


def _check_granted(raw: wharf_agent.Call) -> None:
    if "steps" not in raw.session.granted:
        raise wharf_agent.Failed("permission.denied", "This core keeps no steps.")

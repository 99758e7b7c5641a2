"""A client of a core: start runs, follow them, decide what they ask, use files of worlds."""

from __future__ import annotations

import json
import time
import uuid
from types import TracebackType
from typing import Any, Dict, Generator, Iterator, Mapping, Optional, Tuple, Type, Union

from ._http import Broken, Transport, away, find, query, quoted
from .errors import CoreAway
from .events import Event, Finished, event_of
from .models import Ask, Run, ToolInfo, take
from .worlds import Files, Worlds, pages

# The core shows every 15 seconds that it is there; after three times that it is not.
SILENCE_SECONDS_MAX = 45.0
# How long an answer that waits for a run's end is waited for before the run is followed instead.
WAIT_SECONDS = 20.0
PAUSE_SECONDS = 0.05
PAUSE_SECONDS_MAX = 2.0
LINE_BYTES_MAX = 64 << 20

RunLike = Union[Run, str]


class Client:
    """A client of one core, for one thread at a time. It keeps one connection open.

    The core is the one at `url`, else at `WHARF_URL`, else the one that runs with `home`, with
    `WHARF_HOME` or with the usual home. `timeout` is how long an answer may take, `patience` how
    long a core that is away, such as one that is being restarted, is waited for.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        home: Optional[str] = None,
        timeout: float = 30.0,
        patience: float = 10.0,
    ) -> None:
        self._given = (url, token, home)
        self._transport = Transport(lambda: find(*self._given), timeout, patience)
        self.worlds = Worlds(self._transport)

    def files(self, world: str = "default") -> Files:
        """The files of a world."""
        return self.worlds.files(world)

    # Runs.

    def run(
        self,
        tool: str,
        inputs: Optional[Mapping[str, Any]] = None,
        *,
        outputs: Optional[Mapping[str, str]] = None,
        world: str = "default",
        mode: str = "real",
        timeout: Optional[float] = None,
        idempotency_key: Optional[str] = None,
        run_id: Optional[str] = None,
        continues: Optional[RunLike] = None,
        budget_micro: Optional[int] = None,
        correlation_id: Optional[str] = None,
        durability: Optional[str] = None,
        wait: Optional[float] = None,
    ) -> Run:
        """Starts a run and gives it when it is over, however it ended: see `Run.result`.

        `timeout` bounds one attempt, in seconds. `wait` bounds how long this call takes; the run
        that it gives then may still go on.
        """
        body = _body(
            tool,
            inputs,
            outputs,
            world,
            mode,
            timeout,
            idempotency_key,
            run_id,
            continues,
            budget_micro,
            correlation_id,
            durability,
        )
        until = None if wait is None else time.monotonic() + wait
        first = WAIT_SECONDS if wait is None else max(min(wait, WAIT_SECONDS), 0.0)
        path = "/v1/runs?wait=%dms" % int(first * 1000)
        status, answer = self._transport.call(
            "POST", path, body, self._transport.timeout + first, repeatable=True
        )
        run = Run.from_json(answer, world=world, tool=tool)
        return run if status == 200 and run.over else self._end(run, until)

    def start(
        self,
        tool: str,
        inputs: Optional[Mapping[str, Any]] = None,
        *,
        outputs: Optional[Mapping[str, str]] = None,
        world: str = "default",
        mode: str = "real",
        timeout: Optional[float] = None,
        idempotency_key: Optional[str] = None,
        run_id: Optional[str] = None,
        continues: Optional[RunLike] = None,
        budget_micro: Optional[int] = None,
        correlation_id: Optional[str] = None,
        durability: Optional[str] = None,
    ) -> Run:
        """Starts a run and gives it at once. From then on it ends exactly once, whatever
        happens to this program or to the core."""
        body = _body(
            tool,
            inputs,
            outputs,
            world,
            mode,
            timeout,
            idempotency_key,
            run_id,
            continues,
            budget_micro,
            correlation_id,
            durability,
        )
        answer = self._transport.call("POST", "/v1/runs", body, repeatable=True)[1]
        return Run.from_json(answer, world=world, tool=tool)

    def get(self, run: RunLike, world: str = "default") -> Run:
        """A run as it stands."""
        run_id, world = _which(run, world)
        path = query("/v1/runs/" + quoted(run_id), world=world)
        return Run.from_json(self._transport.call("GET", path)[1])

    def wait(self, run: RunLike, world: str = "default", seconds: Optional[float] = None) -> Run:
        """A run when it is over, or as it stands after so many seconds."""
        run_id, world = _which(run, world)
        until = None if seconds is None else time.monotonic() + seconds
        return self._end(Run(run_id, "queued", world=world), until)

    def list(
        self,
        *,
        world: Optional[str] = None,
        tool: Optional[str] = None,
        status: Optional[str] = None,
        since: Optional[str] = None,
        until: Optional[str] = None,
    ) -> Iterator[Run]:
        """Runs, newest first, without inputs and outputs; more are asked for as they are taken."""
        path = query("/v1/runs", world=world, tool=tool, status=status, since=since, until=until)
        for item in pages(self._transport, path):
            yield Run.from_json(item)

    def cancel(self, run: RunLike, world: str = "default", reason: Optional[str] = None) -> None:
        """Asks a run to stop; one that is over stays as it is."""
        run_id, world = _which(run, world)
        path = query("/v1/runs/%s/cancel" % quoted(run_id), world=world)
        body = {} if reason is None else {"reason": reason}
        self._transport.call("POST", path, body, repeatable=True)

    def stream(
        self, run: RunLike, world: str = "default", after: int = 0
    ) -> Generator[Event, None, None]:
        """What happens to a run, from its beginning (or behind a number) to its end.

        When the connection breaks, also because the core is restarted, it goes on behind the last
        event: nothing is lost and nothing comes twice.
        """
        run_id, world = _which(run, world)
        return self._follow(run_id, world, after, None)

    def _end(self, run: Run, until: Optional[float]) -> Run:
        for event in self._follow(run.run_id, run.world, 0, until):
            if isinstance(event, Finished) and event.run is not None:
                return event.run
        return self.get(run)

    def _follow(
        self, run_id: str, world: str, after: int, until: Optional[float]
    ) -> Generator[Event, None, None]:
        path = query("/v1/runs/%s/events" % quoted(run_id), world=world)
        lost, pause = None, PAUSE_SECONDS
        while True:
            try:
                for event in self._connected(path, after, until):
                    lost, pause = None, PAUSE_SECONDS
                    after = max(after, event.seq)
                    yield event
                    if isinstance(event, Finished):
                        return
                problem = CoreAway("The stream of events ended early.")
            except CoreAway as error:
                problem = error
            now = time.monotonic()
            if until is not None and now >= until:
                return
            lost = now if lost is None else lost
            if now - lost > self._transport.patience:
                raise problem
            time.sleep(pause)
            pause = min(pause * 2, PAUSE_SECONDS_MAX)

    def _connected(self, path: str, after: int, until: Optional[float]) -> Iterator[Event]:
        """The events of one connection, for as long as it lasts."""
        left = SILENCE_SECONDS_MAX if until is None else max(until - time.monotonic(), 0.01)
        headers = {"Accept": "text/event-stream"}
        if after:
            headers["Last-Event-ID"] = str(after)
        silence = min(left, SILENCE_SECONDS_MAX)
        with self._transport.open("GET", path, headers, timeout=silence) as answer:
            kind, data = "", ""
            while until is None or time.monotonic() < until:
                try:
                    line = answer.readline(LINE_BYTES_MAX)
                except Broken as error:
                    raise away(error) from None
                if not line:
                    return
                name, _, value = line.decode("utf-8", "replace").rstrip("\r\n").partition(":")
                value = value[1:] if value.startswith(" ") else value
                if name == "event":
                    kind = value
                elif name == "data":
                    data += value
                elif not line.strip():
                    if kind and data:
                        yield event_of(kind, json.loads(data))
                    kind, data = "", ""

    # Tools.

    def tools(self) -> Iterator[ToolInfo]:
        """All tools there are."""
        for item in pages(self._transport, "/v1/tools"):
            yield take(ToolInfo, item)

    def tool(self, tool_id: str) -> ToolInfo:
        """One tool with its schemas."""
        path = "/v1/tools/" + "/".join(quoted(part) for part in tool_id.split("/"))
        return take(ToolInfo, self._transport.call("GET", path)[1])

    # What runs ask.

    def inbox(self, *, kind: Optional[str] = None, world: Optional[str] = None) -> Iterator[Ask]:
        """Open questions and approvals, oldest first."""
        for item in pages(self._transport, query("/v1/inbox", kind=kind, world=world)):
            yield take(Ask, item)

    def answer(self, ask: Union[Ask, str], value: Any) -> None:
        """Answers a question."""
        self._answer(ask, {"value": value})

    def decline(
        self, ask: Union[Ask, str], status: str = "declined", text: Optional[str] = None
    ) -> None:
        """Leaves a question without an answer: `declined`, `cancelled`, or `off_script` with
        text that says something else."""
        self._answer(ask, {"status": status} if text is None else {"status": status, "text": text})

    def _answer(self, ask: Union[Ask, str], body: Mapping[str, Any]) -> None:
        self._transport.call("POST", "/v1/questions/%s/answer" % quoted(_ask_id(ask)), body)

    def decide(self, ask: Union[Ask, str], allow: bool, reason: Optional[str] = None) -> None:
        """Allows or denies what an approval is for."""
        body = {"decision": "allow" if allow else "deny"}
        if reason is not None:
            body["reason"] = reason
        self._transport.call("POST", "/v1/approvals/%s/decide" % quoted(_ask_id(ask)), body)

    # The connection.

    def close(self) -> None:
        """Closes the connection; the next request opens another."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()


def _body(
    tool: str,
    inputs: Optional[Mapping[str, Any]],
    outputs: Optional[Mapping[str, str]],
    world: str,
    mode: str,
    timeout: Optional[float],
    idempotency_key: Optional[str],
    run_id: Optional[str],
    continues: Optional[RunLike],
    budget_micro: Optional[int],
    correlation_id: Optional[str],
    durability: Optional[str],
) -> Dict[str, Any]:
    if run_id is None and idempotency_key is None:
        # With an id of its own the request can be sent again after a broken connection: there
        # is one run, not two.
        run_id = str(uuid.uuid4())
    fields = {
        "tool": tool,
        "inputs": dict(inputs or {}),
        "outputs": dict(outputs or {}),
        "world": world,
        "mode": mode,
        "timeout_ms": None if timeout is None else int(timeout * 1000),
        "idempotency_key": idempotency_key,
        "run_id": run_id,
        "continues": continues.run_id if isinstance(continues, Run) else continues,
        "budget_micro": budget_micro,
        "correlation_id": correlation_id,
        "durability": durability,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _which(run: RunLike, world: str) -> Tuple[str, str]:
    return (run.run_id, run.world) if isinstance(run, Run) else (run, world)


def _ask_id(ask: Union[Ask, str]) -> str:
    return ask.ask_id if isinstance(ask, Ask) else ask

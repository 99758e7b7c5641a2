"""An operative: a program that connects to a core and offers tools for as long as it runs.

    from wharf_sdk import Operative, Request

    desk = Operative("desk")

    @desk.tool
    def where(request: Request, precise: bool = False) -> dict:
        "Says where this desk is."
        request.progress(0.5, "looking around")
        return {"place": "by the window"}

    desk.run()

Nobody starts it but its user, and nothing fences it in: it is for what only runs where a person
is, such as a desktop. Runs of `desk/where` reach it while it is connected.
"""

from __future__ import annotations

import signal
import threading
from typing import Any, Callable, Dict, List, Mapping, Optional, TypeVar, Union, overload

from ._http import find
from ._link import PAUSE_SECONDS, PAUSE_SECONDS_MAX, Link, Message
from .calling import Table
from .errors import WharfError
from .fault import Fault
from .function import Function
from .request import Request, answer, failed
from .schema import Schema, schema_of

__all__ = ["Operative", "Request"]

CALLS_MAX = 64
OFFER_SECONDS_MAX = 30.0
DRAIN_SECONDS = 10.0
CLOSE_SECONDS = 5.0
NOT_DONE = {"executed": "no"}
# After these the core would not let this program in the next time either.
FINAL = ("auth.", "permission.", "request.", "tool.", "config.", "protocol.")

Work = TypeVar("Work", bound=Callable[..., Any])


class Offered:
    """A tool that is offered."""

    def __init__(self, function: Function, definition: Dict[str, Any]) -> None:
        self.function, self.definition = function, definition


class Operative:
    """The tools of a program, offered under a name for as long as it is connected.

    The core is found as `Client` finds it. The token needs the verb `serve` and tools that cover
    the name; the owner's has all. `calls_max` bounds how many calls are served at once; more are
    refused, so that the core can try them again.
    """

    def __init__(
        self,
        provider: str,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        home: Optional[str] = None,
        calls_max: int = CALLS_MAX,
    ) -> None:
        self.provider = provider
        self._given, self._calls_max = (url, token, home), calls_max
        self._tools: Dict[str, Offered] = {}
        self._table = Table()
        self._changed = threading.Condition()
        self._calls: Dict[str, Request] = {}
        self._link: Optional[Link] = None
        self._offered: Optional[Message] = None
        self._keeper: Optional[threading.Thread] = None
        self._stopping = False
        self._failure: Optional[WharfError] = None

    @property
    def tools(self) -> List[str]:
        """The ids of its tools."""
        return ["%s/%s" % (self.provider, name) for name in self._tools]

    @overload
    def tool(self, work: Work) -> Work: ...
    @overload
    def tool(
        self,
        *,
        name: Optional[str] = None,
        description: Optional[str] = None,
        side_effects: Optional[bool] = None,
        output_schema: Optional[Schema] = None,
        progress: Any = None,
        stream: str = "text",
    ) -> Callable[[Work], Work]: ...
    def tool(
        self,
        work: Optional[Work] = None,
        *,
        name: Optional[str] = None,
        description: Optional[str] = None,
        side_effects: Optional[bool] = None,
        output_schema: Optional[Schema] = None,
        progress: Any = None,
        stream: str = "text",
    ) -> Union[Work, Callable[[Work], Work]]:
        """Offers a function as a tool; the function itself stays as it is.

        Say `side_effects=False` of a tool that does not act on the world: the core may then try
        it again by itself. `progress` is the type of what `Request.report` says.
        """

        def add(work: Work) -> Work:
            function = Function(work, stream)
            chosen = name or function.name
            if chosen in self._tools:
                raise ValueError("The operative has two tools with the name `%s`." % chosen)
            given = function.input_schema()
            if side_effects is False:
                given["x-wharf-side-effects"] = False
            definition: Dict[str, Any] = {
                "name": chosen,
                "description": description or function.description or chosen,
                "input": given,
            }
            gives = output_schema or function.output_schema()
            if gives is not None:
                definition["output"] = gives
            if progress is not None:
                says = progress if isinstance(progress, Mapping) else schema_of(progress)
                definition["progress"] = dict(says)
            self._tools[chosen] = Offered(function, definition)
            return work

        return add if work is None else add(work)

    # Its life.

    def run(self, ready: Optional[Callable[[List[str]], None]] = None) -> None:
        """Connects and serves until the process is told to end, or the core does not want it
        any more, which raises `WharfError`. `ready` is told the tools once they can be called."""
        self.start()
        try:
            if threading.current_thread() is threading.main_thread():
                for number in (signal.SIGINT, signal.SIGTERM):
                    signal.signal(number, lambda *_: self._let_go())
            if ready is not None:
                ready(self.tools)
            self.wait()
        finally:
            self.stop()

    def start(self) -> None:
        """Connects, and returns once the tools stand in the core's catalog. From then on calls
        are served, and a lost connection is made again."""
        self._stopping, self._failure = False, None
        self._connect()
        self._keeper = threading.Thread(target=self._keep, name="wharf-operative", daemon=True)
        self._keeper.start()

    def wait(self) -> None:
        """Waits until it is stopped; raises why the core does not want it any more."""
        keeper = self._keeper
        while keeper is not None and keeper.is_alive():
            keeper.join(0.2)
        if self._failure is not None:
            raise self._failure

    def stop(self, seconds: float = DRAIN_SECONDS) -> None:
        """Takes no more calls, lets those under way end for so long, and disconnects. What is
        not over then is told to have failed."""
        self._let_go()
        with self._changed:
            self._changed.wait_for(lambda: not self._calls, seconds)
            calls, self._calls = list(self._calls.values()), {}
        for request in calls:
            text = "The operative stopped before the call was over."
            fault = Fault("tool.agent_lost", text, True, {"executed": "maybe"})
            request.link.send(_response(request.run_id, failed(fault), request.cost_micro))
            request.cancel()
        if self._link is not None:
            self._link.close(CLOSE_SECONDS)
        if self._keeper is not None:
            self._keeper.join()
            self._keeper = None

    def __enter__(self) -> Operative:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _let_go(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def _connect(self) -> None:
        """Connects and offers the tools, or raises what the core says against it."""
        self._offered = None
        query = {"role": "operative", "provider": self.provider}
        link = Link(lambda: find(*self._given), query, self._receive, self._ended)
        link.open()
        self._link = link
        tools = [offered.definition for offered in self._tools.values()]
        link.send({"type": "offer", "tools": tools})
        with self._changed:
            decided = lambda: self._offered is not None or link.over is not None
            self._changed.wait_for(decided, OFFER_SECONDS_MAX)
            offered = self._offered
        error = offered.get("error") if offered is not None else None
        if offered is not None and not isinstance(error, dict):
            return
        link.close(0.0)
        if isinstance(error, dict):
            raise WharfError.from_json(error)
        raise link.over or WharfError("transport.lost", "The core did not answer the offer.", True)

    def _keep(self) -> None:
        """Connects again whenever the connection was lost."""
        pause = PAUSE_SECONDS
        while True:
            with self._changed:
                link = self._link
                over = lambda: self._stopping or link is None or link.over is not None
                self._changed.wait_for(over)
                if self._stopping:
                    return
            error = link.over if link is not None else None
            if error is None or not _is_final(error):
                with self._changed:
                    self._changed.wait_for(lambda: self._stopping, pause)
                error = self._connect_again()
                pause = PAUSE_SECONDS if error is None else min(pause * 2, PAUSE_SECONDS_MAX)
            if error is not None and _is_final(error):
                self._failure = error
                return

    def _connect_again(self) -> Optional[WharfError]:
        if self._stopping:
            return None
        try:
            self._connect()
        except WharfError as error:
            self._link = None
            return error
        return None

    def _ended(self, _: WharfError) -> None:
        """The connection was lost: nobody waits for what is being done."""
        self._table.lose()
        with self._changed:
            calls, self._calls = list(self._calls.values()), {}
            self._changed.notify_all()
        for request in calls:
            request.cancel()

    # Its calls.

    def _receive(self, message: Message) -> None:
        kind = message.get("type")
        if "kind" in message:
            self._begin(message)
        elif kind == "request" and isinstance(message.get("payload"), dict):
            self._begin(message["payload"])
        elif kind == "cancel":
            with self._changed:
                request = self._calls.pop(str(message.get("id")), None)
                self._changed.notify_all()
            if request is not None:
                request.cancel()
        elif kind == "offered":
            with self._changed:
                self._offered = message
                self._changed.notify_all()
        else:
            self._table.take(message)

    def _begin(self, asked: Message) -> None:
        request_id, link = asked.get("id"), self._link
        if not isinstance(request_id, str) or link is None:
            return
        offered = self._tools.get(str(asked.get("type")))
        request = Request(request_id, link, self._table)
        with self._changed:
            if request_id in self._calls:
                return
            busy = self._stopping or len(self._calls) >= self._calls_max
            if not busy and offered is not None:
                self._calls[request_id] = request
        if offered is None:
            fault = Fault("tool.not_found", "This operative has no such tool.", False, NOT_DONE)
        elif busy:
            fault = Fault("tool.busy", "The operative has too many calls at once.", True, NOT_DONE)
        else:
            work = (request, offered.function, asked.get("payload"))
            threading.Thread(target=self._work, args=work, daemon=True).start()
            return
        link.send(_response(request_id, failed(fault)), wait=False)

    def _work(self, request: Request, function: Function, given: Any) -> None:
        ended = answer(request, function, given)
        request.close()
        with self._changed:
            wanted = self._calls.get(request.run_id) is request
        if wanted:
            try:
                request.link.send(_response(request.run_id, ended, request.cost_micro))
            except ValueError:
                fault = Fault("tool.output_too_large", "The output is too large to be sent.")
                request.link.send(_response(request.run_id, failed(fault), request.cost_micro))
        with self._changed:
            if self._calls.get(request.run_id) is request:
                del self._calls[request.run_id]
            self._changed.notify_all()


def _response(request_id: str, response: Mapping[str, Any], cost_micro: int = 0) -> Message:
    message: Message = {"type": "response", "id": request_id, "response": dict(response)}
    if cost_micro:
        message["cost_micro"] = cost_micro
    return message


def _is_final(error: WharfError) -> bool:
    return not error.retryable and error.code.startswith(FINAL)

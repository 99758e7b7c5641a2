"""A call that an operative serves, and how it ends."""

from __future__ import annotations

import sys
import threading
import traceback
from typing import Any, Dict, Mapping, Set

from ._host import DirectHost
from ._link import Link
from .calling import Caller, Pending, Table
from .context import LEVELS, Context
from .encoding import to_json
from .fault import Canceled, Fault, InvalidInput
from .function import Function

__all__ = ["Declined", "Denied", "Request"]


class Declined(Exception):
    """Whoever this program asked does not want to: the run is refused."""


class Denied(Exception):
    """What was asked is not allowed here: the run is refused."""


class Request(Context, Caller):
    """A call that an operative serves: a `Context` that can also call tools, ask and tell. What
    it starts belongs to the run that it serves, and is called off with it."""

    def __init__(self, request_id: str, link: Link, table: Table) -> None:
        self._files = DirectHost()
        super().__init__(request_id, "real", 1, {}, self._files)
        self.link = link
        self._table = table
        self._canceled = threading.Event()
        self._lock = threading.Lock()
        self._children: Set[Pending] = set()

    @property
    def canceled(self) -> bool:
        return self._canceled.is_set()

    def report(self, value: Any) -> None:
        """Says something on the way, of whatever type the tool says its progress has."""
        self.check()
        try:
            value = to_json(value, "progress")
            self.link.send({"type": "progress", "id": self.run_id, "data": value})
        except ValueError:
            raise Fault("tool.output_too_large", "The progress is too large to be sent.") from None

    def cost(self, micro: int) -> None:
        """Adds to what the call has cost, in micro-dollars. The core is told at once, so that a
        budget can stop the run; it counts also if the call fails."""
        super().cost(micro)
        if micro:
            told = {"type": "progress", "id": self.run_id, "cost_micro": self.cost_micro}
            self.link.send(told)

    def progress(self, fraction: float, text: str = "") -> None:
        self.report({"phase": text, "fraction": min(max(float(fraction), 0.0), 1.0)})

    def log(self, text: str, level: str = "info") -> None:
        if level not in LEVELS:
            raise ValueError("A level is one of %s." % ", ".join(LEVELS))
        self._begin("notify", "notification", {"message": str(text), "level": level})

    def _begin(self, kind: str, method: str, payload: Any) -> Pending:
        self.check()
        pending = self._table.begin(self.link, kind, method, payload, of=self.run_id)
        with self._lock:
            self._children = {child for child in self._children if not child.done} | {pending}
        if self.canceled:
            pending.cancel()
        return pending

    def _show(self, outputs: Mapping[str, Any]) -> None:
        self.report(dict(outputs))

    def _wait(self, seconds: float) -> bool:
        return self._canceled.wait(seconds)

    def cancel(self) -> None:
        """Calls it off, with all that it has started."""
        self._canceled.set()
        with self._lock:
            children = list(self._children)
        for child in children:
            child.cancel()

    def close(self) -> None:
        """Removes files that were made for the call."""
        self._files.close()


def answer(request: Request, function: Function, given: Any) -> Dict[str, Any]:
    """Runs a function for a call, and says how it ended."""
    try:
        given = {} if given is None else given
        if not isinstance(given, dict):
            raise InvalidInput("The input must be an object.")
        bound = function.bind(given, lambda _: False, request)
    except Fault as fault:
        fault.details.setdefault("executed", "no")
        return failed(fault)
    try:
        outputs = function.run(bound, request)
        content = {name: to_json(value, name) for name, value in outputs.items()}
        return {"status": "accepted", "content": content}
    except Canceled:
        return {"status": "cancelled"}
    except Declined:
        return {"status": "declined"}
    except Denied:
        return {"status": "denied"}
    except Fault as fault:
        return failed(fault)
    except Exception:  # Its text may hold anything; only this program's own log gets it.
        traceback.print_exc(file=sys.stderr)
        return failed(Fault("tool.internal", "The tool failed inside."))


def failed(fault: Fault) -> Dict[str, Any]:
    """A failure as it is answered."""
    said: Dict[str, Any] = {"code": fault.code, "message": fault.message}
    said["retryable"] = fault.retryable
    if fault.details:
        said["details"] = to_json(fault.details, "details")
    return {"status": "other", "content": fault.message, "fault": said}

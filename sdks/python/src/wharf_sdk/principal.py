"""A principal: calls tools of a core over the tool protocol, and follows them as they work.

    from wharf_sdk import Principal

    with Principal() as wharf:
        with wharf.start("wharf/count", {"n": 3}) as call:
            for piece in call:
                print(piece)
            print(call.result())

Each call is a run of the core. What is not over when the connection ends is called off, unless
the principal detaches.
"""

from __future__ import annotations

import threading
from typing import Any, Optional

from ._http import find
from ._link import Link
from .calling import Caller, Pending, Table
from .errors import WharfError

__all__ = ["Principal"]

CLOSE_SECONDS = 5.0


class Principal(Caller):
    """A connection to a core that any number of threads can call tools through.

    The core is found as `Client` finds it. `world` is where its runs are; with `detach` they go
    on when the connection ends. A connection that was lost is opened again by the next call.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        home: Optional[str] = None,
        world: str = "default",
        detach: bool = False,
    ) -> None:
        self._given = (url, token, home)
        self._query = {"role": "principal", "world": world}
        if detach:
            self._query["detach"] = "true"
        self._lock = threading.Lock()
        self._table = Table()
        self._link: Optional[Link] = None

    def _begin(self, kind: str, method: str, payload: Any) -> Pending:
        return self._table.begin(self._connected(), kind, method, payload)

    def _connected(self) -> Link:
        with self._lock:
            if self._link is None or self._link.over is not None:
                core = lambda: find(*self._given)
                link = Link(core, self._query, self._table.take, self._ended)
                link.open()
                self._link = link
            return self._link

    def _ended(self, _: WharfError) -> None:
        self._table.lose()

    def close(self) -> None:
        """Ends the connection, and calls off what is not over unless this principal detaches."""
        with self._lock:
            link, self._link = self._link, None
        if link is None:
            return
        if "detach" not in self._query:
            self._table.call_off()
        link.close(CLOSE_SECONDS)

    def __enter__(self) -> Principal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

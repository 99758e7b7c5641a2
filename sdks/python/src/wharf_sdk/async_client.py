"""The client for programs that use asyncio: each request runs on a thread of the loop's pool."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Any, AsyncIterator, Callable, Iterator, List, Optional, Set, Type, TypeVar

from .client import Client, RunLike
from .events import Event
from .models import Ask, Run, ToolInfo

Answer = TypeVar("Answer")


class AsyncClient:
    """As `Client`, with every method to be awaited. Any number of requests may go on at once."""

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, **more: Any) -> None:
        self._make: Callable[[], Client] = lambda: Client(url, token, **more)
        self._idle: List[Client] = []
        self._busy: Set[asyncio.Future[Any]] = set()

    async def run(self, tool: str, *given: Any, **more: Any) -> Run:
        """Starts a run and gives it when it is over; takes what `Client.run` takes."""
        return await self._with(lambda client: client.run(tool, *given, **more))

    async def start(self, tool: str, *given: Any, **more: Any) -> Run:
        """Starts a run and gives it at once; takes what `Client.start` takes."""
        return await self._with(lambda client: client.start(tool, *given, **more))

    async def get(self, run: RunLike, world: str = "default") -> Run:
        """A run as it stands."""
        return await self._with(lambda client: client.get(run, world))

    async def wait(
        self, run: RunLike, world: str = "default", seconds: Optional[float] = None
    ) -> Run:
        """A run when it is over, or as it stands after so many seconds."""
        return await self._with(lambda client: client.wait(run, world, seconds))

    async def cancel(
        self, run: RunLike, world: str = "default", reason: Optional[str] = None
    ) -> None:
        """Asks a run to stop."""
        await self._with(lambda client: client.cancel(run, world, reason))

    async def tools(self) -> List[ToolInfo]:
        """All tools there are."""
        return await self._with(lambda client: list(client.tools()))

    async def inbox(self, **filters: Optional[str]) -> List[Ask]:
        """Open questions and approvals, oldest first."""
        return await self._with(lambda client: list(client.inbox(**filters)))

    async def call(self, work: Callable[[Client], Answer]) -> Answer:
        """Anything else: gives a `Client` to a function, which runs on a thread."""
        return await self._with(work)

    async def stream(
        self, run: RunLike, world: str = "default", after: int = 0
    ) -> AsyncIterator[Event]:
        """What happens to a run, as `Client.stream` tells it."""
        client = self._take()
        events = client.stream(run, world, after)
        try:
            while True:
                event = await asyncio.to_thread(_next, events)
                if event is None:
                    return
                yield event
        finally:
            # One that is being read on a thread at this moment is closed when it is forgotten.
            with contextlib.suppress(ValueError):
                events.close()
            self._idle.append(client)

    async def _with(self, work: Callable[[Client], Answer]) -> Answer:
        client = self._take()
        answer = asyncio.ensure_future(asyncio.to_thread(work, client))

        def free(answer: asyncio.Future[Answer]) -> None:
            if not answer.cancelled():
                answer.exception()
            self._busy.discard(answer)
            self._idle.append(client)

        # A request whose task was canceled goes on until it has its answer; its connection is
        # free only then.
        self._busy.add(answer)
        answer.add_done_callback(free)
        return await asyncio.shield(answer)

    def _take(self) -> Client:
        return self._idle.pop() if self._idle else self._make()

    async def close(self) -> None:
        """Closes all connections, once requests that nobody waits for any more are over."""
        while self._busy:
            await asyncio.wait(list(self._busy))
        while self._idle:
            self._idle.pop().close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.close()


def _next(events: Iterator[Event]) -> Optional[Event]:
    return next(events, None)

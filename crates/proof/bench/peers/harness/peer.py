"""The shape that all peers have, Wharf among them.

A peer is installed once, then started and stopped as often as the benchmark needs it. Its server,
which keeps what is durable, is started apart from the handlers and callers around it, because the
server alone is what start-up and idle memory are measured of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .callers import Caller, Sample
from .children import Broken, Child, wait_until
from .machine import heard_outside

# One stretch of a work: so many callers, so many seconds.
Measured = Callable[[int, float], Sample]


@dataclass(frozen=True)
class Work:
    """One thing that a peer does, measured in turns with what Wharf has in its place."""

    title: str
    callers: int
    measure: Measured
    # Wharf's counterparts by what they are called; none where Wharf has none.
    beside: Mapping[str, Measured] = field(default_factory=dict)
    # The figure that is compared, its unit, and which of two is the better one.
    figure: str = ""
    unit: str = ""
    better: str = ""
    # What a reader must know to read the row rightly.
    note: str = ""
    # Whether a number of times as good means anything, and how many rounds are enough.
    ratio: bool = True
    rounds_max: int = 99


def calls(title: str, callers: int, measure: Measured, beside=None, note: str = "") -> Work:
    """A call that is made over and over: how long one takes, or how many a second there are."""
    many = callers > 1
    return Work(
        title=title,
        callers=callers,
        measure=measure,
        beside=beside or {},
        figure="per_second" if many else "p50_ms",
        unit="calls/s" if many else "ms",
        better="higher" if many else "lower",
        note=note,
    )


@dataclass
class Peer:
    """A peer. What it cannot do it leaves as it is here."""

    name = ""
    title = ""
    # Where its handler runs, and what a call waits for before it is acknowledged.
    about = ""
    sync = ""
    # Whether it has a server whose start and memory are measured, and records to kill it over.
    has_server = False
    keeps_records = False
    # How long after a crash it may still give out again what a lost worker held.
    settle_seconds = 3.0

    children: list[Child] = field(default_factory=list)
    callers: list[Caller] = field(default_factory=list)
    folder: Path = Path()

    def install(self) -> None:
        """Fetches what is missing."""

    def version(self) -> str:
        """What was installed."""
        return ""

    def start_server(self) -> None:
        """Starts what keeps the records, in `self.folder`, and returns when it takes calls."""

    def start_handlers(self) -> None:
        """Starts what does the work, and returns when it would."""

    def start_callers(self) -> None:
        """Starts what calls."""

    def works(self, wharf: Peer) -> list[Work]:
        """What it can do, and what stands beside it in a Wharf that runs."""
        return []

    def flood(self, command: dict) -> None:
        """Begins to submit calls without waiting for their results, writing down what was taken."""
        raise Broken(f"{self.title} is not flooded")

    def undone(self, names: list[str]) -> dict[str, str]:
        """How calls ended of which a peer itself says that they did not succeed."""
        return {}

    # ---- what all of them do alike

    def begin(self, folder: Path) -> None:
        """Starts all of it on the data of a folder."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.start_server()
        self.check_loopback()
        self.start_handlers()
        self.start_callers()
        self.check_loopback()

    def keep(self, child: Child) -> Child:
        """A program of this peer, which is ended with it."""
        self.children.append(child)
        return child

    def pids(self) -> list[int]:
        """All processes of the peer, its callers left out."""
        return [pid for child in self.children for pid in child.tree()]

    def check_loopback(self) -> None:
        """Ends the peer at once if anybody but this machine could reach it."""
        heard = heard_outside(self.pids())
        if heard:
            self.kill()
            raise Broken(
                f"{self.title} listened beyond loopback ({', '.join(heard)}) and was ended"
            )

    def kill(self) -> None:
        """kill -9 of all its processes at once; callers stay, unless they are the peer."""
        for child in self.children:
            child.kill()
        self.children.clear()

    def stop(self) -> None:
        """Ends all of it, the last that was started first."""
        for caller in reversed(self.callers):
            caller.stop()
        for child in reversed(self.children):
            child.stop()
        self.callers.clear()
        self.children.clear()

    def log(self, name: str) -> Path:
        return self.folder / "log" / f"{name}.log"

    def ledger(self) -> Path:
        """Where handlers write down, outside of the peer, what they did."""
        return self.folder / "ledger"


__all__ = ["Broken", "Measured", "Peer", "Work", "calls", "wait_until"]

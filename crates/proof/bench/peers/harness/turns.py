"""Taking turns: the order of rounds, and what is kept of each.

Within a round the peer and Wharf do the same work one after the other, and the next round goes the
other way about, so that neither is always the one that finds the disk and the caches as the other
left them. What a contestant cannot do ends its row and nothing else.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from . import machine
from .callers import Sample
from .children import Broken, memory_mib, wait_until
from .figures import Spread, advantage, spread
from .install import say
from .peer import Peer, Work

# A crash is of so many calls; half of them are acknowledged when everything is killed.
CRASH_CALLS = 600
CRASH_CALLERS = 16
# How long an incomplete ledger may stand still, and how long one crash may take to be made good.
STILL_SECONDS = 25
DRAIN_SECONDS = 90


@dataclass(frozen=True)
class Pace:
    """How long and how often."""

    rounds: int
    seconds: float
    warm_seconds: float
    # Starts with an empty folder, the seconds that an idle server is left alone, and crashes.
    starts: int
    idle_seconds: float
    crashes: int
    # How many of Wharf's counterparts are measured; the first is the one that is like for like.
    counterparts: int


# Many short turns rather than few long ones: what the machine does for some seconds then falls on
# both. Nine rounds are the fewest whose interval of 95 % leaves out the one odd round at each end.
FULL = Pace(
    rounds=9, seconds=1, warm_seconds=1, starts=3, idle_seconds=3, crashes=2, counterparts=9
)
QUICK = Pace(
    rounds=2, seconds=1, warm_seconds=1, starts=1, idle_seconds=1, crashes=1, counterparts=1
)


@dataclass
class Round:
    """What one round gave, and what the machine did meanwhile."""

    samples: dict[str, Sample]
    others_cores: float
    flush_ms: float
    load: float

    @property
    def busy(self) -> bool:
        return self.others_cores > machine.BUSY_CORES


@dataclass
class Row:
    """A work of a peer, and Wharf's beside it."""

    peer: str
    version: str
    about: str
    sync: str
    work: Work
    rounds: list[Round] = field(default_factory=list)
    error: str = ""

    def values(self, who: str) -> list[float]:
        return [round.samples[who].figures[self.work.figure] for round in self.rounds]

    def spread(self, who: str) -> Spread:
        return spread(self.values(who))

    def advantage(self, ours: str) -> Spread | None:
        """How many times as good Wharf is, in the rounds that both came through."""
        if not self.work.ratio or not self.rounds:
            return None
        return advantage(self.values(ours), self.values(PEER), self.work.better)


PEER = "peer"


@dataclass(frozen=True)
class Crash:
    """What became of acknowledged calls when everything was killed and started again."""

    acknowledged: int
    # Never done, and nobody says so.
    lost: int
    done_twice: int
    ready_again_ms: float
    # What the peer itself says did not succeed, by how it ended; and how many of these were
    # indeed never done.
    undone: dict[str, int]
    undone_not_done: int


@dataclass
class CrashRow:
    """The crashes of one peer."""

    peer: str
    version: str
    crashes: list[Crash] = field(default_factory=list)
    error: str = ""


def in_turns(row: Row, pace: Pace, disk: Path) -> Row:
    """Measures a work and its counterparts, round by round."""
    contestants = {PEER: row.work.measure, **row.work.beside}
    callers = row.work.callers
    try:
        # First contact is left out; what is counted and not timed has none.
        for measure in contestants.values() if row.work.ratio else ():
            measure(callers, pace.warm_seconds)
        for number in range(min(pace.rounds, row.work.rounds_max)):
            row.rounds.append(one_round(contestants, callers, number, pace, disk))
    except Exception as error:
        row.error = why(error)
    return row


def why(error: Exception) -> str:
    """What broke: whatever it is, it ends a row and not the rows of the others."""
    return str(error) if isinstance(error, Broken) else f"{type(error).__name__}: {error}"


def one_round(contestants, callers: int, number: int, pace: Pace, disk: Path) -> Round:
    flush = machine.flush_ms(disk)
    begin = machine.now()
    samples = {}
    for name in order(list(contestants), number):
        samples[name] = contestants[name](callers, pace.seconds)
    others = machine.others_cores(begin, machine.now())
    return Round(samples, others, flush, machine.load())


def order(names: list, number: int) -> list:
    """Who comes when: the other way about in each second round."""
    return names if number % 2 == 0 else names[::-1]


def starts(peer: Peer, wharf: Peer, pace: Pace, folder: Path) -> list[Row]:
    """Start until ready with an empty folder, and memory when nothing happens, in turns."""
    works = [
        Work("start until ready, empty folder", 1, unmeasured, {}, "ready_ms", "ms", "lower"),
        Work("idle memory of the server", 1, unmeasured, {}, "pss", "MiB", "lower", SHARED),
    ]
    rows = [
        Row(peer.title, peer.version(), "its server alone", peer.sync, beside(work, "core"))
        for work in works
    ]
    contestants = {PEER: peer, "core": wharf}
    try:
        for number in range(pace.starts):
            flush, begin = machine.flush_ms(folder), machine.now()
            samples = {}
            for name in order(list(contestants), number):
                place = folder / f"start-{number}-{name}"
                samples[name] = one_start(contestants[name], place, pace.idle_seconds)
            others = machine.others_cores(begin, machine.now())
            for row in rows:
                row.rounds.append(Round(samples, others, flush, machine.load()))
    except Exception as error:
        for row in rows:
            row.error = why(error)
    return rows


SHARED = "memory that processes share is divided among them (PSS)"


def unmeasured(_callers: int, _seconds: float) -> Sample:
    raise Broken("a start is no call")


def beside(work: Work, name: str) -> Work:
    """The same work with a counterpart of that name, which is measured together with it."""
    return replace(work, beside={name: unmeasured})


def one_start(peer: Peer, folder: Path, idle_seconds: float) -> Sample:
    folder.mkdir(parents=True)
    peer.folder = folder
    try:
        begin = time.perf_counter()
        peer.start_server()
        ready_ms = (time.perf_counter() - begin) * 1e3
        peer.check_loopback()
        time.sleep(idle_seconds)
        return Sample({"ready_ms": ready_ms, **memory_mib(peer.pids())})
    finally:
        peer.stop()


def crash(peer: Peer, folder: Path) -> Crash:
    """Kills everything under load, starts it again, and counts."""
    acks = folder / "acks"
    try:
        peer.begin(folder)
        peer.flood(
            {"do": "flood", "calls": CRASH_CALLS, "callers": CRASH_CALLERS, "acks": str(acks)}
        )
        half = CRASH_CALLS // 2
        wait_until(lambda: len(lines(acks)) >= half, f"{peer.title}: {half} acknowledged calls")
        peer.kill()
        for caller in peer.callers:
            caller.kill()
        peer.callers.clear()
        acknowledged = lines(acks)
        begin = time.perf_counter()
        if peer.has_server:
            peer.start_server()
        ready_ms = (time.perf_counter() - begin) * 1e3
        peer.start_handlers()
        peer.start_callers()
        peer.check_loopback()
        drain(peer, acknowledged)
        done = Counter(lines(peer.ledger()))
        not_done = {name for name in acknowledged if name not in done}
        undone = peer.undone(acknowledged)
        return Crash(
            acknowledged=len(acknowledged),
            lost=len(not_done - undone.keys()),
            done_twice=sum(count > 1 for count in done.values()),
            ready_again_ms=ready_ms,
            undone=dict(Counter(undone.values())),
            undone_not_done=len(not_done & undone.keys()),
        )
    finally:
        peer.stop()


def drain(peer: Peer, acknowledged: list[str]) -> None:
    """Waits until all that was acknowledged is done, or nothing more happens."""
    deadline = time.monotonic() + DRAIN_SECONDS
    seen, since = -1, time.monotonic()
    while time.monotonic() < deadline:
        done = lines(peer.ledger())
        if len(done) != seen:
            seen, since = len(done), time.monotonic()
        # What is given out anew comes late, so even a complete ledger is watched for a while.
        complete = set(acknowledged) <= set(done)
        quiet = time.monotonic() - since
        if quiet > (peer.settle_seconds if complete else STILL_SECONDS):
            return
        time.sleep(0.05)


def lines(path: Path) -> list[str]:
    """The whole lines of a file that others write to."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return []
    return text[: text.rfind("\n") + 1].split()


def works_of(
    peer: Peer, wharf: Peer, pace: Pace, folder: Path, told: Callable[[Row], None]
) -> None:
    """All works of a peer beside a Wharf of its own."""
    try:
        wharf.begin(folder / "wharf")
        peer.begin(folder / "peer")
        works = peer.works(wharf)
    except Exception as error:
        nothing = Work("all of it", 1, unmeasured)
        told(Row(peer.title, peer.version(), peer.about, peer.sync, nothing, error=why(error)))
        peer.stop()
        wharf.stop()
        return
    try:
        for work in works:
            at_once = f", {work.callers} at once" if work.callers > 1 else ""
            say(f"{peer.title}: {work.title}{at_once}")
            ours = dict(list(work.beside.items())[: pace.counterparts])
            work = replace(work, beside=ours)
            row = Row(peer.title, peer.version(), peer.about, peer.sync, work)
            told(in_turns(row, pace, folder))
    finally:
        peer.stop()
        wharf.stop()


def crashes(contestants: list[Peer], pace: Pace, data: Path) -> list[CrashRow]:
    """kill -9 under load of everybody in turns."""
    rows = [CrashRow(peer.title, peer.version()) for peer in contestants]
    for number in range(pace.crashes):
        for peer, row in order(list(zip(contestants, rows, strict=True)), number):
            if row.error:
                continue
            say(f"{peer.title}: kill -9 under load")
            folder = data / f"crash-{number}-{rows.index(row)}"
            try:
                row.crashes.append(crash(peer, folder))
            except Exception as error:
                row.error = why(error)
            shutil.rmtree(folder, ignore_errors=True)
    return rows

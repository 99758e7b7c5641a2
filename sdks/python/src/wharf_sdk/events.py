"""The events of a run, each kind as a type of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional, Type

from .models import Ask, Run, take


@dataclass(frozen=True)
class Event:
    """Something that happened to a run. An event of a kind that is not known here is just this."""

    kind: str
    seq: int = 0
    run_id: str = ""
    at: str = ""
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Queued(Event):
    """The run was accepted."""

    attempt: int = 0


@dataclass(frozen=True)
class Started(Event):
    """The first attempt began."""

    attempt: int = 1


@dataclass(frozen=True)
class Attempt(Event):
    """A further attempt began."""

    attempt: int = 0
    reason: str = ""
    executed: str = ""


@dataclass(frozen=True)
class Log(Event):
    """A line of the run's log."""

    level: str = "info"
    text: str = ""


@dataclass(frozen=True)
class Text(Event):
    """Text that was added to a channel: `stdout`, `stderr`, `status` or the name of an output."""

    channel: str = ""
    text: str = ""


@dataclass(frozen=True)
class Partial(Event):
    """A value that is not final."""

    key: str = ""
    value: Any = None


@dataclass(frozen=True)
class Progress(Event):
    """How far the run is."""

    phase: str = ""
    fraction: Optional[float] = None


@dataclass(frozen=True)
class Asked(Event):
    """The run waits for a person: a question or an approval."""

    ask: Optional[Ask] = None


@dataclass(frozen=True)
class Decided(Event):
    """What was asked is decided."""

    ask_id: str = ""
    decision: str = ""
    by: str = ""


@dataclass(frozen=True)
class Gap(Event):
    """A hole in what the provider sent; `data` says from where to where."""


@dataclass(frozen=True)
class Finished(Event):
    """The run is over."""

    run: Optional[Run] = None


KINDS: Dict[str, Type[Event]] = {
    "queued": Queued,
    "started": Started,
    "attempt": Attempt,
    "log": Log,
    "text": Text,
    "partial": Partial,
    "progress": Progress,
    "question": Asked,
    "approval": Asked,
    "decided": Decided,
    "gap": Gap,
    "finished": Finished,
}


def event_of(kind: str, data: Mapping[str, Any]) -> Event:
    """An event as the core tells it."""
    more: Dict[str, Any] = {"kind": kind}
    if kind in ("question", "approval"):
        more["ask"] = take(Ask, data, kind=kind)
    elif kind == "finished":
        more["run"] = Run.from_json(data)
    return take(KINDS.get(kind, Event), data, **more)

"""What a core tells, as values. Fields that this version does not know are in `data`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Type, TypeVar

from .errors import RunFailed, WharfError

Json = Mapping[str, Any]
Model = TypeVar("Model")

OVER = ("succeeded", "failed", "refused", "canceled")


def take(kind: Type[Model], data: Json, /, **more: Any) -> Model:
    """A value of this kind from what the core told; what is null counts as absent."""
    names = [one.name for one in dataclasses.fields(kind)]  # type: ignore[arg-type]
    known = {name: data[name] for name in names if data.get(name) is not None}
    known.update(more, data=data)
    return kind(**known)


@dataclass(frozen=True)
class FileInfo:
    """A file of a world, or one writing or reading of it."""

    path: str
    world: str = "default"
    bytes: int = 0
    b3: str = ""
    media_type: str = ""
    run_id: str = ""
    key: str = ""
    direction: str = "out"
    at: str = ""
    data: Json = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Ask:
    """Something a run waits for: a question or an approval."""

    ask_id: str
    kind: str
    run_id: str = ""
    tool: str = ""
    world: str = "default"
    title: str = ""
    detail: Any = None
    schema: Any = None
    audience: str = ""
    deadline: str = ""
    created_at: str = ""
    data: Json = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Run:
    """A run as it stood when it was looked at."""

    run_id: str
    status: str
    tool: str = ""
    world: str = "default"
    mode: str = "real"
    durability: str = "journal"
    attempt: int = 0
    cost_micro: int = 0
    created_at: str = ""
    started_at: str = ""
    ended_at: str = ""
    inputs: Dict[str, Any] = field(default_factory=dict)
    outputs: Dict[str, Any] = field(default_factory=dict)
    artifacts: List[FileInfo] = field(default_factory=list)
    receipt: Dict[str, Any] = field(default_factory=dict)
    continues: str = ""
    correlation_id: str = ""
    error: Optional[WharfError] = None
    ask: Optional[Ask] = None
    data: Json = field(default_factory=dict, repr=False)

    @classmethod
    def from_json(cls, data: Json, **more: Any) -> Run:
        """A run as the core shows it."""
        files = [take(FileInfo, one) for one in data.get("artifacts") or []]
        error, ask = data.get("error"), data.get("ask")
        return take(
            cls,
            data,
            artifacts=files,
            error=WharfError.from_json(error) if error else None,
            ask=take(Ask, ask) if ask else None,
            **more,
        )

    @property
    def over(self) -> bool:
        """Whether it has ended; then nothing about it changes any more."""
        return self.status in OVER

    @property
    def succeeded(self) -> bool:
        """Whether it ended well."""
        return self.status == "succeeded"

    def result(self) -> Dict[str, Any]:
        """The outputs of a run that succeeded; `RunFailed` for any other."""
        if not self.succeeded:
            raise RunFailed(self)
        return self.outputs


@dataclass(frozen=True)
class ToolInfo:
    """A tool of the catalog."""

    tool_id: str
    name: str = ""
    description: str = ""
    provider: str = ""
    input_schema: Any = None
    output_schema: Any = None
    side_effects: bool = True
    requires_directive: bool = False
    state: str = ""
    state_reason: str = ""
    data: Json = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class World:
    """A world with its settings and its account."""

    world: str
    created_at: str = ""
    limit_micro: Optional[int] = None
    held_micro: int = 0
    spent_micro: int = 0
    default_hold_micro: int = 0
    publish: str = "direct"
    retention_days: Optional[int] = None
    run_retention_days: Optional[int] = None
    policy: List[Dict[str, Any]] = field(default_factory=list)
    data: Json = field(default_factory=dict, repr=False)

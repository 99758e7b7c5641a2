"""Wharf for Python: write tools and agents, and call those of others.

    from wharf_sdk import tool      # a tool that `wharf tool serve` runs
    from wharf_sdk import Agent     # an agent: a process of its own with any number of tools
    from wharf_sdk import Operative # tools that a program offers while it is connected
    from wharf_sdk import Client    # start runs, follow them, use files of worlds
    from wharf_sdk import Principal # call tools over one connection, with their progress

Each part is loaded when it is first used, so that a worker that only runs a tool starts fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, List

if TYPE_CHECKING:
    from .agent import Agent as Agent
    from .agent import Answer as Answer
    from .agent import Call as Call
    from .async_client import AsyncClient as AsyncClient
    from .calling import Pending as Pending
    from .calling import Sampled as Sampled
    from .client import Client as Client
    from .context import Context as Context
    from .cost import Prices as Prices
    from .cost import per_second as per_second
    from .cost import per_token as per_token
    from .errors import RunFailed as RunFailed
    from .errors import WharfError as WharfError
    from .events import Event as Event
    from .fault import Canceled as Canceled
    from .fault import Fault as Fault
    from .files import File as File
    from .files import Written as Written
    from .function import Result as Result
    from .handler import Tool as Tool
    from .handler import tool as tool
    from .models import Ask as Ask
    from .models import FileInfo as FileInfo
    from .models import Run as Run
    from .models import ToolInfo as ToolInfo
    from .models import World as World
    from .operative import Operative as Operative
    from .principal import Principal as Principal
    from .request import Declined as Declined
    from .request import Denied as Denied
    from .request import Request as Request

__version__ = "0.1.0"

_PLACES = {
    "agent": ("Agent", "Answer", "Call"),
    "async_client": ("AsyncClient",),
    "calling": ("Pending", "Sampled"),
    "client": ("Client",),
    "context": ("Context",),
    "cost": ("Prices", "per_second", "per_token"),
    "events": ("Event",),
    "errors": ("RunFailed", "WharfError"),
    "fault": ("Canceled", "Fault"),
    "files": ("File", "Written"),
    "function": ("Result",),
    "handler": ("Tool", "tool"),
    "models": ("Ask", "FileInfo", "Run", "ToolInfo", "World"),
    "operative": ("Operative",),
    "principal": ("Principal",),
    "request": ("Declined", "Denied", "Request"),
}
_PLACE_OF = {name: module for module, names in _PLACES.items() for name in names}

__all__ = list(_PLACE_OF)


def __getattr__(name: str) -> Any:
    if name not in _PLACE_OF:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    value = getattr(importlib.import_module("." + _PLACE_OF[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted(__all__)

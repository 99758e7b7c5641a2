"""`python3 -m wharf_sdk.describe handler.py`: what tools a handler has, as JSON.

Prints one object: `{"describe": 1, "tools": [...]}`, or `{"describe": 1, "error": {...}}` with
the exit status 1 if the handler cannot be imported. What the handler prints meanwhile goes to
standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any, Dict, List, Optional, Sequence

from ._load import Handler, Unusable, imported
from .handler import Tool

FORM = 1


def description(handler: Handler) -> Dict[str, Any]:
    """What a handler has to say of itself."""
    if handler.entry is not None:
        plain: Dict[str, Any] = {"name": None, "description": "", "input_schema": {}}
        plain.update(output_schema=None, stream=None, mock=False, durable=False)
        return {"describe": FORM, "tools": [plain]}
    return {"describe": FORM, "tools": [_one(tool) for tool in handler.tools.values()]}


def _one(tool: Tool) -> Dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.schema(),
        "output_schema": tool.output_schema(),
        "stream": tool.function.stream if tool.function.is_stream else None,
        "mock": tool.mock,
        "durable": tool.durable,
    }


def failure(error: Unusable) -> Dict[str, Any]:
    """Why it cannot be said."""
    story: List[str] = error.lines
    return {"describe": FORM, "error": {"message": error.problem, "traceback": story}}


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Prints what a handler says of itself."""
    parser = argparse.ArgumentParser(prog="python3 -m wharf_sdk.describe", description=__doc__)
    parser.add_argument("handler", help="the handler's file")
    given = parser.parse_args(arguments)
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # Whatever else writes to standard output, a child process of the import included.
    os.dup2(2, 1)
    sys.argv = [given.handler]
    try:
        said, status = description(imported(given.handler)), 0
    except Unusable as error:
        said, status = failure(error), 1
    with answer:
        answer.write(json.dumps(said) + "\n")
    return status


def leave(status: int) -> None:
    """Ends at once: what the import left behind, such as threads, is not waited for."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass
    os._exit(status)


if __name__ == "__main__":
    leave(main())

"""What both clients of Python do: the steps of their one argument, as `play.mjs` describes them."""

import asyncio
import json
import os
import sys

ASKED = json.loads(sys.argv[1])
URL = os.environ["WHARF_MCP"]
HEADERS = {"authorization": f"Bearer {os.environ['WHARF_TOKEN']}"}
MODES = {"modern": "2026-07-28"}
MODE = MODES.get(ASKED.get("mode"), ASKED.get("mode", "auto"))


def plain(value):
    """The wire's own names for what a model of pydantic holds."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return [plain(item) for item in value] if isinstance(value, list) else value


def show(**line):
    print(json.dumps(line), flush=True)


async def play(ways):
    for step in ASKED["steps"]:
        name, given = step[0], step[1] if len(step) > 1 else {}
        try:
            show(step=name, result=plain(await ways[name](given)))
        except Exception as error:
            code = getattr(getattr(error, "error", None), "code", None)
            show(step=name, error={"code": code, "message": str(error)})


def run(main):
    asyncio.run(asyncio.wait_for(main(), 110))

"""The tools of the reference agents, written with the package: each shows one of its parts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Dict, Optional

for place in Path(__file__).resolve().parents:
    if (place / "src" / "wharf_sdk").is_dir():
        sys.path.insert(0, str(place / "src"))

from wharf_sdk import Agent, Call, Context, Fault, File  # noqa: E402

OUTPUT_BYTES_MAX = 256 * 1024
FILE_BYTES_MAX = 16 * 1024 * 1024

agent = Agent("dev.wharf.hello-typed", "0.1.0", idempotent=True)


@agent.tool(side_effects=False)
def hello_world(name: str = "world") -> Dict[str, Any]:
    """Greets by name."""
    return {"greeting": "Hello, %s!" % name}


@agent.tool(side_effects=False)
def stream_counter(
    call: Call,
    n: Annotated[int, {"minimum": 0, "maximum": 4000}],
    delay_ms: Annotated[int, {"minimum": 0, "maximum": 60_000}] = 0,
) -> Dict[str, Any]:
    """Counts to n and streams every step."""
    for count in range(1, n + 1):
        call.print("%d\n" % count)
        call.progress(count / n, "counted to %d of %d" % (count, n))
        call.pause(delay_ms / 1000)
    return {"counted": n}


@agent.tool(side_effects=False)
async def sleep(ms: Annotated[int, {"minimum": 0, "maximum": 3_600_000}]) -> Dict[str, Any]:
    """Waits for some milliseconds."""
    import asyncio

    await asyncio.sleep(ms / 1000)
    return {"slept_ms": ms}


@agent.tool(side_effects=False)
def invalid_input(must_be: int) -> Dict[str, Any]:
    """Takes nothing but an integer."""
    return {"integer": must_be}


@agent.tool(side_effects=False)
def large_output(
    call: Call, bytes: Annotated[int, {"minimum": 0, "maximum": 1 << 40}]
) -> Dict[str, Any]:
    """Returns that many bytes, or as many as are allowed."""
    most = FILE_BYTES_MAX if call._place("text") else OUTPUT_BYTES_MAX
    given = min(bytes, most)
    return {"text": "x" * given, "bytes": given, "wanted": bytes, "truncated": given < bytes}


@agent.tool
def relay(call: Call, tool_id: str, input: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
    """Calls another tool and passes on what it says."""

    def pass_on(channel: str, data: Any) -> None:
        if channel == "stdout":
            call.print(str(data.get("text", "")))

    return {"output": call.call(tool_id, input or {}, on_piece=pass_on)}


@agent.tool(stream="response", mock=True, tags=["text"])
def shout(text: str, context: Context):  # type: ignore[no-untyped-def]
    """Says it word by word, and what it costs."""
    for word in text.upper().split():
        context.cost(2)
        yield word + " "


@agent.tool
def copy(source: File, context: Context, times: int = 1) -> Dict[str, Any]:
    """Copies a file."""
    with context.writer("copy") as file:
        for _ in range(times):
            for piece in source:
                file.write(piece)
    return {"bytes": source.size * times, "note": b"raw bytes"}


@agent.tool
def decide(call: Call) -> Dict[str, Any]:
    """Asks somebody."""
    answer = call.ask("Go on?", {"type": "boolean"})
    if answer.status != "answered":
        raise Fault("hello.undecided", "Nobody said anything.")
    return {"decided": answer.value}


@agent.tool
def fail(kind: str) -> None:
    """Fails in one way or another."""
    if kind == "fault":
        raise Fault("hello.told", "As told.", details={"kind": kind})
    raise KeyError("sk-canary")


runs = 0


@agent.tool(free=True)
def once(call: Call, n: int) -> Dict[str, Any]:
    """Counts how often it ran."""
    global runs
    runs += 1
    return {"runs": runs, "n": n}


if __name__ == "__main__":
    agent.run()

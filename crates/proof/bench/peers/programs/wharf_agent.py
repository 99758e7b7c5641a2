"""The handlers of Wharf's Python agent: `agent.py LEDGER`."""

from __future__ import annotations

import os
import sys
import time

from wharf_sdk import Agent, Call

LEDGER = sys.argv[1]
PRICE_MICRO = 50

agent = Agent("dev.example.measured", "0.1.0")


@agent.tool(side_effects=False)
def echo(text: str) -> dict:
    "Gives a text back."
    return {"text": text}


@agent.tool(side_effects=False, durable=True)
async def steps(text: str, cx: Call) -> dict:
    "Gives a text back in three durable steps."
    first = await cx.local("first", lambda: text)
    second = await cx.local("second", lambda: first)
    return {"text": await cx.local("third", lambda: second)}


def written_down(text: str) -> dict:
    """What is done can be seen outside: a line for each time."""
    file = os.open(LEDGER, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, f"{text}\n".encode())
    os.close(file)
    time.sleep(0.01)
    return {"text": text}


@agent.tool(side_effects=False)
def work(text: str) -> dict:
    "Does what may be repeated."
    return written_down(text)


@agent.tool(side_effects=True)
def act(text: str) -> dict:
    "Does what must not be repeated on a guess."
    return written_down(text)


@agent.tool(side_effects=True)
def paid(text: str, call: Call) -> dict:
    "Costs what the budget of one call allows."
    call.cost(PRICE_MICRO)
    return written_down(text)


if __name__ == "__main__":
    agent.run()

"""A conversation with a memory: each turn reads what the last one knew and writes what it knows.

The tool itself remembers nothing. What the next turn must know goes to the output `state`; whoever
starts that turn hands it back as the input `state`.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Optional

from wharf_sdk import Fault, File, Result, tool

COST_MICRO = 10
WEATHER = {"san francisco": "foggy", "hamburg": "rainy", "cairo": "sunny"}


@tool
def chat(message: str, state: Optional[File] = None) -> Result:
    """Takes one turn of a conversation; knows what earlier turns left in the state."""
    known = remembered(state)
    response = answer(message, known)
    known["turns"].append({"message": message, "response": response})
    outputs = {"response": response, "state": known, "turn": len(known["turns"])}
    return Result(outputs, cost_micro=COST_MICRO)


def remembered(state: Optional[File]) -> Dict[str, Any]:
    """What the last turn wrote; nothing in the first one."""
    if state is None:
        return {"turns": [], "waiting_for": None}
    try:
        known = json.loads(state.text())
        return {"turns": list(known["turns"]), "waiting_for": known["waiting_for"]}
    except (ValueError, KeyError, TypeError):
        raise Fault("tool.invalid_input", "`state` is not what this tool wrote.") from None


def answer(message: str, known: Dict[str, Any]) -> str:
    """What is said; `known` changes with it."""
    if known["waiting_for"] == "place":
        known["waiting_for"] = None
        sky = WEATHER.get(message.strip().lower(), "whatever you make of it")
        return "The weather in %s is %s." % (message.strip(), sky)
    if "weather" in message.lower():
        known["waiting_for"] = "place"
        return "Where are you?"
    return "You have told me %d things so far." % (len(known["turns"]) + 1)

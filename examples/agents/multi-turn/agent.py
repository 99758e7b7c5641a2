"""A conversation with a memory: each turn reads what the last one knew and writes what it knows.

The agent itself remembers nothing. What it must know in the next turn it writes to the output
`state`; whoever starts the next turn hands it back as the input `state`.
"""

import json

import wharf_agent
from wharf_agent import Failed, Tool

COST_MICRO = 10
WEATHER = {"san francisco": "foggy", "hamburg": "rainy", "cairo": "sunny"}


def remembered(call):
    """What the last turn wrote; nothing in the first one."""
    if "state" not in call.input:
        return {"turns": [], "waiting_for": None}
    with call.open_input("state") as file:
        try:
            state = json.load(file)
            return {"turns": list(state["turns"]), "waiting_for": state["waiting_for"]}
        except (ValueError, KeyError, TypeError):
            raise Failed("tool.invalid_input", "`state` is not what this agent wrote.") from None


def answer(message, state):
    if state["waiting_for"] == "place":
        state["waiting_for"] = None
        sky = WEATHER.get(message.strip().lower(), "whatever you make of it")
        return "The weather in %s is %s." % (message.strip(), sky)
    if "weather" in message.lower():
        state["waiting_for"] = "place"
        return "Where are you?"
    return "You have told me %d things so far." % (len(state["turns"]) + 1)


def chat(call):
    message = call.input["message"]
    state = remembered(call)
    response = answer(message, state)
    state["turns"].append({"message": message, "response": response})
    call.cost_micro = COST_MICRO
    written = call.write_output("state", json.dumps(state, indent=2).encode("utf-8"))
    return {"response": response, "state": written, "turn": len(state["turns"])}


wharf_agent.serve(
    "dev.wharf.multi-turn",
    "0.1.0",
    [
        Tool(
            "chat",
            chat,
            "Takes one turn of a conversation; knows what earlier turns left in the state.",
            {"message": {"type": "string"}, "state": {"type": "string"}},
            required=["message"],
            outputs={"response": {"type": "string"}, "turn": {"type": "integer"}},
        )
    ],
)

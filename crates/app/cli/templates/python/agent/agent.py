"""The agent {{id}}: a process that a core starts, with any number of tools."""

from __future__ import annotations

from typing import Any, Dict

from wharf_sdk import Agent, Call, Fault

agent = Agent("{{id}}", "0.1.0")


@agent.tool(side_effects=False)
def greet(name: str, call: Call) -> Dict[str, Any]:
    "Greets somebody by name."
    if not name.strip():
        raise Fault("{{code}}.no_name", "There is nobody to greet.")
    call.progress(0.5, "thinking of something nice")
    return {"text": "Hello, %s!" % name.strip()}


if __name__ == "__main__":
    agent.run()

"""An agent that does with files and money what it is told to."""

import wharf_agent
from wharf_agent import Failed, Tool


def work(call):
    call.cost_micro = call.input.get("cost", 0)
    text = call.input.get("text", "")
    if "file" in call.input:
        with call.open_input("file") as file:
            text += file.read().decode("utf-8")
    then = call.input.get("then", "give")
    if then == "write":
        written = {name: call.write_output(name, text.encode("utf-8")) for name in call.outputs}
    else:
        written = {name: "%s of %s" % (name, text) for name in call.outputs}
    if then == "wait":
        for name in call.outputs:
            call.write_output(name, text.encode("utf-8"))
        call.log("waiting")
        call.pause(600)
    if then == "fail":
        for name in call.outputs:
            call.write_output(name, text.encode("utf-8"))
        raise Failed("tool.failed", "As told.")
    if then == "forget":
        for name in call.outputs:
            call.write_output(name, text.encode("utf-8"))
        return {}
    return written


wharf_agent.serve(
    "dev.wharf.faulty",
    "0.1.0",
    [
        Tool(
            "work",
            work,
            "Does with files and money what it is told to.",
            {
                "text": {"type": "string"},
                "file": {"type": "string"},
                "then": {"enum": ["give", "write", "wait", "fail", "forget"]},
                "cost": {"type": "number"},
            },
            side_effects=True,
        )
    ],
)

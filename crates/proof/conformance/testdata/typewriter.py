"""Types a text word by word, as a plain handler."""

import time


def entry(payload, emit=None, ctrl=None):
    inputs = payload["inputs"]
    typed = ""
    for word in str(inputs.get("text", "Hello world")).split():
        until = time.monotonic() + inputs.get("delay_ms", 5) / 1000
        while time.monotonic() < until:
            if ctrl is not None and ctrl.is_set():
                return {"status": "error", "cost_micro": 0, "outputs": {}}
            time.sleep(0.005)
        typed = f"{typed} {word}".strip()
        emit({"kind": "Response", "control": {"final": False}, "outputs": {"text": typed}})
        emit({"kind": "Log", "data": {"msg": word}})
    return {"text": typed, "cost_micro": 12.0}

"""What the measured tool server runs: gives a text back, or says many frames."""


def entry(payload, emit=None, ctrl=None):
    inputs = payload["inputs"]
    for number in range(inputs.get("frames", 0)):
        emit({"kind": "Response", "control": {"final": False}, "outputs": {"n": number}})
    return {"text": inputs.get("text", "Hello"), "cost_micro": 0}

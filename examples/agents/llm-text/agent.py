"""Text generation: messages and a model in, growing text out.

The model is a stand-in that needs no key and always says the same; everything around it is as a
real one would have it: text that grows while it is made, tokens that are counted, and a price.
"""

import wharf_agent
from wharf_agent import Failed, Tool

# What a thousand tokens cost, in millionths of a dollar: those that go in, those that come out.
PRICES = {"gpt-4o-mini": (150, 600), "gpt-4o": (2_500, 10_000)}
PAUSE_SECONDS = 0.01


def reply_to(messages):
    """What the stand-in says: the same for the same messages."""
    said = [message["content"] for message in messages if message["role"] == "user"]
    turns = "once" if len(said) == 1 else "%d times" % len(said)
    return "Hi there! You have spoken %s, and your last words were: %s" % (turns, said[-1])


def count(text):
    """A word is a token here."""
    return len(text.split())


def generate(call):
    messages, model = call.input["messages"], call.input["model"]
    if model not in PRICES:
        raise Failed("tool.invalid_input", "`model` must be one of %s." % ", ".join(PRICES))
    if not any(message["role"] == "user" for message in messages):
        raise Failed("tool.invalid_input", "`messages` must hold something that the user says.")
    tokens_in = sum(count(message["content"]) for message in messages)
    tokens_out, response = 0, ""
    price_in, price_out = PRICES[model]
    for word in reply_to(messages).split():
        response = (response + " " + word).strip()
        tokens_out += 1
        # Kept up as it goes: what was made is paid for, also if the rest is not wanted.
        call.cost_micro = -(-(tokens_in * price_in + tokens_out * price_out) // 1000)
        call.partial(response=response)
        call.pause(PAUSE_SECONDS)
    # The text is given inline. If the caller wants it in a file, the core writes it there.
    return {"response": response, "tokens": tokens_in + tokens_out, "finish_reason": "stop"}


MESSAGE = {
    "type": "object",
    "properties": {
        "role": {"enum": ["system", "user", "assistant"]},
        "content": {"type": "string"},
    },
    "required": ["role", "content"],
}

wharf_agent.serve(
    "dev.wharf.llm-text",
    "0.1.0",
    [
        Tool(
            "generate",
            generate,
            "Answers messages with text that grows while it is made.",
            {"messages": {"type": "array", "items": MESSAGE}, "model": {"type": "string"}},
            required=["messages", "model"],
            outputs={
                "response": {"type": "string"},
                "tokens": {"type": "integer"},
                "finish_reason": {"type": "string"},
            },
        )
    ],
)

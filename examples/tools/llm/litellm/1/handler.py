"""Text from a language model: messages or a prompt in, growing text out, with tokens and a price.

It speaks with any server that offers chat as OpenAI does, by the standard library alone. With
`"use": "litellm"` the package of that name does the talking, if it is installed. In mock mode it
needs neither network nor key: it says something that follows from the prompt, word by word.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Dict,
    Generator,
    Iterator,
    List,
    Literal,
    Optional,
    Tuple,
    TypedDict,
)

import prices
from chat import Chat, Delta, Piece, Usage, by_http, by_litellm
from wharf_sdk import Context, Fault, tool
from wharf_sdk.schema import convert

BASE = "https://api.openai.com/v1"
MODEL = "gpt-4o-mini"
SECRET = "OPENAI_API_KEY"
MOCK_PAUSE_SECONDS = 0.01
KEY_MISSING = (
    "There is no key for the provider: keep it with `wharf secret set %s`, write "
    'secrets = ["%s"] into wharf.tool.toml, and add the tool again.' % (SECRET, SECRET)
)


class Message(TypedDict):
    role: str
    content: Any


@tool(stream="response")
def generate(
    context: Context,
    messages: Annotated[Optional[List[Message]], "The conversation so far"] = None,
    prompt: Annotated[Optional[str], "What the user says, instead of messages"] = None,
    model: Annotated[str, "The model's name at the provider"] = MODEL,
    temperature: Annotated[Optional[float], {"minimum": 0, "maximum": 2}] = None,
    max_tokens: Annotated[Optional[int], {"minimum": 1}] = None,
    stop: Optional[List[str]] = None,
    api_base: Annotated[Optional[str], {"x-wharf-literal": True}] = None,
    timeout_s: Annotated[float, "How long the provider may be silent"] = 60.0,
    use: Literal["http", "litellm"] = "http",
    schema: Optional[Literal["v1"]] = None,
    params: Annotated[
        Optional[Dict[str, Any]], "All of the above, for callers of schema v1"
    ] = None,
    strict: Annotated[bool, "Whether also a run that pretends needs a message"] = False,
) -> Generator[str, None, Dict[str, Any]]:
    """Answers messages or a prompt with text that grows while it is made."""
    if params is not None:
        given = dict({"strict": strict}, **checked(params))
        outputs: Dict[str, Any] = yield from generate.__wrapped__(context, **given)
        return outputs
    said = conversation(messages, prompt)
    if not said and (strict or not context.is_mock):
        raise Fault("tool.invalid_input", "There is neither a prompt nor a message.")
    wishes = {"temperature": temperature, "max_tokens": max_tokens, "stop": stop}
    body = {name: value for name, value in wishes.items() if value is not None}
    chat = Chat(dict(body, model=model, messages=said), *reached(api_base), timeout_s)
    if context.is_mock:
        pieces = pretended(said, context)
    elif use == "http" and chat.base == BASE and not chat.key:
        raise Fault("llm.key_missing", KEY_MISSING)
    else:
        pieces = (by_litellm if use == "litellm" else by_http)(chat, context)
    return (yield from told(pieces, model, said, context))


def told(
    pieces: Iterator[Piece], model: str, said: List[Message], context: Context
) -> Generator[str, None, Dict[str, Any]]:
    """Passes text on as it comes; the price is kept up also for a run that breaks off."""
    price = prices.of(model)
    if price is None:
        context.log("The price of %s is not known; the run counts as free." % model, "warn")
    usage: Optional[Usage] = None
    reason, deltas = "stop", 0
    try:
        for piece in pieces:
            if isinstance(piece, Usage):
                usage = piece
            elif piece.text:
                deltas += 1
                yield piece.text
            if isinstance(piece, Delta) and piece.finish_reason:
                reason = piece.finish_reason
    finally:
        if usage is None and deltas:
            # Made is paid for, but the provider did not say how much: a word is about a token.
            usage = Usage(count(said), deltas)
            context.log("The provider told no usage; tokens are estimated.", "warn")
        if usage is not None and price is not None:
            context.cost(prices.cost(usage, price))
    usage = usage or Usage(0, 0)
    return {
        "finish_reason": reason,
        "model": model,
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "tokens": usage.prompt + usage.completion,
    }


def checked(params: Dict[str, Any]) -> Dict[str, Any]:
    """The inputs of schema v1, which come as one object."""
    function = generate.function
    for name in params:
        if name in ("schema", "params") or name not in function.parameters:
            raise Fault("tool.invalid_input", "`params` has no field `%s`." % name)
    kinds = {name: one.annotation for name, one in function.parameters.items()}
    return {name: convert(kinds[name], value, "params." + name) for name, value in params.items()}


def conversation(messages: Optional[List[Message]], prompt: Optional[str]) -> List[Message]:
    """What is sent: the messages, with the prompt as the last of them."""
    said = list(messages or [])
    if prompt is not None:
        said.append({"role": "user", "content": prompt})
    return said


def reached(api_base: Optional[str]) -> Tuple[str, Optional[str]]:
    """Where the provider is, and the key for it. A caller's own address never gets the key."""
    own = (os.environ.get("OPENAI_API_BASE") or BASE).rstrip("/")
    base = (api_base or own).rstrip("/")
    folder = os.environ.get("WHARF_SECRETS_DIR")
    key = None
    if base == own and folder and (Path(folder) / SECRET).is_file():
        key = (Path(folder) / SECRET).read_text("utf-8").strip()
    return base, key


def pretended(said: List[Message], context: Context) -> Iterator[Piece]:
    """What mock mode says: the same for the same messages, with tokens counted by words."""
    last = str(said[-1]["content"]) if said else ""
    words = ("You said: %s" % last[:2000]).split()
    for number, word in enumerate(words):
        yield Delta(word if number == 0 else " " + word, None)
        context.pause(MOCK_PAUSE_SECONDS)
    yield Delta("", "stop")
    yield Usage(count(said), len(words))


def count(said: List[Message]) -> int:
    """About how many tokens messages have."""
    return sum(len(str(message["content"]).split()) for message in said)

"""Chat with a provider, as it is streamed: text, why it ended, and what it used."""

from __future__ import annotations

import email.utils
import http.client
import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any, Dict, Iterator, NamedTuple, Optional, Union

from wharf_sdk import Context, Fault

TRIES_MAX = 4
PAUSE_SECONDS = 0.5
# A provider that wants to be left alone for longer is not waited for.
RETRY_AFTER_SECONDS_MAX = 60.0
LINE_BYTES_MAX = 1 << 20
ERROR_BYTES_MAX = 1 << 16


@dataclass(frozen=True)
class Chat:
    """What is asked, and of whom."""

    body: Dict[str, Any]
    base: str
    key: Optional[str]
    timeout: float


class Delta(NamedTuple):
    """Text that was added, and why it ended if it did."""

    text: str
    finish_reason: Optional[str]


class Usage(NamedTuple):
    """Tokens that went in and came out."""

    prompt: int
    completion: int


Piece = Union[Delta, Usage]


class Again(Exception):
    """The same request may succeed after a pause."""

    def __init__(self, fault: Fault, pause: Optional[float]) -> None:
        super().__init__(fault.message)
        self.fault, self.pause = fault, pause


def by_http(chat: Chat, context: Context) -> Iterator[Piece]:
    """Streams an answer. What fails before it began is tried again."""
    for number in range(1, TRIES_MAX + 1):
        began = False
        try:
            for piece in attempt(chat, context):
                began = began or isinstance(piece, Usage) or bool(piece.text)
                yield piece
            return
        except Again as again:
            if began or number == TRIES_MAX:
                raise again.fault from None
            pause = PAUSE_SECONDS * 2 ** (number - 1) if again.pause is None else again.pause
            if pause > RETRY_AFTER_SECONDS_MAX:
                raise again.fault from None
            context.log("%s It is tried again in %.1f s." % (again.fault.message, pause), "warn")
            context.pause(pause)


def attempt(chat: Chat, context: Context) -> Iterator[Piece]:
    """One request and its answer."""
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
    if chat.key:
        headers["Authorization"] = "Bearer " + chat.key
    options = {"stream": True, "stream_options": {"include_usage": True}}
    data = json.dumps(dict(chat.body, **options)).encode("utf-8")
    try:
        request = urllib.request.Request(chat.base + "/chat/completions", data, headers)
        with urllib.request.urlopen(request, timeout=chat.timeout) as answer:
            yield from streamed(answer, context)
    except urllib.error.HTTPError as refusal:
        with refusal:
            raise refused(refusal, chat) from None
    except (OSError, http.client.HTTPException):
        text = "The provider cannot be reached or fell silent."
        raise Again(Fault("llm.unreachable", text, True), None) from None
    except ValueError:
        raise Fault("tool.invalid_input", "`api_base` is not an address.") from None


def streamed(answer: Any, context: Context) -> Iterator[Piece]:
    """The pieces of an answer, which ends with `[DONE]` and not before."""
    ended = False
    while True:
        context.check()
        line = answer.readline(LINE_BYTES_MAX)
        if not line:
            break
        if not line.startswith(b"data:"):
            continue
        text = line[len(b"data:") :].strip()
        if text == b"[DONE]":
            return
        for piece in pieces_of(text):
            ended = ended or (isinstance(piece, Delta) and piece.finish_reason is not None)
            yield piece
    if not ended:
        raise Again(Fault("llm.stream_cut", "The provider broke off its answer.", True), None)


def pieces_of(text: bytes) -> Iterator[Piece]:
    try:
        chunk = json.loads(text)
    except ValueError:
        raise Fault("llm.answer_invalid", "The provider's answer is not JSON.") from None
    if not isinstance(chunk, dict) or chunk.get("error"):
        raise Fault("llm.refused", "The provider ended its answer with an error.", True)
    for choice in chunk.get("choices") or []:
        delta = choice.get("delta") or {}
        yield Delta(delta.get("content") or "", choice.get("finish_reason"))
    usage = chunk.get("usage")
    if isinstance(usage, dict):
        yield Usage(int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0))


def refused(refusal: urllib.error.HTTPError, chat: Chat) -> Exception:
    """A refusal in our own words; of the provider's only the message is passed on."""
    status, said = refusal.code, message_of(refusal)
    if chat.key and chat.key in said:
        said = ""
    if status == 429:
        fault = Fault("llm.rate_limited", "The provider is asked too often.", True)
        return Again(fault, retry_after(refusal.headers.get("Retry-After")))
    if status >= 500 or status == 408:
        fault = Fault("llm.unavailable", "The provider answered %d." % status, True)
        return Again(fault, retry_after(refusal.headers.get("Retry-After")))
    if status in (401, 403):
        if chat.key:
            return Fault("llm.unauthorized", "The provider did not take the key.")
        return Fault("llm.key_missing", "There is no key for the provider: see the tool's page.")
    return Fault("llm.refused", said or "The provider answered %d." % status)


def message_of(refusal: urllib.error.HTTPError) -> str:
    try:
        error = json.loads(refusal.read(ERROR_BYTES_MAX))["error"]
        return " ".join(str(error["message"]).split())[:500]
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return ""


def retry_after(value: Optional[str]) -> Optional[float]:
    """When to try again: seconds, or a date."""
    if value is None:
        return None
    try:
        return max(float(value), 0.0)
    except ValueError:
        pass
    try:
        return max(email.utils.parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError):
        return None


def by_litellm(chat: Chat, context: Context) -> Iterator[Piece]:
    """The same by the package `litellm`, which knows many providers."""
    try:
        import litellm
    except ImportError:
        text = "The package litellm is not installed where this tool runs."
        raise Fault("llm.litellm_missing", text) from None
    options = {"stream": True, "stream_options": {"include_usage": True}}
    more = {"api_key": chat.key} if chat.key else {}
    try:
        answer = litellm.completion(**chat.body, **options, **more, timeout=chat.timeout)
        for chunk in answer:
            context.check()
            for choice in chunk.choices:
                yield Delta(choice.delta.content or "", choice.finish_reason)
            usage = getattr(chunk, "usage", None)
            if usage is not None:
                yield Usage(usage.prompt_tokens, usage.completion_tokens)
    except litellm.exceptions.RateLimitError:
        raise Fault("llm.rate_limited", "The provider is asked too often.", True) from None
    except litellm.exceptions.AuthenticationError:
        raise Fault("llm.unauthorized", "The provider did not take the key.") from None

"""Judges values before they leave the worker: what they hold, how deep, how large.

A message names the output, never its value.
"""

from __future__ import annotations

import math
from typing import Any, Mapping

from ..fault import Fault, clip

LINE_BYTES_MAX = 8 << 20
# Room for what stands around outputs in a message.
AROUND_BYTES = 1 << 10
HANDLER = "ERR_HANDLER"
LIMIT = "ERR_LIMIT"
# Deeper values are refused by the server's JSON reader.
DEPTH_MAX = 100
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**64 - 1
BINARY = (bytes, bytearray, memoryview)


class Judge:
    """Judges the outputs of one message, which share one limit of bytes."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._left = bytes_max

    def outputs(self, outputs: Mapping[Any, Any]) -> None:
        """Raises `Fault` that names the first output that cannot be sent."""
        for key, value in outputs.items():
            if not isinstance(key, str):
                text = "The handler named an output with a %s instead of a string."
                raise Fault(HANDLER, text % type(key).__name__)
            self._value(clip(key), value, 1)

    def _value(self, key: str, value: Any, depth: int) -> None:
        if value is None or value is True or value is False:
            self._spend(key, 4)
        elif isinstance(value, str):
            self._text(key, value)
        elif isinstance(value, int):
            self._spend(key, 1)
            if not INTEGER_MIN <= value <= INTEGER_MAX:
                raise _unfit(key, "holds a whole number that does not fit into 64 bits")
        elif isinstance(value, float):
            self._spend(key, 3)
            if not math.isfinite(value):
                raise _unfit(key, "holds a number that JSON cannot express (NaN or infinite)")
        elif isinstance(value, (dict, list, tuple)):
            self._many(key, value, depth)
        elif isinstance(value, BINARY):
            raise _unfit(key, "holds bytes, which only an output with a place of its own can be")
        else:
            kind = clip(type(value).__name__)
            raise _unfit(key, "holds a value of type %s, which JSON cannot express" % kind)

    def _many(self, key: str, value: Any, depth: int) -> None:
        if depth > DEPTH_MAX:
            raise _unfit(key, "is nested deeper than %d levels, or contains itself" % DEPTH_MAX)
        self._spend(key, 2)
        if not isinstance(value, dict):
            for one in value:
                self._value(key, one, depth + 1)
            return
        for name, one in value.items():
            if isinstance(name, str):
                self._text(key, name)
            elif not isinstance(name, int) or isinstance(name, bool):
                raise _unfit(key, "has an object whose names are not all strings")
            self._value(key, one, depth + 1)

    def _text(self, key: str, text: str) -> None:
        self._spend(key, len(text) + 2)
        if not text.isascii():
            try:
                text.encode("utf-8")
            except UnicodeEncodeError:
                raise _unfit(key, "holds text that is not Unicode") from None

    def _spend(self, key: str, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise too_large(key, self._bytes_max)


def too_large(key: str, bytes_max: int) -> Fault:
    """Why an output cannot be sent inline."""
    text = "The output `%s` makes the answer larger than %d bytes; give it a place of its own."
    return Fault(LIMIT, text % (key, bytes_max))


def _unfit(key: str, why: str) -> Fault:
    return Fault(HANDLER, "The output `%s` %s." % (key, why))

"""How a tool says that it did not succeed, in words meant for whoever called it."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional


class Fault(Exception):
    """A failure that the caller is meant to read: a stable code and one clear sentence.

    Any other exception reaches the caller as the name of its class and nothing else, so that no
    path, address or secret leaks by accident.
    """

    def __init__(
        self,
        code: str,
        message: str,
        retryable: bool = False,
        details: Optional[Mapping[str, Any]] = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
        self.details = dict(details or {})

    def __str__(self) -> str:
        return self.message

    def to_json(self) -> Dict[str, Any]:
        """The failure as an error object of the wire."""
        error: Dict[str, Any] = {"code": self.code, "message": self.message}
        if self.retryable:
            error["retryable"] = True
        if self.details:
            error["details"] = self.details
        return error


class InvalidInput(Fault):
    """An input that does not fit what the tool takes."""

    def __init__(self, message: str) -> None:
        super().__init__("tool.invalid_input", message)


def clip(text: str, characters_max: int = 80) -> str:
    """Text as it may stand in a sentence."""
    return "".join(c if c.isprintable() else "?" for c in text[:characters_max])


class Canceled(Exception):
    """The run was called off. Let it pass: it ends the run as canceled."""

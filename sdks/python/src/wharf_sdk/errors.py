"""What can go wrong when a core is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Optional

if TYPE_CHECKING:
    from .models import Run


class WharfError(Exception):
    """A core's refusal, or no core at all. Each `code` has a page under docs/errors."""

    def __init__(
        self,
        code: str,
        message: str,
        retryable: bool = False,
        details: Optional[Mapping[str, Any]] = None,
        status: int = 0,
    ) -> None:
        super().__init__("%s: %s" % (code, message))
        self.code = code
        self.message = message
        self.retryable = retryable
        self.details = dict(details or {})
        self.status = status

    @classmethod
    def from_json(cls, error: Mapping[str, Any], status: int = 0) -> WharfError:
        """An error as the core tells it."""
        return cls(
            str(error.get("code", "unknown")),
            str(error.get("message", "")),
            bool(error.get("retryable", False)),
            error.get("details") or {},
            status,
        )


class RunFailed(WharfError):
    """A run that is over and did not succeed; `run` is all there is to know of it."""

    def __init__(self, run: Run) -> None:
        error = run.error
        if error is None:
            super().__init__("run." + run.status, "The run is %s." % run.status)
        else:
            super().__init__(error.code, error.message, error.retryable, error.details)
        self.run = run


class CoreAway(WharfError):
    """No core answers, or none in time."""

    def __init__(self, message: str) -> None:
        super().__init__("core.unreachable", message, retryable=True)

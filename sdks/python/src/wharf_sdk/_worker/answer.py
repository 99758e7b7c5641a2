"""What a handler gave back, in any of the forms that handlers use."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional

from ..fault import Fault, clip
from .values import HANDLER, INTEGER_MAX, INTEGER_MIN

# What may stand beside outputs in an envelope that has no status.
ENVELOPE = frozenset(["kind", "control", "run_id", "status", "cost_micro", "final", "outputs", "error"])
MESSAGE_CHARACTERS_MAX = 1000
CODE_CHARACTERS_MAX = 64


@dataclass
class Answer:
    """Outputs or a fault, and the cost as the handler gave it."""

    outputs: Dict[str, Any]
    cost: Any = None
    fault: Optional[Fault] = None


def read(given: Any) -> Answer:
    """Reads a full Response, an envelope, or outputs with `cost_micro` among them."""
    if not isinstance(given, Mapping):
        kind = "nothing" if given is None else "a value of type " + clip(type(given).__name__)
        return Answer({}, None, Fault(HANDLER, "The handler returned %s instead of outputs." % kind))
    control = given.get("control")
    if given.get("kind") == "Response" or (isinstance(control, Mapping) and "outputs" in given):
        inner = control if isinstance(control, Mapping) else {}
        return _enveloped({**given, **inner})
    if _is_envelope(given):
        return _enveloped(given)
    outputs = dict(given)
    cost = outputs.pop("cost_micro", None)
    return Answer(outputs, cost)


def says_how_it_went(given: Mapping[str, Any]) -> bool:
    """Whether outputs are an envelope: a status with outputs or an error, whatever else it holds."""
    if given.get("status") not in ("success", "error"):
        return False
    return isinstance(given.get("outputs"), Mapping) or bool(_reported(given.get("error")))


def _is_envelope(given: Mapping[str, Any]) -> bool:
    if says_how_it_went(given):
        return True
    return all(key in ENVELOPE for key in given) and isinstance(given.get("outputs"), Mapping)


def _reported(error: Any) -> Any:
    """An error that says something; an empty one reports none."""
    return error if isinstance(error, (Mapping, str)) and error else None


def _enveloped(given: Mapping[str, Any]) -> Answer:
    outputs, cost, error = given.get("outputs"), given.get("cost_micro"), given.get("error")
    status = given.get("status", "success")
    # A reported error is never a success, whatever the status says.
    if status == "error" or _reported(error):
        return Answer({}, cost, _fault(error))
    if status != "success":
        return Answer({}, cost, Fault(HANDLER, "The handler's status is neither success nor error."))
    if outputs is None:
        outputs = {}
    if not isinstance(outputs, Mapping):
        return Answer({}, cost, Fault(HANDLER, "The handler's outputs are not an object."))
    return Answer(dict(outputs), cost)


def _fault(error: Any) -> Fault:
    given = error if isinstance(error, Mapping) else {"message": error}
    return Fault(safe_code(given.get("code")), safe_text(given.get("message", "")))


def safe_code(code: Any) -> str:
    """A code that can stand in a Response."""
    text = str(code)[:CODE_CHARACTERS_MAX] if isinstance(code, str) else ""
    return text if text and all(c.isalnum() or c in "_.-" for c in text) else "UNKNOWN"


def safe_text(message: Any) -> str:
    """A message that can stand in a Response: text on one line, of bounded length."""
    text = message if isinstance(message, str) else ""
    text = text[:MESSAGE_CHARACTERS_MAX].encode("utf-8", "replace").decode("utf-8")
    return " ".join(text.split())


def wire_cost(cost: Any) -> Any:
    """A cost as JSON can hold it. What is no number becomes text, which the server refuses."""
    if cost is None:
        return None
    if isinstance(cost, int) and not isinstance(cost, bool) and INTEGER_MIN <= cost <= INTEGER_MAX:
        return int(cost)
    if isinstance(cost, float) and math.isfinite(cost):
        return float(cost)
    return clip(type(cost).__name__)

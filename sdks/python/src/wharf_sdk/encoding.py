"""Values as JSON has them: what a tool gives, and what stands in a schema as a default."""

from __future__ import annotations

import datetime
import decimal
import enum
import math
import uuid
from pathlib import Path
from typing import Any, Dict, Mapping

from .fault import Fault
from .files import File

BINARY = (bytes, bytearray, memoryview, Path, File)


def to_json(value: Any, name: str) -> Any:
    """A value as JSON has it; a `Fault` names the output that has none."""
    if isinstance(value, enum.Enum):
        return to_json(value.value, name)
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise Fault("tool.invalid_output", "The output `%s` holds a number that JSON lacks." % name)
    if isinstance(value, Mapping):
        return {str(to_json(key, name)): to_json(one, name) for key, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_json(one, name) for one in value]
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return duration_text(value)
    if isinstance(value, (decimal.Decimal, uuid.UUID)):
        return str(value)
    if is_model(value):
        return to_json(value.model_dump(mode="json", by_alias=True), name)
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        fields = value.__dataclass_fields__
        return {field: to_json(getattr(value, field), name) for field in fields}
    if isinstance(value, BINARY):
        text = "The output `%s` is a file; the run has to say where it goes." % name
        raise Fault("tool.invalid_output", text)
    raise Fault("tool.invalid_output", "The output `%s` is nothing that JSON has." % name)


def is_model(value: Any) -> bool:
    """Whether it is an instance of a pydantic model. Pydantic need not be installed."""
    return hasattr(type(value), "__pydantic_validator__") and hasattr(value, "model_dump")


def fields_of_model(model: Any) -> Dict[str, Any]:
    """The fields of a pydantic model by name, as JSON but for those that are files."""
    names = type(model).model_fields
    files = {one: getattr(model, one) for one in names if isinstance(getattr(model, one), BINARY)}
    fields: Dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude=set(files))
    for one, value in files.items():
        fields[names[one].serialization_alias or names[one].alias or one] = value
    return fields


def duration_text(span: datetime.timedelta) -> str:
    """A span of time as ISO 8601 has it, such as `P1DT2H30M` or `PT1.5S`."""
    sign, span = ("-", -span) if span < datetime.timedelta() else ("", span)
    minutes, seconds = divmod(span.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    second = "%d" % seconds
    if span.microseconds:
        second += (".%06d" % span.microseconds).rstrip("0")
    day = "%dD" % span.days if span.days else ""
    parts = ((hours, "%dH" % hours), (minutes, "%dM" % minutes), (second != "0", second + "S"))
    rest = "".join(text for there, text in parts if there)
    if not day and not rest:
        return "PT0S"
    return "%sP%s%s" % (sign, day, "T" + rest if rest else "")

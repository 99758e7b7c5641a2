"""Types of pydantic, version 2. It need not be installed: a tool that uses it has imported it."""

from __future__ import annotations

import json
import sys
from typing import Any, Dict, List, Optional

from .fault import InvalidInput, clip
from .forms import Form
from .schema import Book, Schema

MESSAGE_CHARACTERS_MAX = 300
# How many of the problems of one value are told.
PROBLEMS_MAX = 3


class ModelForm(Form):
    """A type that pydantic checks, by its own rules."""

    def __init__(self, annotation: Any, name: str = "") -> None:
        self._adapter, self._name = _library().TypeAdapter(annotation), name

    def schema(self, book: Book) -> Schema:
        mode = "serialization" if book.outputs else "validation"
        schema = self._adapter.json_schema(mode=mode, ref_template="#/$defs/{model}")
        return book.adopt(schema, self._name)

    def convert(self, value: Any, name: str) -> Any:
        try:
            # As JSON: strict models, too, take a date from a text there.
            return self._adapter.validate_json(json.dumps(value))
        except _library().ValidationError as problem:
            raise InvalidInput(_sentences(problem, name)) from None


def form(annotation: Any) -> Optional[Form]:
    """The form of a model or dataclass of pydantic; nothing if it is none."""
    if not isinstance(annotation, type):
        annotation_class = getattr(annotation, "__origin__", None)
        if not hasattr(annotation_class, "__pydantic_validator__"):
            return None
    elif not hasattr(annotation, "__pydantic_validator__"):
        if hasattr(annotation, "__fields__") and hasattr(annotation, "parse_obj"):
            text = "%s is a model of pydantic 1; tools take those of pydantic 2."
            raise TypeError(text % annotation.__name__)
        return None
    return ModelForm(annotation, getattr(annotation, "__name__", ""))


def other(annotation: Any) -> Optional[Form]:
    """The form of any other type that pydantic knows, such as an address or a path of its own."""
    if not is_of_pydantic(annotation) and not hasattr(
        annotation, "__get_pydantic_core_schema__"
    ):
        return None
    return whole(annotation)


def whole(annotation: Any) -> Optional[Form]:
    """The form of an annotation that pydantic understands as a whole."""
    pydantic = _library()
    if pydantic is None:
        return None
    try:
        return ModelForm(annotation)
    except pydantic.PydanticUserError:
        return None


def is_field(value: Any) -> bool:
    """Whether it is what `Field(...)` gives."""
    return type(value).__name__ == "FieldInfo" and is_of_pydantic(value)


def is_general(value: Any) -> bool:
    """Whether it holds constraints by name, as `Field(pattern=...)` keeps them."""
    return "GeneralMetadata" in type(value).__name__ and is_of_pydantic(value)


def is_of_pydantic(value: Any) -> bool:
    """Whether it, or its class, is pydantic's."""
    kind = value if isinstance(value, type) else type(value)
    return kind.__module__.partition(".")[0] in ("pydantic", "pydantic_core")


def is_left_out(default: Any) -> bool:
    """Whether the default of a `Field` says that there is none."""
    return default is Ellipsis or type(default).__name__ == "PydanticUndefinedType"


def _library() -> Any:
    return sys.modules.get("pydantic")


def _sentences(problem: Any, name: str) -> str:
    errors: List[Dict[str, Any]] = problem.errors(
        include_url=False, include_context=False, include_input=False
    )
    said = [_sentence(error, name) for error in errors[:PROBLEMS_MAX]]
    if len(errors) > len(said):
        said.append("There are %d more problems." % (len(errors) - len(said)))
    return " ".join(said)


def _sentence(error: Dict[str, Any], name: str) -> str:
    steps = list(error["loc"])
    last = steps[-1] if steps else None
    if error["type"] == "extra_forbidden" and isinstance(last, str):
        return "`%s` has no field `%s`." % (_place(name, steps[:-1]), clip(last))
    place = _place(name, steps)
    if error["type"] == "missing":
        return "`%s` is missing." % place
    text = clip(str(error["msg"]), MESSAGE_CHARACTERS_MAX).strip().rstrip(".")
    if text.startswith("Input should "):
        return "`%s` must %s." % (place, text[len("Input should ") :])
    for prefix in ("Value error, ", "Assertion failed, "):
        if text.startswith(prefix):
            text = text[len(prefix) :]
    return "`%s` is refused: %s." % (place, text)


def _place(name: str, steps: List[Any]) -> str:
    for step in steps:
        name += "[%d]" % step if isinstance(step, int) else ".%s" % clip(str(step))
    return name

"""What `Annotated` adds: descriptions, words of JSON Schema, and constraints.

Constraints are known by their attributes, not by their classes: those of `annotated-types`, and
`Field` of pydantic, which need not be installed.
"""

from __future__ import annotations

import dataclasses
import re
import typing
from typing import Any, Callable, Dict, List, Mapping, Optional

from . import _pydantic
from .fault import InvalidInput
from .forms import Form, form_of, listed
from .schema import Book, Schema

BOUNDS = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern")
SAID = ("title", "description", "examples", "deprecated")
NUMBERS = {
    "gt": "exclusiveMinimum",
    "ge": "minimum",
    "lt": "exclusiveMaximum",
    "le": "maximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
}
LENGTHS = {
    "string": ("minLength", "maxLength", "characters"),
    "array": ("minItems", "maxItems", "values"),
    "object": ("minProperties", "maxProperties", "fields"),
}


@dataclasses.dataclass
class Words:
    """All that is added to one annotation."""

    bounds: Dict[str, Any] = dataclasses.field(default_factory=dict)
    said: Dict[str, Any] = dataclasses.field(default_factory=dict)
    written: Schema = dataclasses.field(default_factory=dict)
    predicates: List[Callable[[Any], Any]] = dataclasses.field(default_factory=list)
    is_foreign: bool = False

    def add(self, extra: Any) -> None:
        """Takes what stands in `Annotated` beside the type."""
        if isinstance(extra, str):
            self.said["description"] = extra
        elif isinstance(extra, Mapping):
            self.written.update(extra)
        elif _pydantic.is_field(extra):
            self._field(extra)
        elif _pydantic.is_general(extra):
            self._general(vars(extra))
        elif _pydantic.is_of_pydantic(extra):
            self.is_foreign = True
        elif isinstance(getattr(extra, "documentation", None), str):
            self.said["description"] = extra.documentation
        elif callable(getattr(extra, "func", None)):
            self.predicates.append(extra.func)
        else:
            found = {name: getattr(extra, name, None) for name in BOUNDS}
            self.bounds.update({name: one for name, one in found.items() if one is not None})

    def _field(self, field: Any) -> None:
        for name in SAID:
            value = getattr(field, name, None)
            if value is not None:
                self.said[name] = value
        more = getattr(field, "json_schema_extra", None)
        if isinstance(more, Mapping):
            self.written.update(more)
        self.is_foreign |= getattr(field, "discriminator", None) is not None
        for one in field.metadata:
            self.add(one)

    def _general(self, given: Mapping[str, Any]) -> None:
        for name, value in given.items():
            if name in BOUNDS:
                self.bounds[name] = value
            elif value is not None:
                self.is_foreign = True

    def schema(self, schema: Schema) -> Schema:
        """The schema of the type, with all of it."""
        schema = dict(schema)
        kind = _kind(schema)
        for name, value in self.bounds.items():
            if name in ("min_length", "max_length"):
                words = LENGTHS.get(kind, LENGTHS["string"])
                schema[words[0] if name == "min_length" else words[1]] = value
            elif name == "pattern":
                schema["pattern"] = getattr(value, "pattern", value)
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                schema[NUMBERS[name]] = value
        schema.update(self.said)
        schema.update(self.written)
        return schema

    def check(self, value: Any, given: Any, name: str) -> None:
        """Refuses a value that does not keep to it."""
        if value is None:
            return
        for bound, limit in self._all().items():
            why = _broken(bound, limit, value, given)
            if why:
                raise InvalidInput("`%s` must %s." % (name, why))
        if "enum" in self.written and given not in self.written["enum"]:
            text = "`%s` must be one of %s."
            raise InvalidInput(text % (name, listed(self.written["enum"])))
        for predicate in self.predicates:
            if not predicate(value):
                text = "`%s` is refused by %s."
                raise InvalidInput(text % (name, getattr(predicate, "__name__", "its check")))

    def _all(self) -> Dict[str, Any]:
        """Its bounds, and the words of JSON Schema that say the same."""
        bounds = dict(self.bounds)
        for name, word in NUMBERS.items():
            if word in self.written:
                bounds[name] = self.written[word]
        for least, most, _ in LENGTHS.values():
            for name, word in (("min_length", least), ("max_length", most)):
                if word in self.written:
                    bounds[name] = self.written[word]
        return bounds


class AnnotatedForm(Form):
    """A form with constraints."""

    def __init__(self, base: Any, words: Words) -> None:
        self._base, self._words = form_of(base), words

    def schema(self, book: Book) -> Schema:
        return self._words.schema(self._base.schema(book))

    def convert(self, value: Any, name: str) -> Any:
        converted = self._base.convert(value, name)
        self._words.check(converted, value, name)
        return converted


def words_of(extras: typing.Iterable[Any]) -> Words:
    """What stands in `Annotated` beside the type."""
    words = Words()
    for extra in extras:
        if _is_group(extra):
            for one in extra:
                words.add(one)
        else:
            words.add(extra)
    return words


def annotated(annotation: Any) -> Form:
    """The form of an annotated type. What only pydantic understands is left to it."""
    base, *extras = typing.get_args(annotation)
    words = words_of(extras)
    foreign = _pydantic.whole(annotation) if words.is_foreign else None
    return foreign if foreign is not None else AnnotatedForm(base, words)


def _is_group(extra: Any) -> bool:
    """Whether it stands for several constraints, as `Interval` and `Len` do."""
    return hasattr(extra, "__is_annotated_types_grouped_metadata__")


def _kind(schema: Schema) -> str:
    """The type that lengths are about."""
    for one in [schema, *schema.get("anyOf", [])]:
        if one.get("type") not in (None, "null"):
            return str(one["type"])
    return "object" if "$ref" in schema else "string"


def _broken(bound: str, limit: Any, value: Any, given: Any) -> Optional[str]:
    """What a value must do that it does not; nothing if it keeps to a bound."""
    shown = limit if not hasattr(limit, "isoformat") else limit.isoformat()
    if bound in ("min_length", "max_length"):
        if not hasattr(value, "__len__"):
            return None
        kind = "string" if isinstance(value, (str, bytes)) else "array"
        what = LENGTHS["object" if isinstance(value, dict) else kind][2]
        have = "have" if what != "values" else "hold"
        if bound == "min_length" and len(value) < limit:
            return "%s at least %s %s" % (have, shown, what)
        if bound == "max_length" and len(value) > limit:
            return "not %s more than %s %s" % (have, shown, what)
        return None
    if bound == "pattern":
        if isinstance(given, str) and not re.search(limit, given):
            return "match %s" % getattr(limit, "pattern", limit)
        return None
    try:
        return _out_of_order(bound, limit, value, shown)
    except TypeError:  # A bound says nothing of what it cannot be compared with.
        return None


def _out_of_order(bound: str, limit: Any, value: Any, shown: Any) -> Optional[str]:
    if isinstance(value, (bool, str)) and not isinstance(limit, type(value)):
        return None
    if bound == "ge" and value < limit:
        return "not be less than %s" % shown
    if bound == "gt" and value <= limit:
        return "be more than %s" % shown
    if bound == "le" and value > limit:
        return "not be more than %s" % shown
    if bound == "lt" and value >= limit:
        return "be less than %s" % shown
    if bound == "multiple_of" and value % limit:
        return "be a multiple of %s" % shown
    return None

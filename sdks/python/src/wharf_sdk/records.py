"""Records: dataclasses, dictionaries with typed fields, and named tuples."""

from __future__ import annotations

import dataclasses
import functools
import json
import sys
import typing
from typing import Any, Callable, Dict, Optional

from . import docstring
from .encoding import to_json
from .fault import Fault, InvalidInput
from .forms import Choice, Form, TupleForm, expect, form_of
from .schema import Book, Schema

# Larger defaults are left out of schemas.
DEFAULT_CHARACTERS_MAX = 1000
MARKS = ("Required", "NotRequired", "ReadOnly")


@dataclasses.dataclass(frozen=True)
class Field:
    """One field of a record."""

    name: str
    annotation: Any
    required: bool
    default: Any = None
    description: str = ""

    def schema(self, book: Book) -> Schema:
        """What it may be."""
        schema = form_of(self.annotation).schema(book)
        if self.description:
            schema.setdefault("description", self.description)
        add_default(schema, self.default)
        return schema


class RecordForm(Form):
    """A record whose fields have types of their own."""

    def __init__(self, annotation: Any, kind: Any) -> None:
        self._annotation, self._kind = annotation, kind
        self._is_dict = is_typed_dict(kind)

    @functools.cached_property
    def fields(self) -> Dict[str, Field]:
        """Its fields, by name."""
        read = _fields_of_dict if self._is_dict else _fields_of_dataclass
        return {field.name: field for field in read(self._kind, _hints(self._annotation))}

    def schema(self, book: Book) -> Schema:
        return book.named(self._annotation, self._kind.__name__, lambda: self._record(book))

    def _record(self, book: Book) -> Schema:
        fields = self.fields
        schema: Schema = {"type": "object"}
        said = "" if _is_generated(self._kind) else docstring.summary(self._kind.__doc__)
        if said:
            schema["description"] = said
        schema["properties"] = {name: field.schema(book) for name, field in fields.items()}
        required = [name for name, field in fields.items() if field.required]
        if required:
            schema["required"] = required
        if not self._is_dict and not book.outputs:
            schema["additionalProperties"] = False
        return schema

    def convert(self, value: Any, name: str) -> Any:
        expect(isinstance(value, dict), value, name, "an object")
        fields = self.fields
        for field in fields.values():
            if field.required and field.name not in value:
                raise InvalidInput("`%s.%s` is missing." % (name, field.name))
        made: Dict[str, Any] = {}
        for key, one in value.items():
            if key in fields:
                made[key] = form_of(fields[key].annotation).convert(one, "%s.%s" % (name, key))
            elif self._is_dict:
                made[key] = one
            else:
                raise InvalidInput("`%s` has no field `%s`." % (name, key))
        if self._is_dict:
            return made
        make: Callable[..., Any] = self._kind
        try:
            return make(**made)
        except ValueError as problem:  # What the record's own checks say.
            text = " ".join(str(problem).split()).rstrip(".")
            raise InvalidInput("`%s` is refused: %s." % (name, text)) from None

    def claims(self, value: Any) -> bool:
        """Whether a field that may have one value only, as a tag, has that value."""
        if not isinstance(value, dict):
            return False
        for field in self.fields.values():
            form = form_of(field.annotation)
            if isinstance(form, Choice) and len(form.values) == 1:
                return bool(value.get(field.name) == form.values[0])
        return False


def form(annotation: Any, origin: Any) -> Optional[Form]:
    """The form of a record; nothing if it is none."""
    kind = origin or annotation
    if is_typed_dict(kind) or (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        return RecordForm(annotation, kind)
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        hints = typing.get_type_hints(kind, include_extras=True)
        items = [hints.get(name, Any) for name in kind._fields]
        return TupleForm(items, lambda values: kind(*values))
    return None


def is_typed_dict(kind: Any) -> bool:
    """Whether it is a dictionary with typed fields."""
    return isinstance(kind, type) and issubclass(kind, dict) and hasattr(kind, "__total__")


def add_default(schema: Schema, default: Any) -> None:
    """Says what is taken when nothing is given, if JSON can say it in short."""
    if default is None:
        return
    try:
        value = to_json(default, "default")
        if len(json.dumps(value, allow_nan=False)) <= DEFAULT_CHARACTERS_MAX:
            schema["default"] = value
    except (Fault, ValueError, TypeError):
        pass


def _fields_of_dict(kind: Any, hints: Dict[str, Any]) -> typing.Iterator[Field]:
    said = docstring.parameters(kind.__doc__)
    for name, hint in hints.items():
        required = name in kind.__required_keys__
        # A mark on the field itself counts also where annotations are texts.
        while getattr(typing.get_origin(hint), "_name", None) in MARKS:
            mark = typing.get_origin(hint)._name
            required = mark == "Required" if mark != "ReadOnly" else required
            hint = typing.get_args(hint)[0]
        yield Field(name, hint, required, description=said.get(name, ""))


def _fields_of_dataclass(kind: Any, hints: Dict[str, Any]) -> typing.Iterator[Field]:
    missing = dataclasses.MISSING
    said = {} if _is_generated(kind) else docstring.parameters(kind.__doc__)
    for field in dataclasses.fields(kind):
        if not field.init:
            continue
        default = None if field.default is missing else field.default
        if field.default_factory in (list, dict, set):
            default = field.default_factory()
        required = field.default is missing and field.default_factory is missing
        description = str(field.metadata.get("description", "")) or said.get(field.name, "")
        yield Field(field.name, hints[field.name], required, default, description)


def _is_generated(kind: Any) -> bool:
    """Whether its documentation is only its signature."""
    return (kind.__doc__ or "").startswith(kind.__name__ + "(")


def _hints(annotation: Any) -> Dict[str, Any]:
    """The types of fields, with type variables replaced by what they stand for."""
    kind = typing.get_origin(annotation) or annotation
    module = vars(sys.modules.get(kind.__module__, typing))
    # A class that stands within a function may still name itself.
    itself = None if kind.__name__ in module else {kind.__name__: kind}
    try:
        hints = typing.get_type_hints(kind, localns=itself, include_extras=True)
    except NameError as error:
        text = "%s: an annotation names what is not there: %s."
        raise TypeError(text % (kind.__name__, error)) from None
    parameters = getattr(kind, "__parameters__", ())
    bound = dict(zip(parameters, typing.get_args(annotation)))
    return {name: _bound(hint, bound) for name, hint in hints.items()} if bound else hints


def _bound(hint: Any, bound: Dict[Any, Any]) -> Any:
    if isinstance(hint, typing.TypeVar):
        return bound.get(hint, hint)
    open_ones = getattr(hint, "__parameters__", ())
    return hint[tuple(bound.get(one, one) for one in open_ones)] if open_ones else hint

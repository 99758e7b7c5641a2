"""What annotations stand for: each form knows its JSON Schema and takes JSON values."""

from __future__ import annotations

import collections
import collections.abc
import datetime
import decimal
import enum
import json
import math
import re
import types
import typing
import uuid
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Tuple, Union

from .fault import InvalidInput
from .files import File
from .schema import Book, Schema

UNIONS: Tuple[Any, ...] = (Union, getattr(types, "UnionType", Union))
LISTS = (
    list,
    collections.deque,
    collections.abc.Sequence,
    collections.abc.MutableSequence,
    collections.abc.Collection,
    collections.abc.Iterable,
)
SETS = (set, frozenset, collections.abc.Set, collections.abc.MutableSet)
MAPPINGS = (
    dict,
    collections.OrderedDict,
    collections.defaultdict,
    collections.abc.Mapping,
    collections.abc.MutableMapping,
)
DURATION = re.compile(
    r"(-)?P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,6})?)S)?)?\Z"
)
KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
WORDS = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


class Form:
    """What an annotation lets through."""

    def schema(self, book: Book) -> Schema:
        """It as JSON Schema."""
        raise NotImplementedError

    def convert(self, value: Any, name: str) -> Any:
        """A JSON value as the annotation wants it; `InvalidInput` names what does not fit."""
        raise NotImplementedError

    def key(self, text: str, name: str) -> Any:
        """The name of a field of an object, as the annotation wants it."""
        try:
            return self.convert(text, name)
        except InvalidInput:
            try:
                return self.convert(json.loads(text), name)
            except ValueError:
                return self.convert(text, name)


class Anything(Form):
    """No restriction."""

    def schema(self, book: Book) -> Schema:
        return {}

    def convert(self, value: Any, name: str) -> Any:
        return value


class Plain(Form):
    """A type that JSON has, or bytes that are given as text."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def schema(self, book: Book) -> Schema:
        return {"type": KINDS.get(self._kind, "string")}

    def convert(self, value: Any, name: str) -> Any:
        kind = self._kind
        if kind is type(None):
            return expect(value is None, value, name, "null")
        if kind is bytes:
            text: str = expect(isinstance(value, str), value, name, WORDS[str])
            return text.encode("utf-8")
        if kind is float:
            # A whole number is a number; a boolean is neither in JSON.
            fits = isinstance(value, (int, float)) and not isinstance(value, bool)
            expect(fits and math.isfinite(value), value, name, WORDS[float])
            return float(value)
        if kind is int and isinstance(value, float) and value.is_integer():
            return int(value)
        fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        return expect(fits, value, name, WORDS[kind])


class Text(Form):
    """A type that is given as text of a certain format."""

    def __init__(self, form: str, what: str, read: Callable[[str], Any]) -> None:
        self._form, self._what, self._read = form, what, read

    def schema(self, book: Book) -> Schema:
        return {"type": "string", "format": self._form}

    def convert(self, value: Any, name: str) -> Any:
        if isinstance(value, str):
            try:
                return self._read(value)
            except (ValueError, OverflowError):
                pass
        raise InvalidInput("`%s` must be %s." % (name, self._what))


class Exact(Form):
    """A decimal number: a number, or text that keeps every digit."""

    def schema(self, book: Book) -> Schema:
        if book.outputs:
            return {"type": "string"}
        text = {"type": "string", "pattern": r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"}
        return {"anyOf": [{"type": "number"}, text]}

    def convert(self, value: Any, name: str) -> Any:
        try:
            if isinstance(value, (str, int, float)) and not isinstance(value, bool):
                number = decimal.Decimal(repr(value) if isinstance(value, float) else value)
                if number.is_finite():
                    return number
        except decimal.InvalidOperation:
            pass
        raise InvalidInput("`%s` must be a decimal number." % name)


class ListForm(Form):
    """Any number of values of one kind."""

    def __init__(self, make: Callable[[List[Any]], Any], item: Any) -> None:
        self._make, self._item = make, form_of(item)

    def schema(self, book: Book) -> Schema:
        items = self._item.schema(book)
        return {"type": "array", "items": items} if items else {"type": "array"}

    def convert(self, value: Any, name: str) -> Any:
        expect(isinstance(value, list), value, name, "a list")
        convert = self._item.convert
        return self._make([convert(one, "%s[%d]" % (name, at)) for at, one in enumerate(value)])


class SetForm(ListForm):
    """Values of one kind, each once."""

    def schema(self, book: Book) -> Schema:
        return dict(super().schema(book), uniqueItems=True)

    def convert(self, value: Any, name: str) -> Any:
        try:
            made = super().convert(value, name)
        except TypeError:
            raise InvalidInput("`%s` holds what cannot be in a set." % name) from None
        if len(made) < len(value):
            raise InvalidInput("`%s` must not hold a value twice." % name)
        return made


class TupleForm(Form):
    """A fixed number of values, each of its own kind."""

    def __init__(self, items: Iterable[Any], make: Callable[..., Any]) -> None:
        self._items, self._make = [form_of(one) for one in items], make

    def schema(self, book: Book) -> Schema:
        count = len(self._items)
        schema: Schema = {"type": "array", "minItems": count, "maxItems": count}
        if count:
            schema["prefixItems"] = [one.schema(book) for one in self._items]
        return schema

    def convert(self, value: Any, name: str) -> Any:
        count = len(self._items)
        what = "a list of %d value%s" % (count, "" if count == 1 else "s")
        expect(isinstance(value, list) and len(value) == count, value, name, what)
        given = enumerate(zip(self._items, value))
        return self._make([form.convert(one, "%s[%d]" % (name, at)) for at, (form, one) in given])


class MappingForm(Form):
    """Any number of values of one kind, by name."""

    def __init__(self, make: Callable[[Dict[Any, Any]], Any], key: Any, value: Any) -> None:
        self._make, self._key, self._value = make, form_of(key), form_of(value)

    def schema(self, book: Book) -> Schema:
        schema: Schema = {"type": "object"}
        if isinstance(self._key, Choice):
            schema["propertyNames"] = {"enum": [str(one) for one in self._key.values]}
        values = self._value.schema(book)
        if values:
            schema["additionalProperties"] = values
        return schema

    def convert(self, value: Any, name: str) -> Any:
        expect(isinstance(value, dict), value, name, "an object")
        made = {}
        for key, one in value.items():
            place = "%s.%s" % (name, key)
            made[self._key.key(key, place)] = self._value.convert(one, place)
        return self._make(made)


class Choice(Form):
    """One of some values: a literal or an enumeration."""

    def __init__(self, members: Iterable[Tuple[Any, Any]]) -> None:
        self._members = list(members)
        self.values = [value for value, _ in self._members]

    def schema(self, book: Book) -> Schema:
        kinds = {KINDS.get(type(value)) for value in self.values}
        schema: Schema = {"enum": self.values}
        kind = kinds.pop() if len(kinds) == 1 else None
        return dict({"type": kind}, **schema) if kind else schema

    def convert(self, value: Any, name: str) -> Any:
        for known, member in self._members:
            if known == value and type(known) is type(value):
                return member
        raise InvalidInput("`%s` must be one of %s." % (name, listed(self.values)))


class UnionForm(Form):
    """One of several forms."""

    def __init__(self, kinds: Iterable[Any]) -> None:
        self._kinds = list(kinds)
        self._forms = [form_of(kind) for kind in self._kinds]

    def schema(self, book: Book) -> Schema:
        return {"anyOf": [form.schema(book) for form in self._forms]}

    def convert(self, value: Any, name: str) -> Any:
        # A value of exactly one of the types is not made into another that would take it, too.
        if type(value) in self._kinds and type(value) in KINDS:
            return Plain(type(value)).convert(value, name)
        problems = []
        for kind, form in zip(self._kinds, self._forms):
            try:
                return form.convert(value, name)
            except InvalidInput as problem:
                if kind is not type(None):
                    problems.append((form, problem))
        meant = [problem for form, problem in problems if _claims(form, value)]
        if len(meant) == 1 or len(problems) == 1:
            raise (meant or [problem for _, problem in problems])[0]
        raise InvalidInput("`%s` fits none of the forms that it may have." % name)


def _claims(form: Form, value: Any) -> bool:
    """Whether a record says by a field of one value that this one is meant."""
    claims = getattr(form, "claims", None)
    return claims is not None and bool(claims(value))


class Later(Form):
    """A form that is looked up when it is first used, so that types may refer to themselves."""

    def __init__(self, key: Any, name: str, find: Callable[[], Form]) -> None:
        self._key, self._name, self._find = key, name, find

    def schema(self, book: Book) -> Schema:
        return book.named(self._key, self._name, lambda: self._find().schema(book))

    def convert(self, value: Any, name: str) -> Any:
        return self._find().convert(value, name)


_known: Dict[Any, Form] = {}


def form_of(annotation: Any) -> Form:
    """The form that an annotation stands for."""
    key = (annotation, id(type(annotation)))
    try:
        form = _known.get(key)
    except TypeError:  # Annotations that hold dictionaries have no hash.
        return _form(annotation)
    if form is None:
        form = _known[key] = _form(annotation)
    return form


def _form(annotation: Any) -> Form:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        from .constraints import annotated

        return annotated(annotation)
    if annotation in (Any, object) or isinstance(annotation, typing.TypeVar):
        return Anything()
    if annotation is None:
        return Plain(type(None))
    if annotation in KINDS or annotation is bytes:
        return Plain(annotation)
    if annotation in _TEXTS:
        return _TEXTS[annotation]
    if annotation is decimal.Decimal:
        return Exact()
    if origin in UNIONS:
        return UnionForm(arguments)
    if origin is typing.Literal:
        return Choice((value, value) for value in _literals(arguments))
    if hasattr(annotation, "__supertype__"):
        return form_of(annotation.__supertype__)
    if type(annotation).__name__ == "TypeAliasType":
        return Later(annotation, annotation.__name__, lambda: form_of(annotation.__value__))
    return _container(annotation, origin, arguments) or _class(annotation, origin)


def _container(annotation: Any, origin: Any, arguments: Tuple[Any, ...]) -> Any:
    kind = origin or annotation
    if not isinstance(kind, type):
        return None
    if kind is tuple:
        if arguments and arguments[-1] is not Ellipsis:
            return TupleForm(() if arguments == ((),) else arguments, tuple)
        if arguments or origin is None:
            return ListForm(tuple, arguments[0] if arguments else Any)
        return TupleForm((), tuple)
    if kind in LISTS:
        make = collections.deque if kind is collections.deque else list
        return ListForm(make, arguments[0] if arguments else Any)
    if kind in SETS:
        return SetForm(frozenset if kind is frozenset else set, arguments[0] if arguments else Any)
    if kind in MAPPINGS:
        ordered = collections.OrderedDict if kind is collections.OrderedDict else dict
        key, value = arguments if len(arguments) == 2 else (str, Any)
        return MappingForm(ordered, key, value)
    return None


def _class(annotation: Any, origin: Any) -> Form:
    from . import _pydantic, records

    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return Choice((member.value, member) for member in annotation)
    found = _pydantic.form(annotation) or records.form(annotation, origin)
    if found is not None:
        return found
    if annotation in (Path, File):
        text = "%s is a file, which can only be an input of its own."
        raise TypeError(text % annotation.__name__)
    found = _pydantic.other(annotation)
    if found is not None:
        return found
    raise TypeError("An input cannot be annotated with %s." % shown(annotation))


def shown(annotation: Any) -> str:
    """An annotation in a sentence."""
    return annotation.__name__ if isinstance(annotation, type) else repr(annotation)


def listed(values: Iterable[Any]) -> str:
    """Values in a sentence."""
    return ", ".join(json.dumps(value, ensure_ascii=False) for value in values)


def expect(fits: bool, value: Any, name: str, what: str) -> Any:
    """The value if it fits."""
    if not fits:
        raise InvalidInput("`%s` must be %s." % (name, what))
    return value


def _literals(arguments: Tuple[Any, ...]) -> List[Any]:
    values: List[Any] = []
    for one in arguments:
        values.append(one.value if isinstance(one, enum.Enum) else one)
    return values


def _zone(text: str) -> str:
    # Before Python 3.11 the letter for UTC is not understood.
    return text[:-1] + "+00:00" if text[-1:] in ("Z", "z") else text


def _moment(text: str) -> datetime.datetime:
    if len(text) < 11:
        raise ValueError("a date without a time")
    return datetime.datetime.fromisoformat(_zone(text))


def _duration(text: str) -> datetime.timedelta:
    found = DURATION.match(text)
    if found is None or text.endswith(("P", "T")):
        raise ValueError("no duration")
    sign, weeks, days, hours, minutes, seconds = found.groups()
    span = datetime.timedelta(
        weeks=int(weeks or 0),
        days=int(days or 0),
        hours=int(hours or 0),
        minutes=int(minutes or 0),
        microseconds=round(float(seconds or 0) * 1_000_000),
    )
    return -span if sign else span


_TEXTS: Dict[Any, Form] = {
    datetime.datetime: Text(
        "date-time", "a date and time such as 2026-01-31T12:30:00Z", _moment
    ),
    datetime.date: Text(
        "date", "a date such as 2026-01-31", lambda text: datetime.date.fromisoformat(text[:11])
    ),
    datetime.time: Text(
        "time", "a time such as 12:30:00", lambda text: datetime.time.fromisoformat(_zone(text))
    ),
    datetime.timedelta: Text("duration", "a span of time such as PT1H30M", _duration),
    uuid.UUID: Text("uuid", "a UUID", uuid.UUID),
}

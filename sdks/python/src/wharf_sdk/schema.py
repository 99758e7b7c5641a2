"""JSON Schema from annotations, and values held against them.

What an annotation says of a parameter is told to callers as JSON Schema (2020-12) and checked
again before the tool runs. `Annotated[int, "how many"]` adds a description,
`Annotated[int, {"minimum": 1}]` adds words of JSON Schema.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import types
import typing
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Tuple, Union

from .fault import InvalidInput
from .files import File

Schema = Dict[str, Any]

# What takes the bytes of a file as they are; everything else is text or JSON.
BINARY = (bytes, Path, File)

_UNIONS: Tuple[Any, ...] = (Union, getattr(types, "UnionType", Union))
_PLAIN: Dict[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    type(None): {"type": "null"},
    bytes: {"type": "string"},
}
_WORDS = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


def schema_of(annotation: Any) -> Schema:
    """The JSON Schema of what an annotation lets through."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in (Any, object) or isinstance(annotation, typing.TypeVar):
        return {}
    if annotation is None:
        return {"type": "null"}
    if isinstance(annotation, type) and annotation in _PLAIN:
        return dict(_PLAIN[annotation])
    if origin is typing.Annotated:
        return _annotated(arguments)
    if origin in _UNIONS:
        return {"anyOf": [schema_of(one) for one in arguments]}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if _is_list(annotation, origin):
        items = schema_of(arguments[0]) if arguments else {}
        return {"type": "array", "items": items} if items else {"type": "array"}
    if _is_mapping(annotation, origin):
        values = schema_of(arguments[1]) if len(arguments) == 2 else {}
        return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return {"enum": [member.value for member in annotation]}
    if _is_record(annotation):
        return _record_schema(annotation)
    raise TypeError("An input cannot be annotated with %r." % (annotation,))


def convert(annotation: Any, value: Any, name: str) -> Any:
    """A JSON value as its annotation wants it; `InvalidInput` names what does not fit."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in (Any, object) or isinstance(annotation, typing.TypeVar):
        return value
    if annotation in (None, type(None)):
        return _expect(value is None, value, name, "null")
    if isinstance(annotation, type) and annotation in _WORDS:
        return _plain(annotation, value, name)
    if annotation is bytes:
        return _plain(str, value, name).encode("utf-8")
    if origin is typing.Annotated:
        converted = convert(arguments[0], value, name)
        _check_words(_annotated(arguments), value, name)
        return converted
    if origin in _UNIONS:
        return _one_of(arguments, value, name)
    if origin is typing.Literal:
        fits = any(value == one and type(value) is type(one) for one in arguments)
        return _expect(fits, value, name, "one of %s" % _listed(arguments))
    if _is_list(annotation, origin):
        _expect(isinstance(value, list), value, name, "a list")
        kind = arguments[0] if arguments else Any
        return [convert(kind, one, "%s[%d]" % (name, at)) for at, one in enumerate(value)]
    if _is_mapping(annotation, origin):
        _expect(isinstance(value, dict), value, name, "an object")
        kind = arguments[1] if len(arguments) == 2 else Any
        return {key: convert(kind, one, "%s.%s" % (name, key)) for key, one in value.items()}
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return _member(annotation, value, name)
    return _record(annotation, value, name)


def inner(annotation: Any) -> Any:
    """An annotation without what is only added to it: descriptions, and that it may be left out."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return inner(arguments[0])
    if origin in _UNIONS:
        others = [one for one in arguments if one is not type(None)]
        if len(others) == 1:
            return inner(others[0])
    return annotation


def _annotated(arguments: Tuple[Any, ...]) -> Schema:
    schema = schema_of(arguments[0])
    for extra in arguments[1:]:
        if isinstance(extra, str):
            schema["description"] = extra
        elif isinstance(extra, Mapping):
            schema.update(extra)
    return schema


def _is_list(annotation: Any, origin: Any) -> bool:
    kind = origin or annotation
    return isinstance(kind, type) and kind is not str and kind in (list, tuple, _ABSTRACT_LIST)


_ABSTRACT_LIST: Any = typing.get_origin(typing.Sequence[int])
_ABSTRACT_MAPPING: Any = typing.get_origin(typing.Mapping[str, int])


def _is_mapping(annotation: Any, origin: Any) -> bool:
    return (origin or annotation) in (dict, _ABSTRACT_MAPPING)


def _is_typed_dict(annotation: Any) -> bool:
    return isinstance(annotation, type) and hasattr(annotation, "__total__")


def _is_record(annotation: Any) -> bool:
    return _is_typed_dict(annotation) or (
        isinstance(annotation, type) and dataclasses.is_dataclass(annotation)
    )


def _fields(annotation: Any) -> Tuple[Dict[str, Any], List[str]]:
    """The fields of a record by name, and which of them must be there."""
    hints = typing.get_type_hints(annotation, include_extras=True)
    if _is_typed_dict(annotation):
        required = annotation.__required_keys__
        plain = {name: _without_need(hint) for name, hint in hints.items()}
        return plain, [name for name in hints if name in required]
    fields = [field for field in dataclasses.fields(annotation) if field.init]
    needed = [field.name for field in fields if _has_no_default(field)]
    return {field.name: hints[field.name] for field in fields}, needed


def _without_need(hint: Any) -> Any:
    """A field's type without the mark that says whether it must be there."""
    name = getattr(typing.get_origin(hint), "_name", None)
    return typing.get_args(hint)[0] if name in ("Required", "NotRequired") else hint


def _has_no_default(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


def _record_schema(annotation: Any) -> Schema:
    fields, required = _fields(annotation)
    properties = {name: schema_of(kind) for name, kind in fields.items()}
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if not _is_typed_dict(annotation):
        schema["additionalProperties"] = False
    return schema


def _record(annotation: Any, value: Any, name: str) -> Any:
    if not _is_record(annotation):
        raise TypeError("An input cannot be annotated with %r." % (annotation,))
    _expect(isinstance(value, dict), value, name, "an object")
    fields, required = _fields(annotation)
    for field in required:
        if field not in value:
            raise InvalidInput("`%s.%s` is missing." % (name, field))
    if _is_typed_dict(annotation):
        return {
            key: convert(fields[key], one, "%s.%s" % (name, key)) if key in fields else one
            for key, one in value.items()
        }
    for key in value:
        if key not in fields:
            raise InvalidInput("`%s` has no field `%s`." % (name, key))
    make: Callable[..., Any] = annotation
    return make(
        **{key: convert(fields[key], one, "%s.%s" % (name, key)) for key, one in value.items()}
    )


def _member(annotation: Any, value: Any, name: str) -> Any:
    for member in annotation:
        if member.value == value and type(member.value) is type(value):
            return member
    raise InvalidInput("`%s` must be one of %s." % (name, _listed([m.value for m in annotation])))


def _plain(kind: Any, value: Any, name: str) -> Any:
    if kind is float:
        # A whole number is a number; a boolean is neither in JSON.
        fits = isinstance(value, (int, float)) and not isinstance(value, bool)
        _expect(fits and math.isfinite(value), value, name, _WORDS[float])
        return float(value)
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    return _expect(fits, value, name, _WORDS[kind])


def _one_of(kinds: Tuple[Any, ...], value: Any, name: str) -> Any:
    problems = []
    for kind in kinds:
        try:
            return convert(kind, value, name)
        except InvalidInput as problem:
            if kind is not type(None):
                problems.append(problem)
    if len(problems) == 1:
        raise problems[0]
    raise InvalidInput("`%s` fits none of the forms that it may have." % name)


def _check_words(schema: Schema, value: Any, name: str) -> None:
    """The words of JSON Schema that `Annotated` adds most often; the core checks all of them."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if value < schema.get("minimum", value):
            raise InvalidInput("`%s` must not be less than %s." % (name, schema["minimum"]))
        if value > schema.get("maximum", value):
            raise InvalidInput("`%s` must not be more than %s." % (name, schema["maximum"]))
    if isinstance(value, (str, list)):
        words = ("minLength", "maxLength") if isinstance(value, str) else ("minItems", "maxItems")
        if not schema.get(words[0], 0) <= len(value) <= schema.get(words[1], len(value)):
            raise InvalidInput("`%s` is too short or too long." % name)
    if "enum" in schema and value not in schema["enum"]:
        raise InvalidInput("`%s` must be one of %s." % (name, _listed(schema["enum"])))


def _listed(values: typing.Iterable[Any]) -> str:
    return ", ".join(json.dumps(value, ensure_ascii=False) for value in values)


def _expect(fits: bool, value: Any, name: str, what: str) -> Any:
    if not fits:
        raise InvalidInput("`%s` must be %s." % (name, what))
    return value

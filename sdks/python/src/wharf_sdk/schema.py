"""JSON Schema from annotations, and values held against them.

What an annotation says of a parameter is told to callers as JSON Schema (2020-12) and checked
again before the tool runs. `Annotated[int, "how many"]` adds a description,
`Annotated[int, {"minimum": 1}]` adds words of JSON Schema. What each annotation stands for is
in `forms`, `records` and `constraints`; models of pydantic are left to pydantic.
"""

from __future__ import annotations

import re
import typing
from typing import Any, Dict, List, Set, Tuple

Schema = Dict[str, Any]

REFERENCE = "#/$defs/"
# Regular expressions are matched in linear time by the core, which knows none of these.
LOOKAROUND = re.compile(r"\(\?[=!<>]|\\[1-9]|\(\?P=|\\Z")


def schema_of(annotation: Any) -> Schema:
    """The JSON Schema of what an annotation lets through."""
    from .forms import form_of

    book = Book()
    return book.finish(form_of(annotation).schema(book))


def convert(annotation: Any, value: Any, name: str) -> Any:
    """A JSON value as its annotation wants it; `InvalidInput` names what does not fit."""
    from .forms import form_of

    return form_of(annotation).convert(value, name)


class Book:
    """The definitions that schemas of one tool share.

    Every record is written down once while schemas are made; what turns out to be used in one
    place only stands there in the end.
    """

    def __init__(self, outputs: bool = False) -> None:
        self.outputs = outputs
        self._names: Dict[Any, str] = {}
        self._definitions: Dict[str, Schema] = {}

    def named(self, key: Any, name: str, make: typing.Callable[[], Schema]) -> Schema:
        """A reference to the definition of a type, which is made if it is new."""
        if key not in self._names:
            name = self._free(name)
            self._names[key] = name
            self._definitions[name] = {}
            self._definitions[name] = make()
        return {"$ref": REFERENCE + self._names[key]}

    def adopt(self, schema: Schema, name: str = "") -> Schema:
        """A schema with definitions of its own, which join the others, as it does by its name."""
        schema = dict(schema)
        given: Dict[str, Schema] = schema.pop("$defs", {})
        names: Dict[str, str] = {}
        for own, definition in given.items():
            known = self._definitions.get(own)
            names[own] = own if known in (None, definition) else self._free(own)
        for own, definition in given.items():
            self._definitions[names[own]] = _renamed(definition, names)
        adopted: Schema = _renamed(schema, names)
        if not name or "$ref" in adopted:
            return adopted
        if self._definitions.get(name) != adopted:
            name = self._free(name)
            self._definitions[name] = adopted
        return {"$ref": REFERENCE + name}

    def finish(self, schema: Schema) -> Schema:
        """The schema with the definitions that it refers to."""
        uses: Dict[str, int] = {}
        reached: List[str] = []
        waiting: List[Any] = [schema]
        while waiting:
            for name in _references(waiting.pop()):
                uses[name] = uses.get(name, 0) + 1
                if uses[name] == 1:
                    reached.append(name)
                    waiting.append(self._definitions[name])
        kept = [name for name in reached if uses[name] > 1 or self._leads_back(name)]
        finished: Schema = self._inlined(schema, set(kept))
        if kept:
            finished["$defs"] = {
                name: self._inlined(self._definitions[name], set(kept)) for name in kept
            }
        return _checkable(finished)  # type: ignore[no-any-return]

    def _free(self, name: str) -> str:
        name = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_") or "Value"
        free, number = name, 1
        while free in self._definitions:
            number += 1
            free = "%s%d" % (name, number)
        return free

    def _leads_back(self, name: str) -> bool:
        seen: Set[str] = set()
        waiting = _references(self._definitions[name])
        while waiting:
            one = waiting.pop()
            if one == name:
                return True
            if one not in seen:
                seen.add(one)
                waiting += _references(self._definitions[one])
        return False

    def _inlined(self, schema: Any, kept: Set[str]) -> Any:
        if isinstance(schema, list):
            return [self._inlined(one, kept) for one in schema]
        if not isinstance(schema, dict):
            return schema
        name = _referenced(schema)
        rest = {key: self._inlined(one, kept) for key, one in schema.items() if key != "$ref"}
        if name is None:
            return {key: self._inlined(one, kept) for key, one in schema.items()}
        if name in kept:
            return dict({"$ref": schema["$ref"]}, **rest)
        return dict(self._inlined(self._definitions[name], kept), **rest)


def _referenced(schema: Schema) -> Any:
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith(REFERENCE):
        return reference[len(REFERENCE) :]
    return None


def _references(schema: Any) -> List[str]:
    if isinstance(schema, list):
        return [name for one in schema for name in _references(one)]
    if not isinstance(schema, dict):
        return []
    name = _referenced(schema)
    below = [name for one in schema.values() for name in _references(one)]
    return below if name is None else [name, *below]


def _renamed(schema: Any, names: Dict[str, str]) -> Any:
    if isinstance(schema, list):
        return [_renamed(one, names) for one in schema]
    if not isinstance(schema, dict):
        return schema
    renamed = {key: _renamed(one, names) for key, one in schema.items()}
    name = _referenced(schema)
    if name is not None:
        renamed["$ref"] = REFERENCE + names.get(name, name)
    mapping = renamed.get("mapping")
    if isinstance(mapping, dict):
        renamed["mapping"] = {
            tag: REFERENCE + names.get(target[len(REFERENCE) :], target[len(REFERENCE) :])
            if isinstance(target, str) and target.startswith(REFERENCE)
            else target
            for tag, target in mapping.items()
        }
    return renamed


def _checkable(schema: Any) -> Any:
    """A schema without patterns that the core cannot check; the tool still does."""
    if isinstance(schema, list):
        return [_checkable(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _checkable(one)
        for key, one in schema.items()
        if not (key == "pattern" and isinstance(one, str) and LOOKAROUND.search(one))
    }


def inner(annotation: Any) -> Any:
    """An annotation without what is only added to it: descriptions, and that it may be left out."""
    from .forms import UNIONS

    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return inner(arguments[0])
    if origin in UNIONS:
        others: Tuple[Any, ...] = tuple(one for one in arguments if one is not type(None))
        if len(others) == 1:
            return inner(others[0])
    return annotation

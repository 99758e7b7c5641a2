"""Annotations as JSON Schema, and values held against them."""

from __future__ import annotations

import enum
import unittest
from dataclasses import dataclass, field
from typing import Annotated, Any, Dict, List, Literal, Optional, TypedDict, Union

from wharf_sdk.fault import InvalidInput
from wharf_sdk.schema import convert, schema_of


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Place:
    name: str
    tags: List[str] = field(default_factory=list)


class Message(TypedDict, total=False):
    role: str
    content: str


class Schemas(unittest.TestCase):
    def check(self, annotation: Any, schema: Dict[str, Any]) -> None:
        self.assertEqual(schema_of(annotation), schema)

    def test_k001_plain_types_are_plain_schemas(self) -> None:
        self.check(str, {"type": "string"})
        self.check(int, {"type": "integer"})
        self.check(float, {"type": "number"})
        self.check(bool, {"type": "boolean"})
        self.check(Any, {})

    def test_k001_lists_and_objects_say_what_they_hold(self) -> None:
        self.check(List[int], {"type": "array", "items": {"type": "integer"}})
        self.check(list, {"type": "array"})
        self.check(dict, {"type": "object"})
        holds = {"type": "object", "additionalProperties": {"type": "string"}}
        self.check(Dict[str, str], holds)

    def test_k001_choices(self) -> None:
        self.check(Literal["a", 1], {"enum": ["a", 1]})
        self.check(Colour, {"enum": ["red", "blue"]})
        self.check(Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]})

    def test_k001_records_name_what_they_need(self) -> None:
        schema = schema_of(Place)
        self.assertEqual(schema["required"], ["name"])
        self.assertEqual(
            schema["properties"]["tags"], {"type": "array", "items": {"type": "string"}}
        )
        self.assertNotIn("required", schema_of(Message))

    def test_k001_annotated_adds_words_and_a_description(self) -> None:
        schema = {"type": "integer", "minimum": 1, "description": "how many"}
        self.check(Annotated[int, "how many", {"minimum": 1}], schema)

    def test_what_has_no_schema_is_refused_when_the_tool_is_made(self) -> None:
        with self.assertRaisesRegex(TypeError, "cannot be annotated"):
            schema_of(unittest.TestCase)


class Values(unittest.TestCase):
    def fits(self, annotation: Any, value: Any, expected: Any) -> None:
        self.assertEqual(convert(annotation, value, "x"), expected)

    def refused(self, annotation: Any, value: Any, text: str) -> None:
        with self.assertRaises(InvalidInput) as caught:
            convert(annotation, value, "x")
        self.assertEqual(caught.exception.message, text)

    def test_k005_values_that_fit_become_what_was_annotated(self) -> None:
        self.fits(float, 3, 3.0)
        self.fits(int, 3.0, 3)
        self.fits(Colour, "red", Colour.RED)
        self.fits(Place, {"name": "here"}, Place("here"))
        self.fits(List[Place], [{"name": "a", "tags": ["b"]}], [Place("a", ["b"])])
        self.fits(Union[str, List[str]], ["a"], ["a"])
        self.fits(bytes, "é", "é".encode())
        self.fits(Optional[int], None, None)

    def test_k005_what_does_not_fit_is_named_by_its_path(self) -> None:
        self.refused(int, True, "`x` must be a whole number.")
        self.refused(int, "3", "`x` must be a whole number.")
        self.refused(str, 3, "`x` must be text.")
        self.refused(float, float("nan"), "`x` must be a number.")
        self.refused(List[int], [1, "2"], "`x[1]` must be a whole number.")
        self.refused(Place, {}, "`x.name` is missing.")
        self.refused(Place, {"name": "a", "more": 1}, "`x` has no field `more`.")
        self.refused(Dict[str, int], {"a": None}, "`x.a` must be a whole number.")
        self.refused(Literal["a", "b"], "c", '`x` must be one of "a", "b".')
        self.refused(Optional[int], "a", "`x` must be a whole number.")
        self.refused(Annotated[int, {"minimum": 1}], 0, "`x` must not be less than 1.")
        self.refused(Annotated[str, {"maxLength": 1}], "ab", "`x` is too short or too long.")

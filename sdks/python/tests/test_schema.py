"""Annotations as JSON Schema, and values held against them."""

from __future__ import annotations

import datetime
import enum
import typing
import unittest
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from typing import (
    Annotated,
    Any,
    Dict,
    FrozenSet,
    Generic,
    List,
    Literal,
    NamedTuple,
    Optional,
    Set,
    Tuple,
    TypedDict,
    TypeVar,
    Union,
)

from wharf_sdk.encoding import to_json
from wharf_sdk.fault import InvalidInput
from wharf_sdk.schema import convert, schema_of


# Before Python 3.11 it is not among the standard ones.
NotRequired: Any = getattr(typing, "NotRequired", Optional)


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


class Spot(NamedTuple):
    x: float
    y: float


@dataclass
class Tree:
    """A tree of names.

    Attributes:
        name: what it is called
    """

    name: str
    below: List[Tree] = field(default_factory=list)


@dataclass
class Way:
    begin: Place
    end: Place
    by: Message


class _To(TypedDict):
    to: str


class Card(_To, total=False):
    picture: str


class Letter(TypedDict):
    to: str
    copy: NotRequired[str]


T = TypeVar("T")


@dataclass
class Page(Generic[T]):
    items: List[T]
    first: Optional[T] = None


@dataclass
class Circle:
    kind: Literal["circle"]
    radius: float


@dataclass
class Square:
    kind: Literal["square"]
    side: float


@dataclass
class Positive:
    n: int

    def __post_init__(self) -> None:
        if self.n <= 0:
            raise ValueError("n must be positive.")


class Bound:
    """A constraint as `annotated-types` has them: known by what it has, not by what it is."""

    def __init__(self, **bounds: Any) -> None:
        self.__dict__.update(bounds)


class Check:
    def __init__(self, func: Any) -> None:
        self.func = func


def is_even(n: int) -> bool:
    return n % 2 == 0


LISTED = {"type": "array", "items": {"type": "integer"}}


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
        self.check(Colour, {"type": "string", "enum": ["red", "blue"]})
        self.check(Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]})

    def test_k001_records_name_what_they_need(self) -> None:
        schema = schema_of(Place)
        self.assertEqual(schema["required"], ["name"])
        self.assertEqual(
            schema["properties"]["tags"],
            {"type": "array", "items": {"type": "string"}, "default": []},
        )
        self.assertNotIn("required", schema_of(Message))

    def test_k001_annotated_adds_words_and_a_description(self) -> None:
        schema = {"type": "integer", "minimum": 1, "description": "how many"}
        self.check(Annotated[int, "how many", {"minimum": 1}], schema)

    def test_k001_times_and_numbers_that_json_lacks_are_texts(self) -> None:
        for kind, form in (
            (datetime.datetime, "date-time"),
            (datetime.date, "date"),
            (datetime.time, "time"),
            (datetime.timedelta, "duration"),
            (uuid.UUID, "uuid"),
        ):
            self.check(kind, {"type": "string", "format": form})
        self.assertEqual(schema_of(Decimal)["anyOf"][0], {"type": "number"})

    def test_k001_tuples_sets_and_mappings(self) -> None:
        pair = {"type": "array", "minItems": 2, "maxItems": 2}
        kinds = [{"type": "string"}, {"type": "integer"}]
        self.check(Tuple[str, int], dict(pair, prefixItems=kinds))
        self.check(Tuple[int, ...], {"type": "array", "items": {"type": "integer"}})
        self.check(Spot, dict(pair, prefixItems=[{"type": "number"}, {"type": "number"}]))
        some = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
        self.check(Set[str], some)
        self.check(FrozenSet[str], some)
        named = {"type": "object", "propertyNames": {"enum": ["red", "blue"]}}
        self.check(Dict[Colour, int], dict(named, additionalProperties={"type": "integer"}))

    def test_k001_a_record_that_holds_itself_is_defined_once(self) -> None:
        schema = schema_of(Tree)
        self.assertEqual(schema["$ref"], "#/$defs/Tree")
        tree = schema["$defs"]["Tree"]
        self.assertEqual(tree["properties"]["below"]["items"], {"$ref": "#/$defs/Tree"})
        self.assertEqual(tree["properties"]["name"]["description"], "what it is called")
        self.assertEqual(tree["description"], "A tree of names.")

    def test_k001_what_is_used_twice_is_defined_and_what_is_used_once_is_not(self) -> None:
        schema = schema_of(Way)
        self.assertEqual(schema["properties"]["begin"], {"$ref": "#/$defs/Place"})
        self.assertEqual(list(schema["$defs"]), ["Place"])
        self.assertEqual(schema["properties"]["by"]["properties"]["role"], {"type": "string"})

    def test_k001_fields_may_be_left_out_as_their_dictionary_says(self) -> None:
        self.assertEqual(schema_of(Card)["required"], ["to"])
        marked = ["to"] if hasattr(typing, "NotRequired") else ["to", "copy"]
        self.assertEqual(schema_of(Letter)["required"], marked)

    def test_k001_type_variables_stand_for_what_is_given(self) -> None:
        of_numbers = schema_of(Page[int])["properties"]
        self.assertEqual(of_numbers["items"], {"type": "array", "items": {"type": "integer"}})
        self.assertEqual(of_numbers["first"], {"anyOf": [{"type": "integer"}, {"type": "null"}]})

    def test_k001_constraints_are_known_by_their_attributes(self) -> None:
        self.check(
            Annotated[int, Bound(ge=1, lt=10)],
            {"type": "integer", "minimum": 1, "exclusiveMaximum": 10},
        )
        self.check(Annotated[List[int], Bound(min_length=1)], dict(LISTED, minItems=1))
        self.check(
            Annotated[Optional[str], Bound(max_length=3, pattern="^a")],
            {"anyOf": [{"type": "string"}, {"type": "null"}], "maxLength": 3, "pattern": "^a"},
        )

    def test_k001_a_pattern_that_the_core_cannot_check_is_left_to_the_tool(self) -> None:
        annotation = Annotated[str, Bound(pattern="^(?!no)")]
        self.check(annotation, {"type": "string"})
        with self.assertRaises(InvalidInput):
            convert(annotation, "no way", "x")

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

    def test_k005_texts_become_the_types_they_stand_for(self) -> None:
        utc = datetime.timezone.utc
        self.fits(
            datetime.datetime,
            "2026-01-31T12:30:00Z",
            datetime.datetime(2026, 1, 31, 12, 30, tzinfo=utc),
        )
        self.fits(datetime.date, "2026-01-31", datetime.date(2026, 1, 31))
        self.fits(datetime.time, "12:30:00", datetime.time(12, 30))
        for text, span in (
            ("P1DT2H", datetime.timedelta(days=1, hours=2)),
            ("PT1.5S", datetime.timedelta(seconds=1.5)),
            ("-PT3M", -datetime.timedelta(minutes=3)),
            ("P2W", datetime.timedelta(weeks=2)),
            ("PT0S", datetime.timedelta()),
        ):
            self.fits(datetime.timedelta, text, span)
            if "W" not in text:
                self.assertEqual(to_json(span, "x"), text)
        self.fits(Decimal, "1.10", Decimal("1.10"))
        self.fits(Decimal, 0.1, Decimal("0.1"))
        number = "12345678-1234-5678-1234-567812345678"
        self.fits(uuid.UUID, number, uuid.UUID(number))
        self.fits(Tuple[str, int], ["a", 1], ("a", 1))
        self.fits(Spot, [1, 2.5], Spot(1.0, 2.5))
        self.fits(Set[int], [1, 2], {1, 2})
        self.fits(Dict[int, str], {"1": "a"}, {1: "a"})
        self.fits(Dict[Colour, int], {"red": 1}, {Colour.RED: 1})
        self.fits(Union[float, int], 3, 3)
        self.fits(Union[datetime.date, str], "soon", "soon")
        self.fits(Tree, {"name": "a", "below": [{"name": "b"}]}, Tree("a", [Tree("b")]))
        self.fits(Page[int], {"items": [1], "first": None}, Page([1], None))

    def test_k005_what_the_new_types_refuse_is_said_with_an_example(self) -> None:
        moment = "`x` must be a date and time such as 2026-01-31T12:30:00Z."
        for wrong in ("2026-01-31", "soon", 3, None):
            self.refused(datetime.datetime, wrong, moment)
        self.refused(datetime.date, "31.1.2026", "`x` must be a date such as 2026-01-31.")
        self.refused(datetime.timedelta, "P", "`x` must be a span of time such as PT1H30M.")
        for number in ("NaN", True, "1,5", "Infinity"):
            self.refused(Decimal, number, "`x` must be a decimal number.")
        self.refused(uuid.UUID, "1", "`x` must be a UUID.")
        self.refused(Tuple[str, int], ["a"], "`x` must be a list of 2 values.")
        self.refused(Tuple[str, int], ["a", "b"], "`x[1]` must be a whole number.")
        self.refused(Set[int], [1, 1], "`x` must not hold a value twice.")
        self.refused(Set[Any], [[1]], "`x` holds what cannot be in a set.")
        self.refused(Dict[int, str], {"a": "b"}, "`x.a` must be a whole number.")
        self.refused(Annotated[int, Bound(gt=1)], 1, "`x` must be more than 1.")
        self.refused(Annotated[int, Bound(multiple_of=5)], 3, "`x` must be a multiple of 5.")
        self.refused(
            Annotated[List[int], Bound(min_length=2)], [1], "`x` must hold at least 2 values."
        )
        self.refused(Annotated[str, Bound(pattern="^a")], "b", "`x` must match ^a.")
        self.refused(Annotated[int, Check(is_even)], 3, "`x` is refused by is_even.")
        since = Annotated[datetime.date, Bound(ge=datetime.date(2026, 1, 1))]
        self.refused(since, "2025-01-01", "`x` must not be less than 2026-01-01.")
        self.refused(Positive, {"n": 0}, "`x` is refused: n must be positive.")

    def test_k005_a_tag_says_which_of_several_records_was_meant(self) -> None:
        either = Union[Circle, Square]
        self.fits(either, {"kind": "square", "side": 2}, Square("square", 2.0))
        self.refused(either, {"kind": "square"}, "`x.side` is missing.")
        self.refused(either, {"kind": "star"}, "`x` fits none of the forms that it may have.")

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
        self.refused(Annotated[str, {"maxLength": 1}], "ab", "`x` must not have more than 1 characters.")

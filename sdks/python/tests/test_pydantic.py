"""Models of pydantic, which the author of a tool brings along."""

from __future__ import annotations

import datetime
import unittest
from decimal import Decimal
from typing import Annotated, Any, Dict, List, Literal, Optional, Union

try:
    from annotated_types import Gt, Interval, Len, Predicate
    from pydantic import (
        AfterValidator,
        BaseModel,
        ConfigDict,
        Field,
        HttpUrl,
        computed_field,
        field_validator,
    )
    from pydantic.dataclasses import dataclass
except ImportError:
    raise unittest.SkipTest("pydantic is not installed") from None

from wharf_sdk import Context, File, tool
from wharf_sdk.schema import schema_of

from tests.support import Tried


class Item(BaseModel):
    """One thing that is sold."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, description="what it is")
    price: Decimal = Field(gt=0)
    tags: List[str] = []
    parts: List[Item] = []


class Order(BaseModel):
    items: List[Item]
    due: datetime.date
    note: Optional[str] = Field(None, alias="remark")

    @field_validator("due")
    @classmethod
    def _not_long_ago(cls, due: datetime.date) -> datetime.date:
        if due.year < 2000:
            raise ValueError("it is long ago.")
        return due

    @computed_field  # type: ignore[prop-decorator]
    @property
    def total(self) -> Decimal:
        return sum((item.price for item in self.items), Decimal(0))


@dataclass
class Point:
    x: int
    y: int = 0


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]


def _upper(text: str) -> str:
    return text.upper()


def _is_even(n: int) -> bool:
    return n % 2 == 0


class Models(Tried):
    def order(self, **more: Any) -> Dict[str, Any]:
        return dict({"items": [{"name": "a", "price": "1.10"}], "due": "2026-01-31"}, **more)

    def test_k005_inputs_are_models_and_outputs_may_be(self) -> None:
        def book(order: Order) -> Order:
            assert isinstance(order.items[0], Item) and isinstance(order.due, datetime.date)
            return order

        outputs = self.outputs_of(book, {"order": self.order(remark="soon")})
        self.assertEqual((outputs["due"], outputs["remark"]), ("2026-01-31", "soon"))
        self.assertEqual((outputs["total"], outputs["items"][0]["price"]), ("1.10", "1.10"))
        made = tool(book)
        due = made.output_schema() or {}
        self.assertIn("total", due["properties"])
        self.assertIn("total", due["required"])

    def test_k001_recursive_models_are_defined_once(self) -> None:
        def book(order: Order, other: Order) -> None: ...

        schema = tool(book).schema()
        self.assertEqual(schema["properties"]["order"], {"$ref": "#/$defs/Order"})
        self.assertEqual(sorted(schema["$defs"]), ["Item", "Order"])
        item = schema["$defs"]["Item"]
        self.assertEqual(item["properties"]["parts"]["items"], {"$ref": "#/$defs/Item"})
        self.assertEqual(item["description"], "One thing that is sold.")
        # The core matches patterns in linear time and cannot look around.
        self.assertNotIn("(?!", repr(schema))

    def test_k005_what_does_not_fit_is_named_by_its_path(self) -> None:
        def book(order: Order) -> None: ...

        item = {"name": "", "price": 0, "more": 1}
        error = self.error_of(book, {"order": self.order(items=[item], due="1999-01-01")})
        self.assertEqual(error["code"], "ERR_INPUTS")
        for sentence in (
            "`order.items[0].name` is refused: String should have at least 1 character.",
            "`order.items[0].price` must be greater than 0.",
            "`order.items[0]` has no field `more`.",
            "There are 1 more problems.",
        ):
            self.assertIn(sentence, error["message"])
        error = self.error_of(book, {"order": {"items": []}})
        self.assertEqual(error["message"], "`order.due` is missing.")
        error = self.error_of(book, {"order": self.order(due="1999-01-01")})
        self.assertEqual(error["message"], "`order.due` is refused: it is long ago.")

    def test_k005_dataclasses_of_pydantic_and_lists_of_models(self) -> None:
        def take(at: Point, pets: List[Union[Cat, Dog]]) -> Dict[str, Any]:
            return {"at": [at.x, at.y], "pets": [type(pet).__name__ for pet in pets]}

        given = {"at": {"x": 1}, "pets": [{"kind": "dog"}, {"kind": "cat", "lives": 9}]}
        self.assertEqual(self.outputs_of(take, given), {"at": [1, 0], "pets": ["Dog", "Cat"]})
        given["pets"] = [{"kind": "cat"}]
        self.assertIn("fits none of the forms", self.error_of(take, given)["message"])

    def test_k001_fields_say_what_parameters_may_be(self) -> None:
        def take(
            n: Annotated[int, Field(ge=1, description="how many")],
            word: str = Field("a", max_length=3, pattern="^[a-z]+$"),
            need: int = Field(..., lt=5),
            file: Annotated[Optional[File], Field(description="a file")] = None,
        ) -> Dict[str, Any]:
            return {"n": n, "word": word, "need": need}

        properties = tool(take).schema()["properties"]
        expected = {"type": "integer", "minimum": 1, "description": "how many"}
        self.assertEqual(properties["n"], expected)
        words = {"type": "string", "maxLength": 3, "pattern": "^[a-z]+$", "default": "a"}
        self.assertEqual(properties["word"], words)
        self.assertEqual(properties["file"], {"type": "string", "description": "a file"})
        self.assertEqual(tool(take).schema()["required"], ["n", "need"])
        self.assertEqual(
            self.outputs_of(take, {"n": 1, "need": 2}), {"n": 1, "word": "a", "need": 2}
        )
        error = self.error_of(take, {"n": 0, "need": 2})
        self.assertEqual(error["message"], "`n` must not be less than 1.")

    def test_k001_constraints_of_annotated_types(self) -> None:
        Small = Annotated[int, Interval(ge=1, le=9)]
        self.assertEqual(schema_of(Small), {"type": "integer", "minimum": 1, "maximum": 9})
        Some = Annotated[List[int], Len(1, 2)]
        self.assertEqual((schema_of(Some)["minItems"], schema_of(Some)["maxItems"]), (1, 2))

        def take(n: Annotated[int, Gt(0), Predicate(_is_even)]) -> Dict[str, Any]:
            return {"n": n}

        self.assertEqual(self.outputs_of(take, {"n": 2}), {"n": 2})
        self.assertEqual(self.error_of(take, {"n": 3})["message"], "`n` is refused by _is_even.")

    def test_k005_what_only_pydantic_understands_is_left_to_it(self) -> None:
        def take(
            name: Annotated[str, AfterValidator(_upper)], where: HttpUrl, context: Context
        ) -> Dict[str, Any]:
            return {"name": name, "host": where.host}

        given = {"name": "a", "where": "https://example.com/x"}
        outputs = self.outputs_of(take, given, refs=[])
        self.assertEqual(outputs, {"name": "A", "host": "example.com"})
        error = self.error_of(take, {"name": "a", "where": "nowhere"})
        self.assertIn("`where`", error["message"])

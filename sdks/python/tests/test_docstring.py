"""What docstrings say of parameters."""

from __future__ import annotations

import unittest
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, TypedDict

from wharf_sdk import docstring, tool

GOOGLE = """Sends a letter.

    At once.

    Args:
        to (str): Whom it goes to,
            by name.
        text: What it says: all of it.
        **more: Anything else.

    Returns:
        text: nothing that counts
    """
NUMPY = """Sends a letter.

    Parameters
    ----------
    to : str
        Whom it goes to,
        by name.
    text, more
        What it says.

    Returns
    -------
    str
        nothing that counts
    """
REST = """Sends a letter.

    :param str to: Whom it goes to,
        by name.
    :param text: What it says.
    :returns: nothing that counts
    """


class Styles(unittest.TestCase):
    def test_three_styles_are_read(self) -> None:
        to = "Whom it goes to, by name."
        self.assertEqual(
            docstring.parameters(GOOGLE),
            {"to": to, "text": "What it says: all of it.", "more": "Anything else."},
        )
        self.assertEqual(
            docstring.parameters(NUMPY),
            {"to": to, "text": "What it says.", "more": "What it says."},
        )
        self.assertEqual(docstring.parameters(REST), {"to": to, "text": "What it says."})

    def test_the_summary_ends_where_something_else_begins(self) -> None:
        for doc in (GOOGLE, NUMPY, REST, "Sends\n a letter.\n:param to: x", "Sends a letter.\nArgs:"):
            self.assertEqual(docstring.summary(doc), "Sends a letter.", doc)
        self.assertEqual(docstring.summary(None), "")
        self.assertEqual(docstring.parameters("Just words: no section."), {})

    def test_k001_parameters_are_described_in_the_schema(self) -> None:
        @tool
        def send(to: str, text: str = "", more: int = 0) -> None: ...

        send.__wrapped__.__doc__ = GOOGLE
        described = tool(send.__wrapped__).schema()["properties"]
        self.assertEqual(described["to"], {"type": "string", "description": described["to"]["description"]})
        self.assertEqual(described["text"]["description"], "What it says: all of it.")
        self.assertEqual(described["text"]["default"], "")


@dataclass
class Made:
    name: str
    size: Optional[int] = None


class Part(TypedDict):
    made: Made


class Returns(unittest.TestCase):
    def gives(self, annotation: Any) -> Any:
        def work():  # type: ignore[no-untyped-def]
            ...

        work.__annotations__ = {"return": annotation}
        return tool(work).output_schema()

    def test_k001_what_is_returned_is_the_schema_of_the_outputs(self) -> None:
        value = {"type": "object", "properties": {"value": {"type": "integer"}}}
        self.assertEqual(self.gives(int), dict(value, required=["value"]))
        self.assertEqual(self.gives(Optional[int]), value)
        made = self.gives(Made)
        self.assertEqual((made["required"], made["additionalProperties"]), (["name"], True))
        self.assertEqual(self.gives(Part)["properties"]["made"]["required"], ["name"])
        self.assertEqual(
            self.gives(List[Made])["properties"]["value"]["items"]["required"], ["name"]
        )
        self.assertEqual(
            self.gives(Iterator[str])["properties"], {"text": {"type": "string"}}
        )

    def test_k001_what_says_nothing_of_names_promises_nothing(self) -> None:
        for annotation in (dict, Dict[str, Any], None, Any, unittest.TestCase):
            self.assertIsNone(self.gives(annotation), annotation)

"""The tool {{id}}: counts what a text has."""

from __future__ import annotations

from dataclasses import dataclass

from wharf_sdk import Context, tool


@dataclass
class Counted:
    words: int
    lines: int


@tool
def count(text: str, context: Context) -> Counted:
    """Counts the words and lines of a text.

    Args:
        text: the text, or a reference to a file with it
    """
    context.progress(0.5, "counting")
    return Counted(words=len(text.split()), lines=len(text.splitlines()))

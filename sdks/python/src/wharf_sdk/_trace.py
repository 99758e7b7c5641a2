"""Exceptions as their author wants to read them: without the frames of what ran the handler."""

from __future__ import annotations

import os
import traceback
from pathlib import Path
from typing import List, Optional

from .fault import clip

PACKAGE = os.path.dirname(os.path.abspath(__file__))
SENTENCE_CHARACTERS_MAX = 500


# The folder of the handler; files below it are named from there.
_folder: Optional[str] = None


def name_from(folder: Path) -> None:
    """Names files below a folder from there, from now on."""
    global _folder
    _folder = str(folder)


def text(error: BaseException) -> str:
    """The traceback as one text."""
    return "\n".join(lines(error)) + "\n"


def lines(error: BaseException) -> List[str]:
    """The traceback, line by line."""
    story = traceback.TracebackException.from_exception(error)
    _tidy(story)
    return "".join(story.format()).rstrip("\n").split("\n")


def _tidy(story: Optional[traceback.TracebackException]) -> None:
    seen = set()
    while story is not None and id(story) not in seen:
        seen.add(id(story))
        kept = [frame for frame in story.stack if not _is_runtime(frame.filename)]
        for frame in kept:
            frame.filename = _named(frame.filename)
        story.stack[:] = kept
        if getattr(story, "filename", None):
            story.filename = _named(story.filename)
        if story.__cause__ is not None:
            story = story.__cause__
        elif not story.__suppress_context__:
            story = story.__context__
        else:
            story = None


def _is_runtime(file: str) -> bool:
    return file.startswith("<frozen ") or os.path.abspath(file).startswith(PACKAGE + os.sep)


def _named(file: str) -> str:
    if _folder is not None and file.startswith(_folder + os.sep):
        return file[len(_folder) + 1 :]
    return file


def sentence(error: BaseException, path: Path) -> str:
    """One line: the exception, where it is in the handler's file, and what it says."""
    what = type(error).__name__
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    said = " ".join(clip(said, SENTENCE_CHARACTERS_MAX).split())
    if isinstance(error, SyntaxError):
        where: str = os.path.basename(error.filename or path.name)
        line = error.lineno
    else:
        where, line = path.name, line_in(error, path)
    place = where if line is None else "%s, line %d" % (where, line)
    return "%s in %s: %s" % (what, place, said) if said else "%s in %s" % (what, place)


def line_in(error: BaseException, path: Path) -> Optional[int]:
    """The last line of a file that an exception came through."""
    found = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path)
    ]
    return found[-1] if found else None

"""Finds a handler by its file and brings it into the interpreter."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Optional

from .values import clip

TEXT_CHARACTERS_MAX = 200


class Unusable(Exception):
    """Why a handler cannot be served: a sentence for people, and the whole story for the log."""

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.message, self.detail = message, detail


def load(file: str) -> Callable[..., Any]:
    """Imports a handler file and gives its `entry`."""
    path = Path(os.path.abspath(file))
    if not path.is_file():
        raise Unusable("The handler file %s does not exist." % clip(path.name))
    try:
        module = _import(path)
    except BaseException as error:
        raise Unusable(_explain(path, error), traceback.format_exc()) from None
    entry: Optional[Callable[..., Any]] = getattr(module, "entry", None)
    if not callable(entry):
        text = "The handler file %s has no function `entry` and no function under `@tool`."
        raise Unusable(text % clip(path.name))
    return entry


def _import(path: Path) -> ModuleType:
    """Imports by path, under a name by which other modules can import it too."""
    folder = path.parent
    name = path.stem
    if (folder / "__init__.py").is_file() or folder.name == "protocol":
        sys.path.insert(1, str(folder.parent))
        sys.path.insert(2, str(folder))
        importlib.import_module(folder.name)
        name = "%s.%s" % (folder.name, name)
    else:
        sys.path.insert(1, str(folder))
        if name in sys.modules or name in getattr(sys, "stdlib_module_names", ()):
            name = "wharf_handler_" + name
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError("not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _explain(path: Path, error: BaseException) -> str:
    """One sentence: what is wrong and where, without the folders of this machine."""
    what = type(error).__name__
    if isinstance(error, SyntaxError):
        where = os.path.basename(error.filename or path.name)
        text = "The handler cannot be read: %s in %s, line %s: %s."
        return text % (what, where, error.lineno, _short(error.msg))
    if isinstance(error, ImportError):
        what = "%s: %s" % (what, _short(str(error).split(" (/")[0]))
    line = _line(path, error)
    where = path.name if line is None else "%s, line %d" % (path.name, line)
    return "The handler cannot be imported: %s in %s." % (what, where)


def _line(path: Path, error: BaseException) -> Optional[int]:
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path)
    ]
    return lines[-1] if lines else None


def _short(text: str) -> str:
    return " ".join(clip(text[:TEXT_CHARACTERS_MAX]).split()).rstrip(".")

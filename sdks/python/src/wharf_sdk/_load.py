"""Finds a handler by its file, brings it into the interpreter and says which tools it has."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from importlib import machinery
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional

from . import _trace
from .fault import clip

if TYPE_CHECKING:
    from .handler import Tool

# Names the function that is served, where a file has several.
FUNCTION = "WHARF_FUNCTION"
TEXT_CHARACTERS_MAX = 200

Entry = Callable[..., Any]


class Unusable(Exception):
    """Why a handler cannot be served.

    `message` is for whoever calls the tool; `problem` says as much as its author needs, and
    `lines` are the whole story.
    """

    def __init__(
        self, message: str, problem: str = "", lines: Optional[List[str]] = None
    ) -> None:
        super().__init__(message)
        self.message, self.problem = message, problem or message
        self.lines = lines or []

    @property
    def detail(self) -> str:
        """The story as one text."""
        return "\n".join(self.lines)


class Handler:
    """A handler file that was imported: a plain `entry`, or tools by name."""

    def __init__(self, path: Path, module: ModuleType) -> None:
        self.path = path
        entry = getattr(module, "entry", None)
        self.entry: Optional[Entry] = None
        self.tools: Dict[str, Tool] = {}
        # A file that uses no `@tool` has not loaded what makes tools, and is spared it.
        made = sys.modules.get(__package__ + ".handler")
        if callable(entry) and (made is None or not isinstance(entry, (made.Tool, made.Choice))):
            self.entry = entry
            return
        for found in vars(module).values():
            if made is not None and isinstance(found, made.Tool):
                self._add(found)
        if not self.tools:
            text = "The handler file %s has no function `entry` and no function under `@tool`."
            raise Unusable(text % clip(path.name))

    def _add(self, found: Tool) -> None:
        if self.tools.setdefault(found.name, found) is not found:
            text = "The handler file %s has two tools of the name `%s`."
            raise Unusable(text % (clip(self.path.name), clip(found.name)))

    def choose(self, name: Optional[str]) -> Entry:
        """The one that is to be served; without a name there must be only one."""
        has = "It has %s." % ", ".join("`%s`" % clip(one) for one in self.tools)
        if self.entry is not None:
            if name:
                text = "The handler file %s has a plain `entry` and no tool `%s`."
                raise Unusable(text % (clip(self.path.name), clip(name)))
            return self.entry
        if name:
            if name in self.tools:
                return self.tools[name]
            text = "The handler file %s has no function `%s` under `@tool`. %s"
            raise Unusable(text % (clip(self.path.name), clip(name), has))
        if len(self.tools) > 1:
            text = "The handler file %s has several tools; name the one to serve. %s"
            raise Unusable(text % (clip(self.path.name), has))
        return next(iter(self.tools.values()))


def load(file: str) -> Entry:
    """Imports a handler file and gives what is to be served of it."""
    return imported(file).choose(os.environ.get(FUNCTION))


def imported(file: str) -> Handler:
    """Imports a handler file."""
    path = Path(os.path.abspath(file))
    if not path.is_file():
        raise Unusable("The handler file %s does not exist." % clip(path.name))
    _trace.name_from(path.parent)
    try:
        module = _import(path)
    except BaseException as error:
        told = _explain(path, error), _trace.sentence(error, path), _trace.lines(error)
        raise Unusable(*told) from None
    return Handler(path, module)


def _import(path: Path) -> ModuleType:
    """Imports by path, under a name by which other modules can import it too."""
    folder = path.parent
    name = path.stem
    _compile_anew(folder)
    if (folder / "__init__.py").is_file() or folder.name == "protocol":
        sys.path.insert(1, str(folder.parent))
        sys.path.insert(2, str(folder))
        importlib.import_module(folder.name)
        name = "%s.%s" % (folder.name, name)
    else:
        sys.path.insert(1, str(folder))
        if name in sys.modules or name in getattr(sys, "stdlib_module_names", ()):
            name = "wharf_handler_" + name
    loader = _Source(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None or spec.loader is None:
        raise ImportError("not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class _Source(machinery.SourceFileLoader):
    """Compiles a file each time it is imported.

    What lies in `__pycache__` is no part of what was approved, so it is not what runs.
    """

    def get_code(self, fullname: str) -> Optional[CodeType]:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _compile_anew(folder: Path) -> None:
    """Has all modules of a handler's folder compiled from their source.

    What is installed elsewhere, or in a virtual environment that lies in the folder, was compiled
    when it was installed, and starts as fast as ever.
    """
    own, above = os.path.join(str(folder), ""), str(folder.parent)
    installed = os.path.join(sys.prefix, "")
    finder = machinery.FileFinder.path_hook(
        (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
        (_Source, machinery.SOURCE_SUFFIXES),
        (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
    )

    def find(path: str) -> Any:
        is_own = path == above or os.path.join(path, "").startswith(own)
        if not is_own or (installed.startswith(own) and path.startswith(installed)):
            raise ImportError("not of the handler's folder", path=path)
        return finder(path)

    sys.path_hooks.insert(0, find)
    for path in [path for path in sys.path_importer_cache if path.startswith(above)]:
        del sys.path_importer_cache[path]


def _explain(path: Path, error: BaseException) -> str:
    """One sentence for callers: what is wrong and where, without the folders of this machine."""
    what = type(error).__name__
    if isinstance(error, SyntaxError):
        where = os.path.basename(error.filename or path.name)
        text = "The handler cannot be read: %s in %s, line %s: %s."
        return text % (what, where, error.lineno, _short(error.msg))
    if isinstance(error, ImportError):
        what = "%s: %s" % (what, _short(str(error).split(" (/")[0]))
    line = _trace.line_in(error, path)
    where = path.name if line is None else "%s, line %d" % (path.name, line)
    return "The handler cannot be imported: %s in %s." % (what, where)


def _short(text: str) -> str:
    return " ".join(clip(text, TEXT_CHARACTERS_MAX).split()).rstrip(".")

"""What a docstring says of parameters, in the styles that are common.

Google (`Args:` with indented `name: text`), NumPy (`Parameters` above a line of dashes) and reST
(`:param name: text`).
"""

from __future__ import annotations

import inspect
import re
from typing import Dict, List, Optional, Tuple

SECTIONS = ("args", "arguments", "parameters", "params", "keyword args", "other parameters")
ATTRIBUTES = ("attributes", "fields")
# Sections that end the one about parameters.
OTHERS = (
    *("returns", "return", "yields", "yield", "raises", "examples", "example", "note", "notes"),
    *("see also", "warning", "warnings", "todo", "references", "warns", "receives", "methods"),
)
GOOGLE = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)\Z")
NUMPY = re.compile(r"\*{0,2}(\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?\Z")
FIELD = re.compile(
    r":(?:param|parameter|arg|argument|key|attr|ivar)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)\Z"
)
TAG = re.compile(r":\w+[^:]*:")


def summary(doc: Optional[str]) -> str:
    """What the first paragraph says, on one line."""
    said: List[str] = []
    for line in inspect.cleandoc(doc or "").split("\n"):
        text = line.strip()
        if not text or TAG.match(text) or _section(text) is not None:
            break
        said.append(text)
    return " ".join(said)


def parameters(doc: Optional[str]) -> Dict[str, str]:
    """What is said of each parameter or attribute, by name."""
    lines = inspect.cleandoc(doc or "").split("\n")
    found: Dict[str, List[str]] = {}
    _fields(lines, found)
    at = 0
    while at < len(lines):
        title = _section(lines[at].strip())
        if title not in SECTIONS + ATTRIBUTES:
            at += 1
            continue
        underlined = at + 1 < len(lines) and re.match(r"\s*-{3,}\s*\Z", lines[at + 1])
        body, end = _body(lines, at + (2 if underlined else 1), bool(underlined))
        (_numpy if underlined else _google)(body, found)
        at = max(end, at + 1)
    return {name: " ".join(part for part in parts if part) for name, parts in found.items()}


def _section(line: str) -> Optional[str]:
    """The title of a section, in lower case, if the line is one."""
    title = line.rstrip(":").strip().lower()
    known = SECTIONS + ATTRIBUTES + OTHERS
    return title if title in known and (line.endswith(":") or line[:1].isupper()) else None


def _body(lines: List[str], begin: int, underlined: bool) -> Tuple[List[str], int]:
    """The lines of a section, and where it ends."""
    at = begin
    while at < len(lines):
        line = lines[at]
        if line.strip() and not line.startswith((" ", "\t")):
            if not underlined or (at + 1 < len(lines) and lines[at + 1].startswith("---")):
                break
        at += 1
    return lines[begin:at], at


def _google(body: List[str], found: Dict[str, List[str]]) -> None:
    indents = [len(line) - len(line.lstrip()) for line in body if line.strip()]
    first = min(indents, default=0)
    name = ""
    for line in body:
        text = line.strip()
        entry = GOOGLE.match(text) if text else None
        if entry is not None and len(line) - len(line.lstrip()) == first:
            name = entry.group(1)
            found[name] = [entry.group(2)]
        elif name and text:
            found[name].append(text)


def _numpy(body: List[str], found: Dict[str, List[str]]) -> None:
    names: List[str] = []
    for line in body:
        text = line.strip()
        if text and not line.startswith((" ", "\t")):
            entry = NUMPY.match(text)
            names = re.findall(r"\w+", entry.group(1)) if entry is not None else []
            found.update({name: [] for name in names})
        else:
            for name in names:
                found[name].append(text)


def _fields(lines: List[str], found: Dict[str, List[str]]) -> None:
    name = ""
    for line in lines:
        text = line.strip()
        entry = FIELD.match(text)
        if entry is not None:
            name = entry.group(1)
            found[name] = [entry.group(2)]
        elif not text or TAG.match(text) or not line.startswith((" ", "\t")):
            name = ""
        elif name:
            found[name].append(text)

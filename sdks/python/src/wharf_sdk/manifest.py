"""`python3 -m wharf_sdk.manifest handler.py`: a `wharf.tool.toml` to begin with.

It has what the code does not say, each with a comment, to be decided. What the code says (inputs,
outputs, description, mock mode) is read when the tool is added and stands nowhere else, unless
`--schemas` asks for it: a server that runs elsewhere is described by its manifest alone.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ._load import Unusable, imported
from .handler import Tool

REFERENCE = re.compile(r"[a-z0-9_-]{1,128}/[a-z0-9_-]{1,128}@[0-9]{1,9}\Z")
BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def load(path: Path, function: Optional[str] = None) -> Tool:
    """The tool of a handler file; `function` names it where there are several."""
    handler = imported(str(path))
    found = handler.choose(function)
    if not isinstance(found, Tool):
        raise Unusable("The handler file %s has no function under `@tool`." % path.name)
    return found


def _reference(text: str) -> str:
    if not REFERENCE.match(text):
        why = "%r is no reference: it must be namespace/name@version in lower case, such as %s"
        raise argparse.ArgumentTypeError(why % (text, _suggestion(text)))
    return text


def _suggestion(text: str) -> str:
    """The reference that was probably meant."""
    plain, _, version = text.lower().partition("@")
    words = [re.sub(r"[^a-z0-9_-]+", "-", word).strip("-") for word in plain.split("/")]
    words = [word for word in words if word]
    if not words:
        return "acme/shout@1"
    return "%s@%s" % ("/".join((["example"] + words)[-2:]), version if version.isdigit() else "1")


def skeleton(reference: str, handler: str, function: Optional[str] = None) -> List[str]:
    """The lines of a manifest."""
    lines = [
        "ref = %s" % _value(reference),
        "handler = %s" % _value(handler),
        "timeout_s = 600",
        "# The most a run costs, in millionths of a dollar; or free = true if it never costs anything.",
        "# max_cost_micro = 1000",
        "# Whether a run acts on the world; one that does not may be tried again.",
        "side_effects = true",
        "# Secrets it reads from WHARF_SECRETS_DIR, and what else it may do.",
        "secrets = []",
        "permissions = []",
    ]
    if function is not None:
        lines.insert(2, "function = %s" % _value(function))
    return lines


def described(tool: Tool) -> List[str]:
    """The lines that say what the code says."""
    lines = [
        "description = %s" % _value(tool.description or tool.name),
        "# Whether the handler looks at the mode and can pretend.",
        "mock = %s" % _value(tool.mock),
        *_table("input_schema", tool.schema()),
    ]
    outputs = tool.output_schema()
    return lines if outputs is None else lines + _table("output_schema", outputs)


def _table(name: str, table: Mapping[str, Any]) -> List[str]:
    """A table and the tables within it."""
    lines = ["", "[%s]" % name]
    inner: Dict[str, Mapping[str, Any]] = {}
    for key, value in table.items():
        if isinstance(value, Mapping) and value:
            inner["%s.%s" % (name, _key(key))] = value
        elif value is not None:
            lines.append("%s = %s" % (_key(key), _value(value)))
    for place, value in inner.items():
        lines += _table(place, value)
    return lines


def _key(key: str) -> str:
    return key if BARE.match(key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = ["%s = %s" % (_key(k), _value(v)) for k, v in value.items() if v is not None]
        return "{ %s }" % ", ".join(pairs) if pairs else "{}"
    if isinstance(value, (list, tuple)):
        return "[%s]" % ", ".join(_value(one) for one in value if one is not None)
    if isinstance(value, str):
        # JSON's escapes are those of TOML, which also wants the last control character escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Prints the manifest of a handler."""
    parser = argparse.ArgumentParser(prog="python3 -m wharf_sdk.manifest", description=__doc__)
    parser.add_argument("handler", type=Path, help="the handler's file")
    parser.add_argument(
        "--ref", type=_reference, help="the tool's reference, such as acme/shout@1"
    )
    parser.add_argument("--function", help="the tool of a file that has several")
    parser.add_argument(
        "--schemas", action="store_true", help="say also what the code says, for a tool elsewhere"
    )
    given = parser.parse_args(arguments)
    try:
        tool = load(given.handler, given.function)
    except Unusable as error:
        raise SystemExit("error: " + error.problem) from None
    name = tool.name if tool.name != "entry" else given.handler.resolve().parent.name
    reference = given.ref or "example/%s@1" % re.sub(r"[^a-z0-9_-]+", "-", name.lower())
    lines = skeleton(reference, given.handler.name, given.function)
    if given.schemas:
        lines += described(tool)
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

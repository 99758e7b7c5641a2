"""`python3 -m wharf_sdk.manifest handler.py`: a `wharf.tool.toml` to begin with.

What the handler says of itself (description, inputs, outputs) is filled in; the rest stands there
with a comment, to be decided.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

from .handler import Tool

BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def load(path: Path) -> Tool:
    """The tool of a handler file."""
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location("wharf_handler_" + path.stem, path)
    if spec is None or spec.loader is None:
        raise SystemExit("%s is not a Python file." % path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    entry = getattr(module, "entry", None)
    if not isinstance(entry, Tool):
        raise SystemExit("%s has no function under `@tool`." % path)
    return entry


def skeleton(tool: Tool, reference: str, handler: str) -> str:
    """The text of a manifest."""
    lines = [
        "ref = %s" % _value(reference),
        "description = %s" % _value(tool.description or tool.name),
        "handler = %s" % _value(handler),
        "timeout_s = 600",
        "# The most a run costs, in millionths of a dollar; or free = true if it never costs anything.",
        "# max_cost_micro = 1000",
        "# Whether a run acts on the world; one that does not may be tried again.",
        "side_effects = true",
        "# Whether the handler looks at the mode and can pretend.",
        "mock = false",
        "# Secrets it reads from WHARF_SECRETS_DIR, and what else it may do.",
        "secrets = []",
        "permissions = []",
    ]
    lines += _table("input_schema", tool.schema())
    outputs = tool.output_schema()
    if outputs is not None:
        lines += _table("output_schema", outputs)
    return "\n".join(lines) + "\n"


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
    parser.add_argument("--ref", help="the tool's reference, such as acme/shout@1")
    given = parser.parse_args(arguments)
    tool = load(given.handler)
    name = tool.name if tool.name != "entry" else given.handler.resolve().parent.name
    reference = given.ref or "example/%s@1" % re.sub(r"[^a-z0-9_-]+", "-", name.lower())
    sys.stdout.write(skeleton(tool, reference, given.handler.name))
    return 0


if __name__ == "__main__":
    sys.exit(main())

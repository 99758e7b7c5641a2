"""The operative {{id}}: tools that are there for as long as this program runs."""

from __future__ import annotations

import sys
from typing import Any, Dict, List

from wharf_sdk import Fault, Operative, Request, WharfError

operative = Operative("{{id}}")

said: List[str] = []


@operative.tool
def say(text: str, request: Request) -> Dict[str, Any]:
    "Says something where this program runs."
    if not text.strip():
        raise Fault("{{code}}.nothing", "There is nothing to say.")
    request.progress(0.5, "clearing the throat")
    print("{{id}} says: %s" % text, flush=True)
    said.append(text)
    return {"said": text, "times": len(said)}


def ready(tools: List[str]) -> None:
    print("serving %s; Ctrl-C ends it" % ", ".join(tools), file=sys.stderr, flush=True)


def main() -> int:
    try:
        operative.run(ready)
    except WharfError as error:
        print("error: %s" % error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A worker in plain Python: it fetches its prompt, does its work, and gives its result.

All it knows stands in its environment; its handle is good for this one task and nothing else.
"""
from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.request

URL = os.environ["WHARF_BASE_URL"]
TASK = os.environ["WHARF_TASK_ID"]
HANDLE = os.environ["WHARF_WORKER_HANDLE"]
PAUSE = float(os.environ.get("WORKER_PAUSE", "0"))


def call(method: str, path: str, body: bytes | None = None) -> bytes:
    """Asks the core, and goes on asking while it is away or has not found the task again."""
    request = urllib.request.Request(f"{URL}/v1/worker/{path}", body, method=method)
    request.add_header("authorization", f"Bearer {HANDLE}")
    request.add_header("content-type", "application/json")
    pause, patience = 0.1, time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            if error.code not in (401, 502, 503) or time.monotonic() > patience:
                sys.exit(f"refused: {error.code} {error.read().decode(errors='replace')}")
        except OSError as error:
            if time.monotonic() > patience:
                sys.exit(f"the core is away: {error}")
        time.sleep(pause)
        pause = min(pause * 2, 2.0)


def main() -> None:
    prompt = json.loads(call("GET", f"prompt?task_id={TASK}"))["prompt"]
    time.sleep(PAUSE)
    result = {"words": len(prompt.split()), "shout": prompt.upper()}
    call("POST", f"submit?task_id={TASK}", json.dumps(result).encode())


if __name__ == "__main__":
    main()

"""`python3 -m wharf_sdk.vendor FOLDER`: the runtime of an agent, copied beside the agent.

A fenced agent sees its own folder and the interpreter, so that an agent which should run on
machines where nothing is installed brings its runtime along: one file, `wharf_agent.py`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Optional, Sequence

RUNTIME = Path(__file__).with_name("wharf_agent.py")


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Copies the file; with `--check` only says whether the copies are those of this version."""
    parser = argparse.ArgumentParser(prog="python3 -m wharf_sdk.vendor", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--check", action="store_true", help="copy nothing, compare")
    given = parser.parse_args(arguments)
    differing = 0
    for folder in given.folders:
        target = folder / RUNTIME.name
        if target.is_file() and target.read_bytes() == RUNTIME.read_bytes():
            continue
        differing += 1
        if not given.check:
            shutil.copyfile(RUNTIME, target)
        print("%s %s" % ("differs:" if given.check else "written:", target))
    return 1 if given.check and differing else 0


if __name__ == "__main__":
    sys.exit(main())

"""bubblewrap: a program in a sandbox, beside Wharf's launcher, both measured by `wharf-bench`."""

from __future__ import annotations

import json
import re

from harness import install
from harness.callers import Sample
from harness.children import Broken, environment, run
from harness.peer import Peer, Work

WRAPPED = "the same under bubblewrap, p50"
LAUNCHED = "launch a program under `{level}` until it runs, p50"
NOTE = (
    "bubblewrap until /bin/true has ended, Wharf until it runs, after control groups, limits, "
    "Landlock and a supervisor that bubblewrap does not have"
)


def figures(text: str) -> dict[str, float]:
    """The figures of all parts in what `wharf-bench` wrote, by name."""
    parts = json.loads(text)["parts"].values()
    return {it["name"]: it["value"] for part in parts for it in part["figures"]}


class Bubblewrap(Peer):
    name = "bubblewrap"
    title = "bubblewrap"
    about = "--unshare-all --die-with-parent --ro-bind / /"
    sync = "none"

    def install(self) -> None:
        self.bwrap = install.system_package("bwrap", "bubblewrap")

    def version(self) -> str:
        said = run([self.bwrap, "--version"], env=environment(install.PLACE / "home"))
        return re.sub(r"^bubblewrap ", "", said.strip())

    def works(self, wharf) -> list[Work]:
        bench = wharf.program.with_name("wharf-bench")
        if not bench.exists():
            raise Broken(f"{bench} is missing; make bench-peers builds it")
        self.figures: dict[str, float] = {}

        def launched(level: str):
            return lambda _callers, _seconds: self.told(bench, LAUNCHED.format(level=level))

        return [
            Work(
                title="start of /bin/true in a sandbox",
                callers=1,
                measure=lambda _callers, _seconds: self.told(bench, WRAPPED),
                beside={level: launched(level) for level in ("standard", "basic", "strict")},
                figure="ms",
                unit="ms",
                better="lower",
                note=NOTE,
                rounds_max=6,
            )
        ]

    def told(self, bench, name: str) -> Sample:
        """One figure of a run of `wharf-bench`, in which all kinds of starts take turns."""
        if name not in self.figures:
            file = self.folder / "fence.json"
            words = [bench, "--quick", "--only", "fence", "--json", file]
            run(words, env=environment(self.folder / "home"), seconds=120)
            self.figures = figures(file.read_text())
        value = self.figures.pop(name, None)
        if value is None:
            raise Broken(f"wharf-bench did not measure “{name}”: does bwrap work here?")
        return Sample({"ms": value})

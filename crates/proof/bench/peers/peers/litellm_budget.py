"""LiteLLM: its router with a budget for one call, and a model that counts who gets through."""

from __future__ import annotations

from harness import install
from harness.callers import Sample, python_caller
from harness.peer import Peer, Work

CALLERS = 64


class LiteLlm(Peer):
    name = "litellm"
    title = "LiteLLM, budget of a provider"
    about = "its router, before a model on this machine that counts"
    sync = "none: in memory"

    def install(self) -> None:
        self.bin = install.venv("litellm")

    def version(self) -> str:
        return install.version_of("litellm", "litellm")

    def works(self, wharf) -> list[Work]:
        return [
            Work(
                title="64 calls at once on a budget for one: calls that were made",
                callers=CALLERS,
                measure=self.admitted,
                beside={"Python agent, budget of a world": wharf.admitted},
                figure="executed",
                unit="calls",
                better="lower",
                note="right is 1; LiteLLM counts what was spent after a call, Wharf sets money "
                "aside before it",
                ratio=False,
                rounds_max=3,
            )
        ]

    def admitted(self, callers: int, _seconds: float) -> Sample:
        """A program of its own each time: what was spent is kept by the process."""
        caller = python_caller(self.bin, "litellm_caller.py", [], self.log("caller"))
        try:
            answer = caller.ask({"do": "admitted", "calls": callers}, 90)[0]
        finally:
            caller.stop()
        return Sample({"executed": float(answer["executed"])})

"""DBOS on SQLite: a library, so the program that calls does the work and keeps the records."""

from __future__ import annotations

from harness import install
from harness.callers import python_caller
from harness.peer import Peer, Work, calls


class Dbos(Peer):
    name = "dbos"
    title = "DBOS on SQLite"
    about = "the caller's own process"
    sync = "SQLite with a rollback journal, synchronous = FULL (its defaults)"
    keeps_records = True

    def install(self) -> None:
        self.bin = install.venv("dbos")

    def version(self) -> str:
        return install.version_of("dbos", "dbos")

    def start_callers(self) -> None:
        words = [self.folder / "dbos.sqlite", self.ledger()]
        self.callers.append(python_caller(self.bin, "dbos_caller.py", words, self.log("caller")))

    def works(self, wharf) -> list[Work]:
        def of(name: str):
            caller = self.callers[0]
            return lambda callers, seconds: caller.measure(name, callers, seconds)

        beside = wharf.durable("Python agent", "built-in tool")
        return [
            calls("durable echo", 1, of("echo"), beside),
            calls("durable echo", 64, of("echo"), beside),
            calls("three durable steps", 1, of("steps"), wharf.three_steps()),
        ]

    def kill(self) -> None:
        for caller in self.callers:
            caller.kill()
        self.callers.clear()

    def flood(self, command: dict) -> None:
        self.callers[0].begin(command)

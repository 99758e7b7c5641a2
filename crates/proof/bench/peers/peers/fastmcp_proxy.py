"""FastMCP as a proxy before a server of MCP, beside Wharf before the same server."""

from __future__ import annotations

from harness import install
from harness.callers import python_environment
from harness.children import Child
from harness.http import listens
from harness.machine import free_port
from harness.peer import Work, calls

from .mcp_sdks import McpTypeScript


class FastMcp(McpTypeScript):
    name = "fastmcp"
    title = "FastMCP as a proxy"
    about = "client and server on the MCP TypeScript SDK"

    def install(self) -> None:
        super().install()
        self.bin = install.venv("fastmcp")

    def version(self) -> str:
        return install.version_of("fastmcp", "fastmcp")

    def works(self, wharf) -> list[Work]:
        behind = self.start_http_server()
        proxied = self.measured({"url": self.start_proxy(behind)})
        wharf.api("/v1/mcp", {"name": self.name, "url": behind, "approve": True})
        there = {"url": f"{wharf.url}/mcp/{self.name}", "token": wharf.token}
        durable = self.measured({**there, "durability": "journal"})
        ours = {"in memory": self.measured(there), "durable": durable}
        title = "call through a proxy, over HTTP"
        return [calls(title, many, proxied, ours) for many in (1, 64)]

    def start_proxy(self, behind: str) -> str:
        port = free_port()
        command = [self.bin / "python", install.HERE / "fastmcp_proxy.py", behind, str(port)]
        env = python_environment(self.folder)
        proxy = self.keep(Child(command, log=self.log("proxy"), env=env))
        proxy.wait_until(lambda: listens(port), "its port")
        self.check_loopback()
        return f"http://127.0.0.1:{port}/mcp"

"""A server of MCP that gives a text back: `mcp_server.py stdio|http`."""

import socket
import sys

from mcp.server import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("echo", log_level="ERROR")


@server.tool(annotations=ToolAnnotations(readOnlyHint=True), structured_output=False)
async def echo(text: str) -> str:
    """Gives a text back."""
    return text


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    port = free_port()
    print(f"listening on http://127.0.0.1:{port}/mcp", flush=True)
    server.run("streamable-http", host="127.0.0.1", port=port, json_response=True)

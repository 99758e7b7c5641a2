"""A client of MCP that calls: `mcp_caller.py ENDPOINT`."""

import asyncio
import json
import sys
import time

from loop import serve
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

ENDPOINT = json.loads(sys.argv[1])
TOKEN = ENDPOINT.get("token")


def server():
    if "stdio" in ENDPOINT:
        command, *args = ENDPOINT["stdio"]
        return StdioServerParameters(command=command, args=args)
    headers = {"authorization": f"Bearer {TOKEN}"} if TOKEN else {}
    return streamable_http_client(ENDPOINT["url"], http_client=create_mcp_http_client(headers))


async def connected():
    """A server that says where it listens may listen a moment later."""
    end = time.monotonic() + 20
    while True:
        try:
            client = Client(server())
            await client.__aenter__()
            return client
        except Exception:
            if time.monotonic() > end:
                raise
            await asyncio.sleep(0.1)


async def main():
    client = await connected()
    more = {"meta": {"dev.wharf/run": {"durability": "memory"}}} if TOKEN else {}
    await client.list_tools()

    async def echo(text):
        result = await client.call_tool("echo", {"text": text}, **more)
        return result.content[0].text

    await serve({"echo": echo})


asyncio.run(main())

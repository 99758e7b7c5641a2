"""FastMCP's client, `fastmcp` 4.x."""

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

import play
from play import ASKED, HEADERS, MODE, URL, show


async def elicited(message, _kind, _params, _context):
    show(asked=message)
    return ElicitResult(**ASKED["answer"])


async def progressed(_progress, _total, message):
    show(progress=message)


async def main():
    if "stdio" in ASKED:
        command, *args = ASKED["stdio"]
        server = StdioTransport(command, args)
    else:
        server = StreamableHttpTransport(URL, headers=HEADERS)
    handler = {"elicitation_handler": elicited} if "answer" in ASKED else {}
    async with Client(server, mode=MODE, **handler) as client:

        async def about(_):
            return {"version": client.protocol_version}

        async def tools(_):
            return [tool.name for tool in await client.list_tools()]

        async def call(given):
            return await client.call_tool_mcp(
                given["name"],
                given.get("arguments") or {},
                progress_handler=progressed,
                meta=given.get("_meta"),
            )

        async def resources(_):
            return [str(it.uri) for it in await client.list_resources()]

        async def read(given):
            return await client.read_resource_mcp(given["uri"])

        async def prompts(_):
            return [it.name for it in await client.list_prompts()]

        async def prompt(given):
            return await client.get_prompt_mcp(given["name"], given.get("arguments"))

        await play.play(locals())


play.run(main)

"""The official client of Python, `mcp` 2.x."""

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp_types import ElicitResult

import play
from play import ASKED, HEADERS, MODE, URL, show


async def elicited(_context, params):
    show(asked=params.message)
    return ElicitResult(**ASKED["answer"])


async def progressed(_progress, _total, message):
    show(progress=message)


async def main():
    if "stdio" in ASKED:
        command, *args = ASKED["stdio"]
        server = StdioServerParameters(command=command, args=args)
    else:
        server = streamable_http_client(URL, http_client=create_mcp_http_client(HEADERS))
    callback = elicited if "answer" in ASKED else None
    async with Client(server, mode=MODE, elicitation_callback=callback) as client:

        async def about(_):
            return {"version": client.protocol_version}

        async def tools(_):
            return [tool.name for tool in (await client.list_tools()).tools]

        async def call(given):
            return await client.call_tool(
                given["name"],
                given.get("arguments"),
                progress_callback=progressed,
                meta=given.get("_meta"),
            )

        async def resources(_):
            return [str(it.uri) for it in (await client.list_resources()).resources]

        async def read(given):
            return await client.read_resource(given["uri"])

        async def prompts(_):
            return [it.name for it in (await client.list_prompts()).prompts]

        async def prompt(given):
            return await client.get_prompt(given["name"], given.get("arguments"))

        await play.play(locals())


play.run(main)

"""The GraphQL API of a running core, used as its users do: by the library `gql`.

    graphql_client.py URL TOKEN READER

TOKEN may do everything, READER may only read. Whatever does not come as it should ends the
program with an error.
"""

import asyncio
import sys

from gql import Client, gql
from gql.transport.aiohttp import AIOHTTPTransport
from gql.transport.exceptions import TransportQueryError
from gql.transport.websockets import WebsocketsTransport

CREATE = gql(
    """
    mutation ($input: CreateRunInput!) { createRun(input: $input) { runId world status } }
    """
)
EVENTS = gql(
    """
    subscription ($id: String!, $after: Int64) {
      runEvents(id: $id, after: $after) {
        seq type data
        run { status outputs artifacts { uri bytes } receipt { bytesIn bytesOut overHold } }
      }
    }
    """
)
FILES = gql(
    """
    query ($path: String!) {
      artifacts(prefix: "/") { edges { node { path bytes runId } } }
      trace(path: $path) { madeFrom { runId files { path } } }
      world(id: "default") { usage { files } }
    }
    """
)


def http(url, token):
    return AIOHTTPTransport(url=url, headers={"Authorization": f"Bearer {token}"})


async def make(url, token):
    """Makes a run that reads a file and writes one."""
    run = {
        "tool": "wharf/echo",
        "runId": "copy",
        "inputs": {"text.world": "/in.txt"},
        "outputs": {"text.world": "/out.txt"},
    }
    transport = http(url, token)
    async with Client(transport=transport, fetch_schema_from_transport=True) as session:
        tool = await session.execute(gql('{ tool(id: "wharf/echo") { toolId state } }'))
        assert tool == {"tool": {"toolId": "wharf/echo", "state": "available"}}, tool
        made = await session.execute(CREATE, variable_values={"input": run})
        assert made["createRun"]["runId"] == "copy", made
        assert made["createRun"]["world"] == "default", made
    return run


async def follow(url, token):
    """Follows the run to its end, and once more from behind its first event."""
    headers = {"Authorization": f"Bearer {token}"}
    transport = WebsocketsTransport(url=url.replace("http://", "ws://"), headers=headers)
    async with Client(transport=transport) as session:

        async def events(after):
            variables = {"id": "copy", "after": after}
            stream = session.subscribe(EVENTS, variable_values=variables)
            return [event["runEvents"] async for event in stream]

        told = await events(None)
        kinds = [event["type"] for event in told]
        assert kinds[:2] == ["queued", "started"] and kinds[-1] == "finished", kinds
        end = told[-1]["run"]
        assert end["status"] == "succeeded", end
        assert end["outputs"] == {"text": "world://default/out.txt"}, end
        written = [file for file in end["artifacts"] if file["uri"].endswith("/out.txt")]
        assert len(written) == 1 and int(written[0]["bytes"]) > 0, end
        receipt = end["receipt"]
        assert receipt["bytesOut"] == written[0]["bytes"] and not receipt["overHold"], end
        assert await events(told[0]["seq"]) == told[1:]


async def look(url, token):
    """Looks at what the run has left behind."""
    async with Client(transport=http(url, token)) as session:
        found = await session.execute(FILES, variable_values={"path": "/out.txt"})
        files = {edge["node"]["path"]: edge["node"] for edge in found["artifacts"]["edges"]}
        assert sorted(files) == ["/in.txt", "/out.txt"], files
        assert files["/in.txt"]["runId"] is None and files["/out.txt"]["runId"] == "copy", files
        made_from = [{"runId": "copy", "files": [{"path": "/in.txt"}]}]
        assert found["trace"]["madeFrom"] == made_from, found
        assert found["world"]["usage"]["files"] == "2", found


async def refused(url, token, run):
    """Asks for a run with a token that may only read."""
    async with Client(transport=http(url, token)) as session:
        shown = await session.execute(gql('{ run(id: "copy") { status } }'))
        assert shown == {"run": {"status": "succeeded"}}, shown
        try:
            await session.execute(CREATE, variable_values={"input": {**run, "runId": "more"}})
        except TransportQueryError as error:
            assert error.errors[0]["extensions"]["code"] == "permission.denied", error
        else:
            raise AssertionError("a reader must not start runs")


async def main(url, token, reader):
    run = await make(url, token)
    await follow(url, reader)
    await look(url, reader)
    await refused(url, reader, run)


asyncio.run(asyncio.wait_for(main(*sys.argv[1:4]), timeout=60))
print("all good")

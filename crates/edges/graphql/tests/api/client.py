"""Uses the GraphQL API by the library `gql`: queries and mutations over HTTP, events by WebSocket.

    client.py URL TOKEN

The schema is fetched first, so that the library checks every document against it. Whatever does
not come as it should ends the program with an error.
"""

import asyncio
import sys

from gql import Client, gql
from gql.transport.aiohttp import AIOHTTPTransport
from gql.transport.aiohttp_websockets import AIOHTTPWebsocketsTransport
from gql.transport.exceptions import TransportQueryError
from gql.transport.websockets import WebsocketsTransport

CREATE = gql(
    """
    mutation ($input: CreateRunInput!) {
      createRun(input: $input) { runId status costMicro inputs }
    }
    """
)
RUNS = gql(
    """
    query ($first: Int, $after: String) {
      runs(tool: "wharf/count", first: $first, after: $after) {
        edges { cursor node { runId status } }
        pageInfo { hasNextPage endCursor }
      }
    }
    """
)
EVENTS = gql(
    """
    subscription ($id: String!, $after: Int64) {
      runEvents(id: $id, after: $after) { seq type data run { status outputs costMicro } }
    }
    """
)


async def over_http(url, headers):
    transport = AIOHTTPTransport(url=url, headers=headers)
    async with Client(transport=transport, fetch_schema_from_transport=True) as session:
        ids = []
        for number in range(3):
            run = {"tool": "wharf/count", "inputs": {"n": 2, "delay_ms": 0}, "runId": f"c{number}"}
            made = await session.execute(CREATE, variable_values={"input": run})
            assert made["createRun"]["inputs"] == run["inputs"], made
            assert made["createRun"]["costMicro"] == "0", made
            ids.append(made["createRun"]["runId"])

        seen, after = [], None
        while True:
            page = await session.execute(RUNS, variable_values={"first": 2, "after": after})
            seen += [edge["node"]["runId"] for edge in page["runs"]["edges"]]
            if not page["runs"]["pageInfo"]["hasNextPage"]:
                break
            after = page["runs"]["pageInfo"]["endCursor"]
        assert seen == list(reversed(ids)), seen

        try:
            await session.execute(gql('{ run(id: "none") { runId } }'))
        except TransportQueryError as error:
            assert error.errors[0]["extensions"]["code"] == "run.not_found", error
        else:
            raise AssertionError("there is no such run")
        return ids[0]


async def over_websocket(transport, run):
    async with Client(transport=transport) as session:
        variables = {"id": run, "after": None}
        told = [
            event["runEvents"]
            async for event in session.subscribe(EVENTS, variable_values=variables)
        ]
        kinds = [event["type"] for event in told]
        assert kinds[:2] == ["queued", "started"] and kinds[-1] == "finished", kinds
        text = "".join(event["data"]["text"] for event in told if event["type"] == "text")
        assert text == "1\n2\n", text
        assert told[-1]["run"] == {
            "status": "succeeded",
            "outputs": {"n": 2, "sum": 3},
            "costMicro": "0",
        }, told[-1]

        variables["after"] = told[1]["seq"]
        rest = [
            event["runEvents"]
            async for event in session.subscribe(EVENTS, variable_values=variables)
        ]
        assert rest == told[2:], rest

        tool = await session.execute(gql('{ tool(id: "wharf/count") { name state } }'))
        assert tool == {"tool": {"name": "count", "state": "available"}}, tool


async def main(url, token):
    headers = {"Authorization": f"Bearer {token}"}
    run = await over_http(url, headers)
    socket = url.replace("http://", "ws://")
    for protocols in ["graphql-transport-ws"], ["graphql-ws"], ["graphql-ws", "graphql-transport-ws"]:
        for transport in WebsocketsTransport, AIOHTTPWebsocketsTransport:
            opened = transport(url=socket, headers=headers, subprotocols=protocols)
            await over_websocket(opened, run)


asyncio.run(asyncio.wait_for(main(sys.argv[1], sys.argv[2]), timeout=30))
print("all good")

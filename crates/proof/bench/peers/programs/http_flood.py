"""Submits calls over plain HTTP: `http_flood.py KIND ADDRESS [TOKEN TOOL]`."""

import asyncio
import http.client
import json
import sys
import threading

from loop import serve

KIND, ADDRESS, *REST = sys.argv[1:]
OWN = threading.local()


def post(path, body, headers=()):
    if not hasattr(OWN, "connection"):
        OWN.connection = http.client.HTTPConnection(ADDRESS, timeout=10)
    headers = {"content-type": "application/json", **dict(headers)}
    OWN.connection.request("POST", path, json.dumps(body), headers)
    answer = OWN.connection.getresponse()
    text = answer.read()
    if answer.status >= 300:
        raise RuntimeError(f"{answer.status} {text[:200]!r}")


def to_restate(name):
    post("/bench/work/send", {"text": name})


def to_wharf(name):
    token, tool = REST
    body = {"tool": tool, "run_id": name, "inputs": {"text": name}}
    post("/v1/runs", body, {"authorization": f"Bearer {token}"})


asyncio.run(serve({}, {"restate": to_restate, "wharf": to_wharf}[KIND]))

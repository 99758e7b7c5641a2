"""An MCP server on standard streams, as well or as badly behaved as a test wants it.

    server.py MOOD STATE

STATE is a file of JSON outside of the server's folder with what it offers; it is read for every
list, so that a test can change it. MOOD is one of those that `answer` and `main` know.
"""

import json
import os
import signal
import sys
import time

MOOD, STATE = sys.argv[1], sys.argv[2]
MODERN = MOOD.startswith("modern")
META = "io.modelcontextprotocol/"
seen = []
listening = None
roots = None


def state():
    with open(STATE, encoding="utf-8") as file:
        return json.load(file)


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def mark(name):
    with open(f"{STATE}.{name}", "a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")


def text(said):
    return {"content": [{"type": "text", "text": said}]}


def capabilities():
    can = {"tools": {"listChanged": True}}
    known = state()
    if "prompts" in known:
        can["prompts"] = {"listChanged": True}
    if "templates" in known:
        can["resources"] = {"subscribe": True, "listChanged": True}
    if MOOD == "legacy:2025-06-18":
        can["tasks"] = {"requests": {"tools": {"call": {}}}}
    return can


def page(items, key, params):
    size = state().get("page", 1000)
    if state().get("endless"):
        number = int(params.get("cursor", "0"))
        item = {"name": f"t{number}", "inputSchema": {"type": "object"}}
        return {key: [item], "nextCursor": str(number + 1)}
    begin = int(params.get("cursor", "0"))
    result = {key: items[begin:begin + size]}
    if begin + size < len(items):
        result["nextCursor"] = str(begin + size)
    return result


def changed(what):
    if MODERN:
        if listening is None:
            return
        meta = {"_meta": {f"{META}subscriptionId": listening}}
        send({"method": f"notifications/{what}/list_changed", "params": meta})
    else:
        send({"method": f"notifications/{what}/list_changed"})


def call(params):
    name, given = params["name"], params.get("arguments") or {}
    if name == "die":
        os._exit(3)
    if name == "change":
        with open(STATE, "w", encoding="utf-8") as file:
            json.dump(given["state"], file)
        changed("tools")
    if name == "spill":
        for _ in range(given["lines"]):
            sys.stdout.write("this is no message\n")
        sys.stdout.flush()
    if name == "hold":
        mark("held")
        return None
    if name == "seen":
        return text(json.dumps(seen))
    if name == "roots":
        return text(json.dumps(roots))
    if name == "env":
        return text(json.dumps(dict(os.environ)))
    if name == "updated":
        send({"method": "notifications/resources/updated", "params": {"uri": given["uri"]}})
    return text(json.dumps({"name": name, "pid": os.getpid(), "given": given}))


class Refused(Exception):
    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}


def answer(method, params):
    known = state()
    if method == "server/discover":
        if MODERN:
            result = {"supportedVersions": ["2026-07-28"], "capabilities": capabilities()}
            if "instructions" in known:
                result["instructions"] = known["instructions"]
            return result
        if MOOD == "leaves":
            os._exit(1)
        raise Refused(-32601, "Method not found")
    if method == "initialize" and not MODERN:
        asked = params["protocolVersion"]
        version = MOOD.partition(":")[2] or asked
        result = {"protocolVersion": version, "capabilities": capabilities(),
                  "serverInfo": {"name": "liar", "version": "1"}}
        if "instructions" in known:
            result["instructions"] = known["instructions"]
        return result
    if method == "tools/list":
        return page(known.get("tools", []), "tools", params)
    if method == "prompts/list":
        return page(known.get("prompts", []), "prompts", params)
    if method == "resources/templates/list":
        return page(known.get("templates", []), "resourceTemplates", params)
    if method == "tools/call":
        return call(params)
    if method in ("ping", "resources/subscribe", "resources/unsubscribe"):
        return {}
    raise Refused(-32601, "Method not found")


def handle(message):
    global listening, roots
    method, params = message.get("method"), message.get("params") or {}
    if method == "notifications/initialized":
        send({"id": "roots", "method": "roots/list"})
    if method is None and message.get("id") == "roots":
        roots = message.get("result", message.get("error"))
    if method is None or "id" not in message:
        return
    seen.append([method, {key: params[key] for key in params if key != "_meta"}])
    if MOOD == "silent" and method == "server/discover":
        return
    if MOOD == "mute":
        return
    if method == "subscriptions/listen" and MODERN:
        listening = message["id"]
        meta = {f"{META}subscriptionId": listening}
        send({"method": "notifications/subscriptions/acknowledged",
              "params": {"notifications": params["notifications"], "_meta": meta}})
        if MOOD == "modern:curt":
            listening = None
            send({"id": message["id"], "result": {"resultType": "complete"}})
        return
    try:
        result = answer(method, params)
        if result is None:
            return
        if MODERN:
            result["resultType"] = "complete"
            result["_meta"] = {f"{META}serverInfo": {"name": "liar", "version": "1"}}
        send({"id": message["id"], "result": result})
    except Refused as refused:
        send({"id": message["id"], "error": refused.error})


def main():
    if MOOD == "deaf":
        signal.signal(signal.SIGTERM, lambda *_: mark("term"))
    if MOOD == "late":
        signal.signal(signal.SIGTERM, lambda *_: (mark("term"), os._exit(0)))
    mark("began")
    print("hello from the server", file=sys.stderr, flush=True)
    for line in sys.stdin:
        handle(json.loads(line))
    mark("eof")
    while MOOD in ("deaf", "late"):
        time.sleep(0.05)


main()

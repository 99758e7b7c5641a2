"""An MCP server whose tools do what a test wants to see, well behaved or not.

    peer.py ERA STATE [--http]

ERA is legacy or modern, STATE the beginning of the names of files with which it and a test talk:
it adds a line to STATE.NAME for what happened, and some tools wait until STATE.NAME is there.
Over HTTP it is modern, and says on standard error where it listens.
"""

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ERA, STATE = sys.argv[1], sys.argv[2]
MODERN = ERA == "modern"
META = "io.modelcontextprotocol/"
TASKS = "io.modelcontextprotocol/tasks"
lock = threading.Lock()


class Refused(Exception):
    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}


def mark(name, line=""):
    with lock, open(f"{STATE}.{name}", "a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def count(name):
    try:
        with open(f"{STATE}.{name}", encoding="utf-8") as file:
            return len(file.readlines())
    except FileNotFoundError:
        return 0


def wait_for(name):
    while not os.path.exists(f"{STATE}.{name}"):
        time.sleep(0.01)


def text(said):
    return {"content": [{"type": "text", "text": said}]}


def shown(value):
    return text(json.dumps(value))


class Call:
    """One request, and the ways to say something before it is answered."""

    asked = 0
    waiting = {}

    def __init__(self, message, send):
        self.id, self.send = message["id"], send
        self.params = message.get("params") or {}
        self.meta = self.params.get("_meta") or {}
        self.given = self.params.get("arguments") or {}

    def tell(self, method, params):
        self.send({"method": method, "params": params})

    def progress(self, progress, total=None, message=None, token=None):
        token = self.meta.get("progressToken") if token is None else token
        told = {"progressToken": token, "progress": progress, "total": total, "message": message}
        told = {key: value for key, value in told.items() if value is not None}
        self.tell("notifications/progress", told)

    def begin_ask(self, method, params):
        with lock:
            Call.asked += 1
            name = f"ask-{Call.asked}"
            answered = threading.Event()
            Call.waiting[name] = [answered, None]
        self.send({"id": name, "method": method, "params": params})
        return name, answered

    def ask(self, key, method, params):
        """The answer of the client; a modern one is asked by the result."""
        if MODERN:
            answers = self.params.get("inputResponses") or {}
            known = json.loads(self.params.get("requestState") or "{}") | answers
            if key not in known:
                requests = {key: {"method": method, "params": params}}
                raise NeedsInput(requests, json.dumps(known))
            return known[key]
        name, answered = self.begin_ask(method, params)
        answered.wait()
        message = Call.waiting.pop(name)[1]
        if "error" in message:
            return {"error": message["error"]}
        return message["result"]


class NeedsInput(Exception):
    def __init__(self, requests, state):
        super().__init__()
        self.result = {"resultType": "input_required", "inputRequests": requests,
                       "requestState": state}


def form(message, **fields):
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    return {"message": message, "requestedSchema": schema}


NUMBER = {"type": "number"}
STRING = {"type": "string"}
tools = {}
definitions = []


def tool(**more):
    def add(run):
        tools[run.__name__] = run
        schema = {"type": "object"}
        definition = {"name": run.__name__, "inputSchema": schema, **more}
        definitions.append(definition)
        return run

    return add


@tool()
def echo(call):
    return shown({"given": call.given, "meta": call.meta})


@tool()
def rich(call):
    return {**shown({"n": 1}), "structuredContent": {"n": 1}, "_meta": {"a": 1}, "vendor": [2]}


FITS = {"type": "object", "properties": {"n": NUMBER}, "required": ["n"]}


@tool(outputSchema=FITS)
def measured(call):
    return {**text("measured"), "structuredContent": call.given["value"]}


@tool()
def wrong(call):
    return {**text("There is no such city.\x1b[2J"), "isError": True}


@tool()
def refuse(call):
    raise Refused(call.given["code"], call.given.get("message", "No."), call.given.get("data"))


@tool()
def large(call):
    image = "AAAA" * 25_000
    return {"content": [{"type": "text", "text": "é" * 50_000},
                        {"type": "image", "data": image, "mimeType": "image/png"},
                        {"type": "text", "text": "short"}]}


@tool()
def huge(call):
    return text("x" * (17 * 1024 * 1024))


@tool()
def die(call):
    mark("died")
    os._exit(7)


@tool(annotations={"readOnlyHint": True})
def die_once(call):
    mark("died")
    if count("died") == 1:
        os._exit(7)
    return text("alive")


@tool()
def strange(call):
    return {"resultType": "banana", **text("strange")}


@tool()
def hold(call):
    mark("held", os.getpid())
    wait_for("release")
    return text("released")


@tool()
def freeze(call):
    mark("held")
    global frozen
    frozen = True
    return None


@tool()
def double(call):
    call.send({"id": call.id, "result": complete(text("first"))})
    call.send({"id": call.id, "result": complete(text("second"))})
    return None


@tool()
def lie(call):
    for other in (call.id + 1000, "nobody", -1):
        call.send({"id": other, "result": complete(text("a lie"))})
        call.progress(1, 2, "a lie", token=other)
    return text("the truth")


@tool()
def advance(call):
    for progress in (10, 5, 10, 50, 20, 100):
        call.progress(progress, 100, f"at {progress}")
    call.progress(200)
    return text("advanced")


@tool()
def flood(call):
    for number in range(20_000):
        call.progress(number + 1, 20_000, "x" * 100)
        if number % 10 == 0:
            log(call, "info", f"line {number}")
    return text("flooded")


def log(call, level, data):
    call.tell("notifications/message", {"level": level, "logger": "peer", "data": data})


@tool()
def talk(call):
    log(call, "warning", "two\nlines\x1b[2J")
    log(call, "debug", {"a": 1})
    return text("talked")


@tool()
def ask(call):
    params = form(call.given.get("message", "Which?"), name=STRING)
    return shown(call.ask("name", "elicitation/create", params))


@tool()
def ask_badly(call):
    params = {"message": "?", "requestedSchema": {"type": "object", "properties": {"a": {"type": 7}}}}
    return shown(call.ask("name", "elicitation/create", params))


@tool()
def ask_twice(call):
    first = call.ask("first", "elicitation/create", form("First?", name=STRING))
    second = call.ask("second", "elicitation/create", form("Second?", name=STRING))
    return shown([first["content"]["name"], second["content"]["name"]])


@tool()
def ask_for_ever(call):
    number = count("rounds")
    mark("rounds")
    return call.ask(f"r{number}", "roots/list", {})


@tool()
def ask_to_open(call):
    params = {"mode": "url", "message": "Please log in.", "url": call.given["url"],
              "elicitationId": "e1"}
    return shown(call.ask("login", "elicitation/create", params))


@tool()
def ask_and_forget(call):
    name, _ = call.begin_ask("elicitation/create", form("Never mind?", name=STRING))
    wait_for("forget")
    call.tell("notifications/cancelled", {"requestId": name, "reason": "Never mind."})
    wait_for("forgotten")
    return text("forgotten")


@tool()
def ask_all_at_once(call):
    names = [call.begin_ask("elicitation/create", form(f"{n}?", name=STRING))
             for n in range(call.given["count"])]
    refused = 0
    while refused < call.given["refused"]:
        answers = [Call.waiting[name][1] or {} for name, _ in names]
        refused = sum("error" in answer for answer in answers)
        time.sleep(0.01)
    wait_for("release")
    return shown(refused)


@tool()
def open_first(call):
    mark("called")
    if count("called") == 1:
        elicit = {"mode": "url", "message": "Please log in.", "elicitationId": "e1",
                  "url": "https://example.com/login"}
        raise Refused(-32042, "Log in first.", {"elicitations": [elicit]})
    return text("logged in")


@tool()
def sample(call):
    said = {"role": "user", "content": {"type": "text", "text": "The capital of France?"}}
    params = {"messages": [said], "maxTokens": 10}
    return shown(call.ask("sample", "sampling/createMessage", params))


@tool()
def roots(call):
    return shown(call.ask("roots", "roots/list", {}))


@tool()
def declared(call):
    return shown(call.meta.get(f"{META}clientCapabilities"))


@tool()
def job(call):
    """A task of the extension, which ends when a test says so."""
    mark("called")
    return task_result("task")


@tool()
def job_that_asks(call):
    mark("called")
    mark("asks")
    return task_result("task")


def task_result(kind):
    at = "2026-11-01T00:00:00Z"
    state = {"resultType": kind, "taskId": "task-1", "status": "working", "createdAt": at,
             "lastUpdatedAt": at, "ttlMs": None, "pollIntervalMs": 100}
    if kind == "task":
        return state
    if count("canceled"):
        state["status"] = "cancelled"
    elif count("asks") and not count("answered"):
        state["status"] = "input_required"
        requests = {"method": "elicitation/create", "params": form("Sure?", ok={"type": "boolean"})}
        state["inputRequests"] = {"sure": requests}
    elif count("finish") or count("answered"):
        state["status"], state["result"] = "completed", complete(text("done"))
    else:
        state["statusMessage"] = "at work"
    return state


def of_tasks(method, params):
    if params["taskId"] != "task-1":
        raise Refused(-32602, "There is no such task.")
    if method == "tasks/get":
        mark("asked_about")
        return task_result("complete")
    if method == "tasks/cancel":
        mark("canceled")
    if method == "tasks/update":
        mark("answered", json.dumps(params["inputResponses"]))
    return {}


def complete(result):
    return {"resultType": "complete", **result} if MODERN else result


frozen = False


def answer(method, call):
    params = call.params
    if method == "server/discover" and MODERN:
        capabilities = {"tools": {}, "extensions": {TASKS: {}}}
        return {"supportedVersions": ["2026-07-28"], "capabilities": capabilities}
    if method == "initialize" and not MODERN:
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "peer", "version": "1"}}
    if method == "tools/list":
        return {"tools": definitions}
    if method == "tools/call":
        return tools[params["name"]](call)
    if method.startswith("tasks/") and MODERN:
        return of_tasks(method, params)
    if method == "ping" and not MODERN:
        mark("pinged")
        return {}
    raise Refused(-32601, "There is no such method.")


def serve(message, send):
    method = message.get("method")
    if method is None:
        waiting = Call.waiting.get(message["id"])
        if waiting is not None:
            waiting[1] = message
            waiting[0].set()
        return
    if "id" not in message:
        if method == "notifications/cancelled":
            mark("cancelled", json.dumps(message["params"]))
        return
    try:
        result = answer(method, Call(message, send))
        if result is not None:
            send({"id": message["id"], "result": complete(result)})
    except NeedsInput as needs:
        send({"id": message["id"], "result": needs.result})
    except Refused as refused:
        send({"id": message["id"], "error": refused.error})


def over_stdio():
    writing = threading.Lock()

    def send(message):
        with writing:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    for line in sys.stdin:
        while frozen:
            time.sleep(1)
        threading.Thread(target=serve, args=(json.loads(line), send), daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said = []
        serve(message, said.append)
        if "id" not in message:
            self.send_response(202)
            self.send_header("content-length", "0")
            self.end_headers()
            return
        if len(said) == 1:
            kind, body = "application/json", json.dumps({"jsonrpc": "2.0", **said[0]})
        else:
            kind = "text/event-stream"
            lines = (json.dumps({"jsonrpc": "2.0", **one}) for one in said)
            body = "".join(f"data: {line}\n\n" for line in lines)
        body = body.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def over_http():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"listening on http://127.0.0.1:{server.server_port}/mcp", file=sys.stderr, flush=True)
    server.serve_forever()


if "--http" in sys.argv:
    over_http()
else:
    over_stdio()

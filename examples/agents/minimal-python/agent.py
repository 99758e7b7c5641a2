import json, os, socket, struct, sys, threading, time, uuid
ID, STARTED, LOCK, SEEN = "dev.wharf.minimal", time.monotonic(), threading.Lock(), set()
ADDRESS, TOKEN = os.environ["OPENSENTIENCE_SOCKET"], os.environ.pop("OPENSENTIENCE_SESSION_TOKEN")
TCP = ADDRESS.startswith("tcp:")
CORE = socket.socket(socket.AF_INET if TCP else socket.AF_UNIX)
CORE.connect(("127.0.0.1", int(ADDRESS.rsplit(":", 1)[1])) if TCP else ADDRESS)
STREAM = CORE.makefile("rb")
def send(kind, payload, re={}, **extra):
    echo = {k: re[k] for k in ("request_id", "correlation_id", "causation_id", "traceparent") if k in re}
    message = {"v": 1, "type": kind, "id": str(uuid.uuid4()), "payload": payload, **echo, **extra,
               "ts": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    data = json.dumps(dict(message, in_reply_to=re["id"]) if re else message).encode()
    with LOCK: CORE.sendall(struct.pack(">I", len(data)) + data)
def receive():
    length = int.from_bytes(STREAM.read(4) or sys.exit(0), "big")
    return json.loads(STREAM.read(length)) if length <= 4 << 20 else sys.exit("frame too large")
def beat(session, pause):
    while True:
        send("agent.heartbeat", {"session_id": session, "inflight_calls": 0, "status": "ok",
                                 "uptime_ms": int((time.monotonic() - STARTED) * 1000)})
        time.sleep(pause)
def call(m, asked):
    name, done = asked["input"].get("name", "world"), {"call_id": asked["call_id"], "status": "failed"}
    if asked["call_id"] in SEEN: return send("agent.error", {}, m, error={"code": "tool.duplicate_call", "message": "This call was made before."})
    SEEN.add(asked["call_id"])
    if asked["tool_id"] != ID + "/hello": done["error"] = {"code": "tool.not_found", "message": "There is no such tool."}
    elif not isinstance(name, str): done["error"] = {"code": "tool.invalid_input", "message": "`name` must be text."}
    else: done.update(status="succeeded", output={"greeting": "Hello, %s!" % name})
    send("agent.tool.result", done, m)
send("agent.hello", {"session_token": TOKEN, "agent_id": ID, "agent_version": "0.1.0", "protocol": {"supported_versions": [1], "capabilities": ["tools"]}})
welcome = receive()
if "error" in welcome or welcome["payload"]["accepted_version"] != 1: sys.exit("the core refused this agent")
send("agent.tools.register", {"tools": [{"tool_id": ID + "/hello", "name": "hello", "description": "Says hello.", "side_effects": False, "input_schema": {"type": "object", "properties": {"name": {"type": "string"}}}}]})
threading.Thread(target=beat, daemon=True, args=(welcome["payload"]["session_id"], welcome["payload"]["heartbeat_interval_ms"] / 1000)).start()
for m in iter(receive, None):
    if m["type"] == "core.tool.call": call(m, m["payload"])
    elif m["type"] == "core.ping": send("agent.pong", {}, m)
    elif m["type"] == "core.goodbye": sys.exit(0)
    elif m["type"] not in ("core.tools.registered", "core.tool.cancel", "core.error") and "request_id" in m and "in_reply_to" not in m: send("agent.error", {}, m, error={"code": "protocol.unknown_type", "message": "This agent does not know that type."})

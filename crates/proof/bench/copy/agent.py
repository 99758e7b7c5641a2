"""An agent for measurements: copies the file it is given to the file it is to write."""
import json, os, shutil, socket, struct, threading, time, uuid

ID, LOCK = "dev.wharf.copy", threading.Lock()
CORE = socket.socket(socket.AF_UNIX)
CORE.connect(os.environ["OPENSENTIENCE_SOCKET"])
STREAM = CORE.makefile("rb")


def send(kind, payload, re=None):
    message = {"v": 1, "type": kind, "id": str(uuid.uuid4()), "payload": payload}
    message["ts"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    if re:
        message.update({k: re[k] for k in ("request_id", "correlation_id", "causation_id") if k in re})
        message["in_reply_to"] = re["id"]
    data = json.dumps(message).encode()
    with LOCK:
        CORE.sendall(struct.pack(">I", len(data)) + data)


def receive():
    head = STREAM.read(4)
    return json.loads(STREAM.read(int.from_bytes(head, "big"))) if head else None


def beat(session, pause):
    while True:
        payload = {"session_id": session, "inflight_calls": 0, "status": "ok", "uptime_ms": 0}
        send("agent.heartbeat", payload)
        time.sleep(pause)


def call(message):
    asked = message["payload"]
    shutil.copyfile(asked["input"]["data"], asked["context"]["outputs"]["copy"])
    output = {"copy": {"$written": True}}
    done = {"call_id": asked["call_id"], "status": "succeeded", "output": output}
    send("agent.tool.result", done, message)


token = os.environ.pop("OPENSENTIENCE_SESSION_TOKEN")
protocol = {"supported_versions": [1], "capabilities": ["tools"]}
send("agent.hello", {"session_token": token, "agent_id": ID, "agent_version": "0.1.0", "protocol": protocol})
welcome = receive()["payload"]
schema = {"type": "object", "properties": {"data": {"type": "string"}}, "required": ["data"]}
tool = {"tool_id": ID + "/copy", "name": "copy", "description": "Copies a file.", "input_schema": schema}
send("agent.tools.register", {"tools": [dict(tool, side_effects=False)]})
pause = welcome["heartbeat_interval_ms"] / 1000
threading.Thread(target=beat, daemon=True, args=(welcome["session_id"], pause)).start()
for message in iter(receive, None):
    if message["type"] == "core.tool.call":
        threading.Thread(target=call, daemon=True, args=(message,)).start()
    elif message["type"] == "core.ping":
        send("agent.pong", {}, message)
    elif message["type"] == "core.goodbye":
        break

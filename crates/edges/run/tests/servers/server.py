"""A tool server of the tests: the run protocol with nothing but the standard library.

What it does is said by the input `op`. Every message it gets is written to the file that the
environment names, so that a test can look at it.
"""

import base64
import hashlib
import json
import os
import socketserver
import struct
import sys
import threading
import time

PORT = int(sys.argv[1])
MOOD = sys.argv[2] if len(sys.argv) > 2 else "well"
SEEN = os.environ.get("TMPDIR", "/tmp") + "/seen.jsonl"
LOCK = threading.Lock()
AT_ONCE = {"now": 0, "most": 0}


def note(text):
    with LOCK, open(SEEN, "a", encoding="utf-8") as seen:
        seen.write(text + "\n")


def local(path):
    """Where a file of `/artifacts` really lies: the test's launcher makes no mount."""
    return os.environ["TEST_ARTIFACTS"] + path[len("/artifacts"):]


class Run(socketserver.StreamRequestHandler):
    def handle(self):
        head = []
        while True:
            line = self.rfile.readline().decode("latin-1").strip()
            if not line:
                break
            head.append(line)
        if not head:
            return
        fields = dict(line.split(": ", 1) for line in head[1:] if ": " in line)
        fields = {name.lower(): value for name, value in fields.items()}
        if head[0].startswith("GET /healthz"):
            body = json.dumps({"ok": MOOD == "well", "digest": "of-the-test"}).encode()
            status = b"200 OK" if MOOD == "well" else b"503 Unwell"
            self.wfile.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: %d\r\n\r\n" % len(body))
            self.wfile.write(body)
            return
        wanted = os.environ.get("TEST_BEARER")
        if wanted and fields.get("authorization") != "Bearer " + wanted:
            self.wfile.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
            return
        key = fields["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest())
        self.wfile.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Protocol: theory.run.v1\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        )
        self.converse()

    def read(self):
        first, second = self.rfile.read(2)
        size = second & 0x7F
        if size == 126:
            size = struct.unpack(">H", self.rfile.read(2))[0]
        elif size == 127:
            size = struct.unpack(">Q", self.rfile.read(8))[0]
        mask = self.rfile.read(4)
        data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(self.rfile.read(size)))
        return first & 0x0F, data

    def send(self, message):
        data = json.dumps(message).encode()
        if len(data) < 126:
            head = struct.pack(">BB", 0x81, len(data))
        elif len(data) < 65536:
            head = struct.pack(">BBH", 0x81, 126, len(data))
        else:
            head = struct.pack(">BBQ", 0x81, 127, len(data))
        self.wfile.write(head + data)
        self.wfile.flush()

    def converse(self):
        _, data = self.read()
        # Counted first: whoever reads the note may rely on it.
        with LOCK:
            AT_ONCE["now"] += 1
            AT_ONCE["most"] = max(AT_ONCE["most"], AT_ONCE["now"])
        note(data.decode())
        request = json.loads(data)
        control = request["control"]
        run_id = control["run_id"]
        self.send({"kind": "Ack", "control": {"run_id": run_id}})
        stop = threading.Event()
        threading.Thread(target=self.listen, args=(stop,), daemon=True).start()
        try:
            done = work(request["inputs"], request["outputs"], stop)
            answer = {"status": "success", "outputs": done}
        except Exception as error:  # The test looks at what it says.
            answer = {"status": "error", "outputs": {}, "error": str(error)}
        with LOCK:
            AT_ONCE["now"] -= 1
        message = {
            "kind": "Response",
            "control": {
                "run_id": run_id, "status": answer["status"], "cost_micro": 7, "final": True,
            },
            "outputs": answer["outputs"],
        }
        if answer["status"] == "error":
            code = "ERR_CANCELED" if stop.is_set() else "ERR_HANDLER"
            message["error"] = {"code": code, "message": answer["error"]}
        self.send(message)
        self.wfile.write(struct.pack(">BBH", 0x88, 2, 1000))

    def listen(self, stop):
        while True:
            try:
                opcode, data = self.read()
            except (ValueError, OSError, struct.error):
                return
            if opcode == 1:
                note(data.decode())
                if json.loads(data).get("kind") == "Cancel":
                    stop.set()


def work(inputs, outputs, stop):
    op = inputs.get("op")
    if op == "upper":
        return {"text": inputs["text"].upper(), "pid": os.getpid()}
    if op == "copy":
        with open(local(inputs["file"]), "rb") as file:
            content = file.read()
        with open(local(outputs["out"]), "wb") as file:
            file.write(content.upper())
        return {"out": outputs["out"], "seen": sorted(os.listdir(local("/artifacts")))}
    if op == "link":
        os.symlink(inputs["target"], local(outputs["out"]))
        return {"out": outputs["out"]}
    if op == "parent link":
        place = os.path.dirname(local(outputs["out"]))
        os.rename(place, place + "-away")
        os.symlink(os.path.dirname(inputs["target"]), place)
        return {"out": outputs["out"]}
    if op == "wait":
        if not stop.wait(60):
            raise RuntimeError("nobody stopped it")
        raise RuntimeError("it was stopped")
    if op == "hold":
        while not os.path.exists(inputs["until"]):
            time.sleep(0.005)
        return {"most": AT_ONCE["most"]}
    if op == "hold and write":
        while not os.path.exists(inputs["until"]):
            time.sleep(0.005)
        with open(local(outputs["out"]), "w") as file:
            file.write("written")
        return {"out": outputs["out"]}
    if op == "secret":
        with open(os.path.join(os.environ["WHARF_SECRETS_DIR"], inputs["name"])) as file:
            secret = file.read().strip()
        print("the secret is " + secret, file=sys.stderr, flush=True)
        return {"bytes": len(secret)}
    if op == "crash":
        print("out of luck", file=sys.stderr, flush=True)
        os._exit(3)
    raise ValueError("an unknown op")


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


if MOOD == "broken":
    print("ImportError: no module named luck", file=sys.stderr, flush=True)
    time.sleep(60)
with Server(("127.0.0.1", PORT), Run) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()

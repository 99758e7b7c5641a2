"""A plain FastAPI server of the run protocol that starts a process for each run."""

import asyncio
import multiprocessing
import os

from fastapi import FastAPI, WebSocket

app = FastAPI()
spawn = multiprocessing.get_context("spawn")


def work(payload, out):
    text = payload["inputs"].get("text", "Hello")
    out.put({"text": text})


def run(payload):
    out = spawn.Queue()
    process = spawn.Process(target=work, args=(payload, out))
    process.start()
    result = out.get()
    process.join()
    return result


@app.get("/healthz")
def health():
    return {"ok": True, "digest": "plain", "pid": os.getpid()}


@app.websocket("/run")
async def serve(socket: WebSocket):
    await socket.accept(subprotocol="theory.run.v1")
    request = await socket.receive_json()
    run_id = request["control"]["run_id"]
    await socket.send_json({"kind": "Ack", "control": {"run_id": run_id}})
    outputs = await asyncio.get_running_loop().run_in_executor(None, run, request)
    control = {"run_id": run_id, "status": "success", "cost_micro": 0, "final": True}
    await socket.send_json({"kind": "Response", "control": control, "outputs": outputs})
    await socket.close(1000)

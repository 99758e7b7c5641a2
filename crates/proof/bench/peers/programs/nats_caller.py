"""The caller of NATS: `nats_caller.py PORT`."""

import asyncio
import filecmp
import os
import sys
import time
from pathlib import Path

import nats
from loop import RUN, serve
from nats.js.api import DeliverPolicy
from nats_streams import made


async def main():
    client = await nats.connect(f"nats://127.0.0.1:{sys.argv[1]}")
    jetstream = client.jetstream()
    await made(jetstream)
    under_way = {}

    async def answered(message):
        waiting = under_way.pop(message.data, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(message.data.decode())

    new = DeliverPolicy.NEW
    await jetstream.subscribe(
        f"results.{RUN}", ordered_consumer=True, cb=answered, deliver_policy=new
    )

    async def echo(text):
        sent = text.encode()
        under_way[sent] = asyncio.get_running_loop().create_future()
        taken = jetstream.publish(f"calls.echo.{RUN}", sent)
        _, answer = await asyncio.gather(taken, under_way[sent])
        return answer

    async def submit(name):
        headers = {"Nats-Msg-Id": name}
        await jetstream.publish(f"calls.work.{RUN}", name.encode(), headers=headers)

    async def artifact(command):
        store = await jetstream.create_object_store("files")
        folder, name = Path(command["folder"]), f"file{time.time_ns()}"
        source, found = folder / "source", folder / "found"
        source.write_bytes(os.urandom(command["bytes"]))
        begin = time.perf_counter()
        with source.open("rb") as file:
            await store.put(name, file)
        middle = time.perf_counter()
        # Into a file: what is gathered in memory is copied anew with each piece.
        with found.open("wb") as file:
            await store.get(name, writeinto=file)
        end = time.perf_counter()
        right = filecmp.cmp(source, found, shallow=False)
        await store.delete(name)
        return {"right": right, "in_s": middle - begin, "out_s": end - middle}

    await serve({"echo": echo, "artifact": artifact}, submit)


asyncio.run(main())

"""The worker of NATS: `nats_worker.py PORT LEDGER`."""

import asyncio
import sys

import nats
from nats.js.api import ConsumerConfig
from nats_streams import made

PORT, LEDGER = sys.argv[1:]


async def main():
    client = await nats.connect(f"nats://127.0.0.1:{PORT}")
    jetstream = client.jetstream()
    await made(jetstream)

    async def work(message):
        """What is done can be seen outside: a line for each time."""
        with open(LEDGER, "a") as file:
            file.write(f"{message.data.decode()}\n")
        await asyncio.sleep(0.01)
        await message.ack()

    async def echo(message):
        # The result is on the disk before the call is taken off.
        await jetstream.publish(f"results.{message.subject.split('.')[2]}", message.data)
        await message.ack()

    async def take(message):
        kind = message.subject.split(".")[1]
        asyncio.create_task(work(message) if kind == "work" else echo(message))

    config = ConsumerConfig(ack_wait=5, max_ack_pending=1000)
    await jetstream.subscribe("calls.>", durable="worker", manual_ack=True, cb=take, config=config)
    print("listening", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())

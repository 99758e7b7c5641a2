"""Temporal's caller: `temporal_caller.py ADDRESS LEDGER`."""

import asyncio
import sys

from loop import serve
from temporal_work import QUEUE, Echo, Steps, Work
from temporalio.client import Client


async def main():
    client = await Client.connect(sys.argv[1])
    ledger = sys.argv[2]

    async def echo(text):
        return await client.execute_workflow(Echo.run, text, id=text, task_queue=QUEUE)

    async def steps(text):
        return await client.execute_workflow(Steps.run, text, id=text, task_queue=QUEUE)

    async def submit(name):
        await client.start_workflow(Work.run, [name, ledger], id=name, task_queue=QUEUE)

    await serve({"echo": echo, "steps": steps}, submit)


asyncio.run(main())

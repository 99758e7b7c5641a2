"""Temporal's worker: `temporal_worker.py ADDRESS LEDGER`."""

import asyncio
import sys

from temporal_work import QUEUE, Echo, Steps, Work, step, written_down
from temporalio.client import Client
from temporalio.worker import Worker


async def main():
    client = await Client.connect(sys.argv[1])
    worker = Worker(
        client, task_queue=QUEUE, workflows=[Echo, Steps, Work], activities=[step, written_down]
    )
    running = asyncio.create_task(worker.run())
    print("polling", flush=True)
    await running


asyncio.run(main())

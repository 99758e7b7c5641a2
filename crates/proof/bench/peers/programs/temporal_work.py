"""The workflows of Temporal, which its worker and its caller both name."""

import asyncio
from datetime import timedelta

from temporalio import activity, workflow

QUEUE = "bench"
SOON = timedelta(seconds=30)


@activity.defn
async def step(text: str) -> str:
    return text


@activity.defn
async def written_down(given: list[str]) -> str:
    """What is done can be seen outside: a line for each time."""
    text, ledger = given
    with open(ledger, "a") as file:
        file.write(f"{text}\n")
    await asyncio.sleep(0.01)
    return text


@workflow.defn
class Echo:
    @workflow.run
    async def run(self, text: str) -> str:
        return text


@workflow.defn
class Steps:
    @workflow.run
    async def run(self, text: str) -> str:
        for _ in range(3):
            text = await workflow.execute_activity(step, text, start_to_close_timeout=SOON)
        return text


@workflow.defn
class Work:
    @workflow.run
    async def run(self, given: list[str]) -> str:
        soon = timedelta(seconds=5)
        return await workflow.execute_activity(written_down, given, start_to_close_timeout=soon)

"""LiteLLM's router before a model that counts: how many calls a budget for one lets through."""

import asyncio
import json

import litellm
from litellm import Router
from loop import serve

litellm.telemetry = False
litellm.suppress_debug_info = True

# A call costs this much, and so much may be spent.
PRICE = 0.00005
BUDGET = PRICE

ANSWER = {
    "id": "one",
    "object": "chat.completion",
    "created": 1,
    "model": "counted",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "yes"}}
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}


class Model:
    """A model that speaks as OpenAI's do and counts its calls."""

    def __init__(self):
        self.calls = 0

    async def serve(self, reader, writer):
        while line := await reader.readline():
            length = 0
            while (header := await reader.readline()).strip():
                name, _, value = header.decode().partition(":")
                if name.lower() == "content-length":
                    length = int(value)
            await reader.readexactly(length)
            if line.startswith(b"POST"):
                self.calls += 1
            await asyncio.sleep(0.05)
            body = json.dumps(ANSWER).encode()
            head = (
                f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
            )
            writer.write(f"{head}\r\n\r\n".encode() + body)
            await writer.drain()


async def main():
    model = Model()
    server = await asyncio.start_server(model.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def admitted(command):
        settings = {
            "model": "openai/counted",
            "api_base": f"http://127.0.0.1:{port}/v1",
            "api_key": "none",
            "input_cost_per_token": PRICE / 2,
            "output_cost_per_token": PRICE / 2,
        }
        budget = {"openai": {"budget_limit": BUDGET, "time_period": "1d"}}
        router = Router(
            model_list=[{"model_name": "counted", "litellm_params": settings}],
            provider_budget_config=budget,
            num_retries=0,
        )
        model.calls = 0
        messages = [{"role": "user", "content": "may I?"}]

        async def call():
            await router.acompletion(model="counted", messages=messages)

        at_once = await asyncio.gather(
            *(call() for _ in range(command["calls"])), return_exceptions=True
        )
        executed = model.calls
        if all(isinstance(answer, Exception) for answer in at_once):
            raise at_once[0]
        await until_refused(call)
        return {"executed": executed}

    await serve({"admitted": admitted})


async def until_refused(call):
    """A budget that never refuses would be none: once what was spent is counted, it must."""
    for _ in range(100):
        try:
            await call()
        except Exception:
            return
        await asyncio.sleep(0.1)
    raise RuntimeError("the budget never refused a call, so it was not in force")


asyncio.run(main())

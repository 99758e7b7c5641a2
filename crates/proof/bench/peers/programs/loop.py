"""What callers in Python have in common: commands in, figures out, every answer compared.

A program names its works, each a function of a text that makes one call and gives back what came of
it, and hands them to `serve`. Functions that are coroutines share one loop; others get a thread for
each caller. It prints one line when it is ready, and one for each command.
"""

import asyncio
import inspect
import itertools
import json
import os
import sys
import threading
import time

RUN = f"{os.getpid():x}x{time.time_ns() & 0xFFFFFF:x}"
NUMBERS = itertools.count(1)


class Tally:
    """Calls of one stretch of time."""

    def __init__(self, seconds):
        self.begin = time.perf_counter()
        self.end = self.begin + seconds
        self.took = []
        self.wrong = self.failed = 0
        self.why = ""

    def over(self):
        return time.perf_counter() >= self.end

    def right(self, begin):
        self.took.append((time.perf_counter() - begin) * 1e3)

    def failure(self, error):
        self.failed += 1
        self.why = self.why or f"{type(error).__name__}: {error}"[:300]

    def compare(self, text, answer, begin):
        if answer == text:
            self.right(begin)
        else:
            self.wrong += 1
            self.why = self.why or f"{text} became {answer!r}"[:300]

    def told(self):
        seconds = time.perf_counter() - self.begin
        took = sorted(self.took) or [0.0]
        return {
            "calls": len(self.took),
            "wrong": self.wrong,
            "failed": self.failed,
            "why": self.why,
            "per_second": len(self.took) / seconds,
            "p50_ms": took[len(took) // 2],
            "p99_ms": took[min(len(took) - 1, int(len(took) * 0.99))],
        }


def text():
    """A text that no other call has."""
    return f"t{RUN}x{next(NUMBERS)}"


async def at_once(call, callers, seconds):
    """So many callers in one loop."""
    tally = Tally(seconds)

    async def caller():
        while not tally.over() and not tally.failed:
            sent, begin = text(), time.perf_counter()
            try:
                tally.compare(sent, await asyncio.wait_for(call(sent), 30), begin)
            except Exception as error:
                tally.failure(error)

    await asyncio.gather(*(caller() for _ in range(callers)))
    return tally.told()


def in_threads(call, callers, seconds):
    """So many callers, each a thread."""
    tally = Tally(seconds)

    def caller():
        while not tally.over() and not tally.failed:
            sent, begin = text(), time.perf_counter()
            try:
                tally.compare(sent, call(sent), begin)
            except Exception as error:
                tally.failure(error)

    threads = [threading.Thread(target=caller, daemon=True) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 45)
    if any(thread.is_alive() for thread in threads):
        tally.failure(TimeoutError("a call did not end"))
    return tally.told()


class Acknowledged:
    """The ids of calls that were accepted, written down before anything else is done."""

    def __init__(self, command):
        self.file = os.open(command["acks"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.left = iter([f"call{number}" for number in range(command["calls"])])

    def keep(self, name):
        os.write(self.file, f"{name}\n".encode())


async def flood(submit, command):
    """Submits calls without waiting for what becomes of them, until the server is gone."""
    acknowledged = Acknowledged(command)

    async def caller():
        for name in acknowledged.left:
            try:
                await asyncio.wait_for(submit(name), 10)
            except Exception:
                return
            acknowledged.keep(name)

    await asyncio.gather(*(caller() for _ in range(command["callers"])))
    return {}


def flood_in_threads(submit, command):
    """The same with threads."""
    acknowledged, lock = Acknowledged(command), threading.Lock()

    def caller():
        while True:
            with lock:
                name = next(acknowledged.left, None)
            if name is None:
                return
            try:
                submit(name)
            except Exception:
                return
            acknowledged.keep(name)

    threads = [threading.Thread(target=caller, daemon=True) for _ in range(command["callers"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return {}


async def obey(command, works, submit):
    name = command["do"]
    if name == "flood":
        if inspect.iscoroutinefunction(submit):
            return await flood(submit, command)
        return await asyncio.to_thread(flood_in_threads, submit, command)
    call = works[name]
    if "seconds" not in command:
        return await call(command) if inspect.iscoroutinefunction(call) else call(command)
    arguments = (call, command["callers"], command["seconds"])
    if inspect.iscoroutinefunction(call):
        return await at_once(*arguments)
    return await asyncio.to_thread(in_threads, *arguments)


async def serve(works, submit=None):
    """Takes commands until there are no more."""
    out = os.fdopen(os.dup(1), "w")
    # What a library prints must not stand among the answers.
    os.dup2(2, 1)

    def tell(answer):
        out.write(json.dumps(answer) + "\n")
        out.flush()

    tell({"ready": True})
    while True:
        line = await asyncio.to_thread(sys.stdin.readline)
        if not line:
            os._exit(0)
        try:
            tell(await obey(json.loads(line), works, submit))
        except Exception as error:
            tell({"broken": f"{type(error).__name__}: {error}"[:500]})

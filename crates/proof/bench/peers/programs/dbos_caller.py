"""DBOS, which is caller and handler in one: `dbos_caller.py DATABASE LEDGER`."""

import asyncio
import sys
import time

from dbos import DBOS, DBOSConfig
from loop import serve

DATABASE, LEDGER = sys.argv[1:]

config: DBOSConfig = {
    "name": "bench",
    "system_database_url": f"sqlite:///{DATABASE}",
    "application_version": "bench",
    "run_admin_server": False,
    "log_level": "ERROR",
}
DBOS(config=config)


@DBOS.workflow()
def echo(text: str) -> str:
    return text


@DBOS.step()
def step(text: str) -> str:
    return text


@DBOS.workflow()
def steps(text: str) -> str:
    return step(step(step(text)))


@DBOS.step()
def written_down(text: str) -> str:
    """What is done can be seen outside: a line for each time."""
    with open(LEDGER, "a") as file:
        file.write(f"{text}\n")
    time.sleep(0.01)
    return text


@DBOS.workflow()
def work(text: str) -> str:
    return written_down(text)


def submit(name):
    DBOS.start_workflow(work, name)


DBOS.launch()
asyncio.run(serve({"echo": echo, "steps": steps}, submit))

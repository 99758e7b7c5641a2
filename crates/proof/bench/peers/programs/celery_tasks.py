"""The tasks of Celery: a task is acknowledged when it was done, and done again when it was lost."""

import os
import time

from celery import Celery

REDIS = os.environ["BENCH_REDIS"]
LEDGER = os.environ["BENCH_LEDGER"]

app = Celery("bench", broker=f"{REDIS}/0", backend=f"{REDIS}/1")
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    broker_connection_retry_on_startup=True,
    # Redis has no acknowledgements of its own: what a lost worker held is given out again after
    # this time. The default is an hour.
    broker_transport_options={"visibility_timeout": 5},
    result_expires=3600,
)


@app.task
def echo(text):
    return text


@app.task
def work(text):
    """What is done can be seen outside: a line for each time."""
    with open(LEDGER, "a") as file:
        file.write(f"{text}\n")
    time.sleep(0.01)
    return text

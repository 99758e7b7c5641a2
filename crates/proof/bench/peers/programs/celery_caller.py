"""Celery's caller."""

import asyncio

import celery_tasks
from loop import serve


def echo(text):
    return celery_tasks.echo.delay(text).get(timeout=30)


def submit(name):
    celery_tasks.work.apply_async((name,), ignore_result=True)


asyncio.run(serve({"echo": echo}, submit))

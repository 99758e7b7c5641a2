"""Celery's caller."""

import asyncio

import celery_tasks
from loop import serve


def echo(text):
    result = celery_tasks.echo.delay(text)
    answer = result.get(timeout=30)
    result.forget()
    return answer


def submit(name):
    celery_tasks.work.apply_async((name,), ignore_result=True)


asyncio.run(serve({"echo": echo}, submit))

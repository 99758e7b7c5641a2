"""Celery with Redis: a server that flushes each write, and a worker of two processes."""

from __future__ import annotations

import re

from harness import install
from harness.callers import python_caller, python_environment
from harness.children import Child, environment, run
from harness.http import listens
from harness.machine import free_port
from harness.peer import Peer, Work, calls

# What served 64 callers best when it was tried: four programs that call, two processes that work,
# each with tasks in hand.
CALLING_PROGRAMS = 4
WORKING_PROCESSES = 2
PREFETCH = 16


class CeleryRedis(Peer):
    name = "celery"
    title = "Celery with Redis"
    about = "Python, two processes"
    sync = "appendonly, appendfsync always"
    has_server = keeps_records = True
    # Looked for each ten seconds, when it is older than the five of `celery_tasks.py`.
    settle_seconds = 17.0

    port = 0

    def install(self) -> None:
        self.bin = install.venv("celery")
        self.redis = install.system_package("redis-server", "redis-server")

    def version(self) -> str:
        said = run([self.redis, "--version"], env=environment(install.PLACE / "home"))
        redis = re.search(r"v=([\d.]+)", said)
        shown = redis.group(1) if redis else "unknown"
        return f"{install.version_of('celery', 'celery')}, Redis {shown}"

    def start_server(self) -> None:
        self.port = self.port or free_port()
        settings = self.folder / "redis.conf"
        settings.write_text(
            f"bind 127.0.0.1\nport {self.port}\nprotected-mode yes\ndaemonize no\n"
            f'dir "{self.folder}"\nappendonly yes\nappendfsync always\nsave ""\nlogfile ""\n'
        )
        env = environment(self.folder / "home")
        server = self.keep(Child([self.redis, settings], log=self.log("redis"), env=env))
        server.wait_until(lambda: listens(self.port), "its port")

    def environment(self) -> dict[str, str]:
        more = {"BENCH_REDIS": f"redis://127.0.0.1:{self.port}", "BENCH_LEDGER": str(self.ledger())}
        return python_environment(self.folder, more)

    def start_handlers(self) -> None:
        command = [self.bin / "celery", "--app", "celery_tasks", "worker", "--pool", "prefork"]
        command += ["--concurrency", WORKING_PROCESSES, "--prefetch-multiplier", PREFETCH]
        command += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        command += ["--loglevel", "INFO"]
        env = self.environment()
        log = self.log(f"worker{len(list(self.folder.glob('log/worker*')))}")
        worker = self.keep(Child(command, log=log, env=env, cwd=install.PROGRAMS))
        worker.wait_until(lambda: "ready." in worker.last_words(50), "readiness")

    def start_callers(self) -> None:
        bin, log = self.bin, self.log("caller")
        caller = python_caller(
            bin, "celery_caller.py", [], log, CALLING_PROGRAMS, self.environment()
        )
        self.callers.append(caller)

    def works(self, wharf) -> list[Work]:
        caller, beside = self.callers[0], wharf.durable("Python agent", "built-in tool")

        def echo(callers: int, seconds: float):
            return caller.measure("echo", callers, seconds)

        return [calls("durable echo", many, echo, beside) for many in (1, 64)]

    def flood(self, command: dict) -> None:
        self.callers[0].begin(command)

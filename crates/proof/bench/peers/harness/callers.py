"""Who calls: programs that load a peer and say how it went.

A caller is a program with the peer's own client. It lives as long as its peer does, takes one
command a line and answers with one JSON object a line, so that importing a client is in no figure.
Servers of plain HTTP are called by `wrk`, all of them by the same script.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import install
from .children import Broken, Child, environment, run
from .figures import median

# How much longer than it was told a caller may take before it is given up.
LATE_SECONDS = 60


@dataclass(frozen=True)
class Sample:
    """What one stretch of a work gave, by the names of its figures."""

    figures: Mapping[str, float]

    @staticmethod
    def of(answer: Mapping[str, object], who: str) -> Sample:
        """What a caller says of its calls, if each of them was answered, and answered rightly."""
        wrong, failed = int(answer.get("wrong", 0)), int(answer.get("failed", 0))
        if wrong or failed:
            why = answer.get("why", "")
            raise Broken(f"{who}: {failed} calls failed, {wrong} answers were wrong: {why}")
        if int(answer["calls"]) == 0:
            raise Broken(f"{who}: no call came to its end")
        names = ("calls", "per_second", "p50_ms", "p99_ms")
        return Sample({name: float(answer[name]) for name in names})


class Caller:
    """One caller, or several that share the work where one program could not make enough of it."""

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str],
        cwd: Path | None = None,
        programs: int = 1,
    ) -> None:
        self.children = [
            Child(command, log=log, env=env, cwd=cwd, pipes=True) for _ in range(programs)
        ]
        self.rests = [b""] * programs
        self.expect_ready()

    def expect_ready(self) -> None:
        for index in range(len(self.children)):
            self.read(index, 90)

    def measure(self, work: str, callers: int, seconds: float) -> Sample:
        """Has so many callers do a work for so long."""
        programs = 1 if callers == 1 else len(self.children)
        each = {"do": work, "callers": callers // programs, "seconds": seconds}
        answers = self.ask(each, seconds + LATE_SECONDS, programs)
        who = f"{self.children[0].name} {work}"
        samples = [Sample.of(answer, who) for answer in answers]
        if len(samples) == 1:
            return samples[0]
        figures = [sample.figures for sample in samples]
        return Sample(
            {
                "calls": sum(figure["calls"] for figure in figures),
                "per_second": sum(figure["per_second"] for figure in figures),
                "p50_ms": median(figure["p50_ms"] for figure in figures),
                "p99_ms": max(figure["p99_ms"] for figure in figures),
            }
        )

    def ask(self, command: Mapping[str, object], seconds: float, programs: int = 1) -> list[dict]:
        """Gives a command to so many programs and waits for all their answers."""
        self.begin(command, programs)
        return [self.read(index, seconds) for index in range(programs)]

    def begin(self, command: Mapping[str, object], programs: int = 1) -> None:
        line = (json.dumps(command) + "\n").encode()
        for child in self.children[:programs]:
            try:
                child.process.stdin.write(line)
                child.process.stdin.flush()
            except OSError as error:
                raise Broken(f"{child.name} is gone: {child.last_words()}") from error

    def read(self, index: int, seconds: float) -> dict:
        """The next answer of a program."""
        child = self.children[index]
        out = child.process.stdout.fileno()
        deadline = time.monotonic() + seconds
        while b"\n" not in self.rests[index]:
            left = deadline - time.monotonic()
            if left <= 0:
                raise Broken(f"{child.name} did not answer within {seconds:.0f} s")
            if select.select([out], [], [], left)[0]:
                piece = os.read(out, 1 << 16)
                if not piece:
                    raise Broken(f"{child.name} ended: {child.last_words()}")
                self.rests[index] += piece
        line, _, self.rests[index] = self.rests[index].partition(b"\n")
        answer = json.loads(line)
        if "broken" in answer:
            raise Broken(f"{child.name}: {answer['broken']}")
        return answer

    def kill(self) -> None:
        for child in self.children:
            child.kill()

    def stop(self) -> None:
        for child in self.children:
            child.stop(3)


def python_caller(
    bin: Path,
    program: str,
    words: Sequence[object],
    log: Path,
    programs: int = 1,
    env: Mapping[str, str] | None = None,
) -> Caller:
    """A caller in Python, from `programs`, with the packages of an environment."""
    env = env or python_environment(log.parent)
    command = [bin / "python", install.PROGRAMS / program, *map(str, words)]
    return Caller(command, log=log, env=env, programs=programs)


def python_environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a program in Python that uses what stands in `programs`."""
    found = {"PYTHONPATH": str(install.PROGRAMS), "PYTHONDONTWRITEBYTECODE": "1"}
    return environment(home / "home", {**found, **(more or {})})


@dataclass(frozen=True)
class HttpWork:
    """A call over plain HTTP: what is sent, and where in the answer the text comes back."""

    url: str
    # `@@` stands for a text that is different in each call.
    body: str
    # What stands before that text in the answer.
    before: str
    token: str = ""

    def measure(self, callers: int, seconds: float) -> Sample:
        """Has `wrk` call on so many connections; each keeps one call under way."""
        env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C.UTF-8"}
        env.update(CALL_BODY=self.body, CALL_BEFORE=self.before, CALL_TOKEN=self.token)
        command = ["wrk", "--threads", "1", "--connections", str(callers), "--timeout", "30s"]
        # wrk counts in whole seconds.
        command += ["--duration", f"{max(1, round(seconds))}s", "--script"]
        command += [str(install.PROGRAMS / "calls.lua"), self.url]
        said = run(command, env=env, seconds=seconds + LATE_SECONDS)
        lines = [line for line in said.splitlines() if line.startswith("{")]
        if not lines:
            raise Broken(f"wrk said nothing of its calls of {self.url}: {said[-300:]}")
        return Sample.of(json.loads(lines[-1]), self.url)

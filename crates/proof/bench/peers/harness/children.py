"""Programs that are started here: each in a session of its own, and none left behind.

This process adopts orphans (Linux's child subreaper), so everything that a peer starts stays below
it in the tree of processes, whatever it does to get away; that is how the memory and the processor
time of a peer are counted, and how all of it is ended.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LIBC = ctypes.CDLL(None, use_errno=True)

# What peers read before they would report about themselves; where the network namespace is their
# own they could not reach anybody anyway.
QUIET = {
    "DO_NOT_TRACK": "1",
    "RESTATE_DISABLE_TELEMETRY": "true",
    "TEMPORAL_DISABLE_TELEMETRY": "1",
    "FASTMCP_CHECK_FOR_UPDATES": "off",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
    "SCARF_ANALYTICS": "false",
    "OTEL_SDK_DISABLED": "true",
    "NO_COLOR": "1",
}


class Broken(Exception):
    """A peer did not do what it should: it could not be installed, started or asked."""


def adopt_orphans() -> None:
    """Makes this process the parent of what its children leave behind."""
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment with nothing in it of whoever started the benchmark."""
    home.mkdir(parents=True, exist_ok=True)
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", **QUIET, **(more or {})}


def with_parent() -> None:
    """Run in the child: it is killed when this process is, even by kill -9."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Child:
    """A program that runs until it is stopped."""

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str],
        cwd: Path | None = None,
        pipes: bool = False,
    ) -> None:
        self.name = Path(str(command[0])).name
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as said:
            self.process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.PIPE if pipes else subprocess.DEVNULL,
                stdout=subprocess.PIPE if pipes else said,
                stderr=said,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,
                preexec_fn=with_parent,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def tree(self) -> list[int]:
        """The process and everything below it."""
        return below(self.pid)

    def ended(self) -> bool:
        return self.process.poll() is not None

    def wait_until(self, ready: Callable[[], bool], what: str, seconds: float = 60) -> None:
        """Waits until something is so, as long as the program lives and the time lasts."""
        wait_until(ready, f"{self.name}: {what}", seconds, self)

    def kill(self) -> None:
        """kill -9, of it and all below it, at once."""
        end(self.tree(), signal.SIGKILL)
        self.process.wait(timeout=30)

    def stop(self, seconds: float = 10) -> None:
        """Asks it to end, and ends it when it does not."""
        tree = self.tree()
        if not self.ended():
            end([self.pid], signal.SIGTERM)
            try:
                self.process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                pass
        end(sorted({*tree, *self.tree()}), signal.SIGKILL)
        self.process.wait(timeout=30)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def last_words(self, lines: int = 8) -> str:
        """The end of what it logged."""
        try:
            text = self.log.read_text(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.strip().splitlines()[-lines:])


def wait_until(
    ready: Callable[[], bool], what: str, seconds: float = 60, child: Child | None = None
) -> None:
    """Waits until something is so; says what it waited for when that does not come."""
    deadline = time.monotonic() + seconds
    while not ready():
        if child is not None and child.ended():
            raise Broken(f"{what}: it ended instead. It said: {child.last_words()}")
        if time.monotonic() > deadline:
            said = f" It said: {child.last_words()}" if child is not None else ""
            raise Broken(f"{what}: not within {seconds:.0f} s.{said}")
        time.sleep(0.001)


def run(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    seconds: float = 60,
) -> str:
    """Runs a program to its end and gives what it printed."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            env=dict(env),
            cwd=cwd,
            timeout=seconds,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            preexec_fn=with_parent,
        )
    except subprocess.TimeoutExpired as late:
        raise Broken(f"{words[0]} did not end within {seconds:.0f} s") from late
    except OSError as error:
        raise Broken(f"{words[0]} could not be started: {error}") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()[-6:]
        raise Broken(f"{Path(words[0]).name} failed ({done.returncode}): {' / '.join(said)}")
    return done.stdout.decode(errors="replace")


def below(root: int) -> list[int]:
    """A process and all its descendants, as they are now."""
    children: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            parent = parent_of(int(entry.name))
            children.setdefault(parent, []).append(int(entry.name))
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting.extend(children.get(pid, ()))
    return found


def fields_of(pid: int) -> list[str]:
    """The fields of a process's status after its name; empty when it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return []
    return text[text.rfind(")") + 2 :].split()


def parent_of(pid: int) -> int:
    fields = fields_of(pid)
    return int(fields[1]) if fields else 0


def end(pids: Iterable[int], how: signal.Signals) -> None:
    """Sends a signal to each of them that is still there."""
    for pid in pids:
        try:
            os.kill(pid, how)
        except ProcessLookupError:
            pass


def end_all() -> None:
    """Ends everything below this process, again and again until nothing is left."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        left = [pid for pid in below(os.getpid()) if pid != os.getpid()]
        if not left:
            return
        end(left, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.01)


def memory_mib(pids: Iterable[int]) -> dict[str, float]:
    """What processes take together: resident, their share of it, and what is theirs alone."""
    kib = {"Rss": 0, "Pss": 0, "Anonymous": 0}
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        for line in text.splitlines():
            name, _, rest = line.partition(":")
            if name in kib:
                kib[name] += int(rest.split()[0])
    return {name.lower(): value / 1024 for name, value in kib.items()}

"""Looks after the processes of one run, and leaves none behind.

The keeper stands between the parent of workers and the process that runs the handler. It inherits
every orphan below it, so that even a process that made a session of its own is found. When the
handler's process ends, or the server says so, or the server or the parent of workers is gone, it
kills what is left, tells how the handler's process ended, and goes.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from typing import Callable, List, NoReturn, Optional

from . import kernel

STOP = b"T"
# How often orphans that ended are taken note of while the run goes on.
REAP_MILLISECONDS = 2000
SWEEP_SECONDS_MAX = 10.0


def keep(
    parent: int, control: socket.socket, theirs: List[int], work: Callable[[], int]
) -> NoReturn:
    """Forks the process of a run, closes the descriptors that are its alone, and watches it."""
    kernel.inherit_orphans()
    above = os.pidfd_open(parent)
    keeper = os.getpid()
    try:
        child = os.fork()
    except OSError:
        _tell(control, {"lost": "The machine has no room for another process."})
        os._exit(1)
    if child == 0:
        control.close()
        os.close(above)
        kernel.die_with_parent(keeper)
        os._exit(work())
    for number in theirs:
        os.close(number)
    _quiet()
    _tell(control, {"started": {"pid": child, "keeper": keeper}})
    status = Watch(control, above, child).until_end()
    if status is not None:
        name = "signal" if os.WIFSIGNALED(status) else "code"
        value = os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        _tell(control, {"exited": {name: value}})
    os._exit(0)


class Watch:
    """Waits for the end of one process, then ends all that is left of it."""

    def __init__(self, control: socket.socket, above: int, child: int) -> None:
        self._control, self._above, self._child = control, above, child
        self._status: Optional[int] = None

    def until_end(self) -> Optional[int]:
        """How the process ended, once nothing is left of the run."""
        process = os.pidfd_open(self._child)
        poll = select.poll()
        poll.register(process, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        poll.register(self._above, select.POLLIN)
        while self._status is None:
            ready = [number for number, _ in poll.poll(REAP_MILLISECONDS)]
            if self._above in ready:
                break
            if self._control.fileno() in ready and not self._obey():
                break
            self._reap()
        os.close(process)
        self._sweep()
        return self._status

    def _obey(self) -> bool:
        """Does what the server says; a server that is gone wants all of it to end."""
        try:
            orders = self._control.recv(64)
        except OSError:
            return False
        for order in (orders[i : i + 1] for i in range(len(orders))):
            if order != STOP:
                return False
            self._signal(signal.SIGTERM)
        return bool(orders)

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self._child, number)
        except OSError:
            pass

    def _reap(self) -> bool:
        """Takes note of those that ended, and says whether any are left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._child:
                self._status = status

    def _sweep(self) -> None:
        until = time.monotonic() + SWEEP_SECONDS_MAX
        pause = 0.0005
        while self._reap() and time.monotonic() < until:
            if self._status is None:
                self._signal(signal.SIGKILL)
            for pid in kernel.children():
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            time.sleep(pause)
            pause = min(pause * 2, 0.02)


def _quiet() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.close(nothing)


def _tell(control: socket.socket, message: object) -> None:
    try:
        control.sendall(json.dumps(message).encode() + b"\n")
    except OSError:
        pass

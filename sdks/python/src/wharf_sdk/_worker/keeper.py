"""Looks after the processes of runs, one run at a time, and leaves none behind.

A keeper stands between the parent of workers and the process that runs the handler. It inherits
every orphan below it, so that even a process that made a session of its own is found. When the
handler's process ends, or the server says so, or the server or the parent of workers is gone, it
kills what is left and tells how the handler's process ended. Then it can take the next run: it has
run nothing of the handler itself, so that nothing of one run can reach another.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import time
from typing import Callable, List, NoReturn, Optional

from . import kernel

STOP = b"T"
# A run's way to its keeper, its channel, and where its output and errors go.
DESCRIPTORS = 4
# How often orphans that ended are taken note of while the run goes on.
REAP_MILLISECONDS = 2000
SWEEP_SECONDS_MAX = 10.0

Work = Callable[[int, int, int], int]


def serve(parent: int, orders: socket.socket, work: Work) -> NoReturn:
    """Takes runs until there are no more orders. `work` is given a run's channel, output, errors."""
    gc.disable()
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    kernel.inherit_orphans()
    above = os.pidfd_open(parent)
    poll = select.poll()
    poll.register(above, select.POLLIN)
    poll.register(orders, select.POLLIN)
    while True:
        ready = [number for number, _ in poll.poll()]
        if above in ready:
            os._exit(0)
        order, descriptors, _, _ = socket.recv_fds(orders, 1, DESCRIPTORS)
        if not order:
            os._exit(0)
        if len(descriptors) != DESCRIPTORS or not _keep(above, orders, list(descriptors), work):
            os._exit(1)
        orders.sendall(b".")


def _keep(above: int, orders: socket.socket, descriptors: List[int], work: Work) -> bool:
    """Sees one run through, and says whether nothing is left of it."""
    for number in descriptors:
        os.set_inheritable(number, False)
    control = socket.socket(fileno=descriptors[0])
    channel, out, err = descriptors[1:]
    keeper = os.getpid()
    try:
        child = os.fork()
    except OSError:
        child = -1
    if child == 0:
        control.close()
        orders.close()
        os.close(above)
        kernel.die_with_parent(keeper)
        os._exit(work(channel, out, err))
    for number in (channel, out, err):
        os.close(number)
    with control:
        if child == -1:
            _tell(control, {"lost": "The machine has no room for another process."})
            return True
        _tell(control, {"started": {"pid": child, "keeper": keeper}})
        watch = Watch(control, above, child)
        is_clean = watch.until_end()
        status = watch.status
        if status is not None:
            name = "signal" if os.WIFSIGNALED(status) else "code"
            value = os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            _tell(control, {"exited": {name: value}})
    return is_clean


class Watch:
    """Waits for the end of one process, then ends all that is left of it."""

    def __init__(self, control: socket.socket, above: int, child: int) -> None:
        self._control, self._above, self._child = control, above, child
        self.status: Optional[int] = None

    def until_end(self) -> bool:
        """Waits, and says whether nothing is left of the run."""
        process = os.pidfd_open(self._child)
        poll = select.poll()
        for number in (process, self._control.fileno(), self._above):
            poll.register(number, select.POLLIN)
        while self.status is None:
            ready = [number for number, _ in poll.poll(REAP_MILLISECONDS)]
            if self._above in ready:
                break
            if self._control.fileno() in ready and not self._obey():
                break
            self._reap()
        os.close(process)
        return self._sweep()

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
                self.status = status

    def _sweep(self) -> bool:
        until = time.monotonic() + SWEEP_SECONDS_MAX
        pause = 0.0005
        while self._reap():
            if time.monotonic() > until:
                return False
            if self.status is None:
                self._signal(signal.SIGKILL)
            for pid in kernel.children():
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            time.sleep(pause)
            pause = min(pause * 2, 0.02)
        return True


def _tell(control: socket.socket, message: object) -> None:
    try:
        control.sendall(json.dumps(message).encode() + b"\n")
    except OSError:
        pass

"""The parent of workers: imports the handler once, so that every run can begin with a fork.

It takes orders over the socket that is its standard input, one byte each, with the descriptors of
a run, and hands them to keepers, each of which forks for one run after the other. When that socket
closes it ends, and the keepers end their runs.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
import threading
import traceback
from typing import Any, Callable, Dict, Iterable, List, NoReturn, Optional

from .._load import Unusable, load
from . import kernel
from .keeper import DESCRIPTORS, Work, serve
from .run import leave, work

# Keepers that may wait for a run.
IDLE_MAX = 32
Entry = Callable[..., Any]


def main(mode: str, file: str) -> NoReturn:
    """Serves until the server is gone. `warm` imports now, `cold` in each run, `check` only once."""
    orders = _orders()
    try:
        os.setsid()
    except OSError:
        pass  # It leads its session already.
    sys.argv = [file]
    entry: Optional[Entry] = None
    ready: Dict[str, Any] = {"python": sys.version.split()[0]}
    if mode != "cold":
        try:
            entry = load(file)
        except Unusable as error:
            _say(orders, {"failed": {"message": error.message, "detail": error.detail}})
            leave(1)
        ready["threads"] = len(threading.enumerate()) - 1
    _say(orders, {"ready": ready})
    if mode != "check":
        _settle()

        def handle(channel: int, out: int, err: int) -> int:
            _own_ways(out, err)
            found = (lambda: load(file)) if entry is None else (lambda: entry)
            leave(work(socket.socket(fileno=channel), found))
            return 1

        Keepers(handle).serve(orders)
    leave(0)
    raise SystemExit  # For readers only: the process is gone.


def _orders() -> socket.socket:
    """The socket behind standard input; nobody else may read from it.

    Whatever else the server let through is closed: no run is to inherit it.
    """
    orders = socket.socket(fileno=os.dup(0))
    for number in kernel.descriptors():
        if number > 2 and number != orders.fileno():
            os.close(number)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return orders


def _settle() -> None:
    """Gets ready to fork: nothing half written, as little as possible to copy later."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(line_buffering=True, errors="replace")
        stream.flush()
    gc.collect()
    gc.freeze()
    # The kernel takes note of keepers that ended.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


class Keepers:
    """Hands each run to a keeper that has none, and forks another keeper when all are busy."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._all: Dict[int, socket.socket] = {}
        self._idle: List[socket.socket] = []

    def serve(self, orders: socket.socket) -> None:
        """Until the server is gone."""
        poll = select.poll()
        poll.register(orders, select.POLLIN)
        while True:
            for number, _ in poll.poll():
                if number != orders.fileno():
                    self._hear(poll, self._all[number])
                elif not self._order(poll, orders):
                    return

    def _order(self, poll: select.poll, orders: socket.socket) -> bool:
        try:
            order, descriptors, _, _ = socket.recv_fds(orders, 1, DESCRIPTORS)
        except OSError:
            return False
        given = False
        while order and not given:
            keeper = self._idle.pop() if self._idle else self._fork(poll, orders, descriptors)
            if keeper is None:
                break  # The server sees the end of the run's sockets.
            try:
                socket.send_fds(keeper, [order], list(descriptors))
                given = True
            except OSError:
                self._forget(poll, keeper)
        for number in descriptors:
            os.close(number)
        return bool(order)

    def _hear(self, poll: select.poll, keeper: socket.socket) -> None:
        """A keeper is done with its run, or gone."""
        try:
            said = keeper.recv(1)
        except OSError:
            said = b""
        if said and len(self._idle) < IDLE_MAX:
            self._idle.append(keeper)
        else:
            self._forget(poll, keeper)

    def _forget(self, poll: select.poll, keeper: socket.socket) -> None:
        poll.unregister(keeper)
        del self._all[keeper.fileno()]
        if keeper in self._idle:
            self._idle.remove(keeper)
        keeper.close()

    def _fork(
        self, poll: select.poll, orders: socket.socket, descriptors: Iterable[int]
    ) -> Optional[socket.socket]:
        parent = os.getpid()
        ours, theirs = socket.socketpair()
        try:
            child = os.fork()
        except OSError:
            return None
        if child == 0:
            try:
                for other in (ours, orders, *self._all.values()):
                    other.close()
                for number in descriptors:
                    os.close(number)
                serve(parent, theirs, self._work)
            except BaseException:
                # Nobody above knows of it; these errors go to the server's log.
                traceback.print_exc()
            finally:
                os._exit(1)
        theirs.close()
        poll.register(ours, select.POLLIN)
        self._all[ours.fileno()] = ours
        return ours


def _own_ways(out: int, err: int) -> None:
    """Gives the process of a run its own session, output, signals and randomness."""
    os.setsid()
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.close(out)
    os.close(err)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    gc.enable()
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "random"):
        numpy.random.seed()  # `random` does this by itself.


def _say(orders: socket.socket, message: object) -> None:
    try:
        orders.sendall(json.dumps(message).encode() + b"\n")
    except OSError:
        leave(1)

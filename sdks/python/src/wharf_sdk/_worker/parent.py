"""The parent of workers: imports the handler once and forks for every run.

It takes orders over the socket that is its standard input, one byte each, with the descriptors of
a run: how its keeper is reached, the run's channel, and where its output and errors go. When that
socket closes it ends, and the keepers end their runs.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
import threading
import traceback
from typing import Any, Callable, Dict, List, NoReturn, Optional

from . import kernel
from .keeper import keep
from .load import Unusable, load
from .run import leave, work

DESCRIPTORS = 4
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
        _serve(orders, file, entry)
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


def _serve(orders: socket.socket, file: str, entry: Optional[Entry]) -> None:
    while True:
        try:
            order, descriptors, _, _ = socket.recv_fds(orders, 1, DESCRIPTORS)
        except InterruptedError:
            continue
        except OSError:
            return
        if not order:
            return
        if len(descriptors) == DESCRIPTORS:
            _fork(orders, list(descriptors), file, entry)
        for number in descriptors:
            os.close(number)


def _fork(orders: socket.socket, descriptors: List[int], file: str, entry: Optional[Entry]) -> None:
    parent = os.getpid()
    try:
        if os.fork() != 0:
            return
    except OSError:
        return  # The server sees the end of the run's sockets.
    try:
        orders.close()
        _begin(parent, descriptors, file, entry)
    except BaseException:
        # Nobody above knows of it; the parent's errors go to the server's log.
        traceback.print_exc()
    finally:
        os._exit(1)


def _begin(
    parent: int, descriptors: List[int], file: str, entry: Optional[Entry]
) -> NoReturn:
    """In the forked process: becomes the keeper, whose own fork runs the handler."""
    for number in descriptors:
        os.set_inheritable(number, False)
    gc.disable()
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    control = socket.socket(fileno=descriptors[0])
    channel, out, err = descriptors[1:]

    def handle() -> int:
        _own_ways(out, err)
        find = (lambda: load(file)) if entry is None else (lambda: entry)
        status = work(socket.socket(fileno=channel), find)
        leave(status)
        return status

    keep(parent, control, [channel, out, err], handle)


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

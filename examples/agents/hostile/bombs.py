"""Attempts to keep memory and disk where a limit does not find them.

None of them is expected to come back, but for the one that the kernel refuses.
"""

import ctypes
import mmap
import os
import time

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
PR_SET_DUMPABLE = 4
MEMFD_SECRET = 447
NORESERVE = 0x4000
MEGABYTE = 1 << 20
# More than the manifest allows, and nothing that hurts a machine.
PIECES = 12
PIECE = 30 * MEGABYTE


def in_memory():
    """A file without a name that lies in memory."""
    file = os.memfd_create("hostile")
    for _ in range(PIECE // MEGABYTE):
        os.write(file, b"x" * MEGABYTE)
    return file


def on_disk():
    """A file that was removed while it is open."""
    name = os.path.join(os.environ["TMPDIR"], "removed")
    file = os.open(name, os.O_CREAT | os.O_RDWR, 0o600)
    os.unlink(name)
    for _ in range(8):
        os.write(file, b"x" * MEGABYTE)
    return file


def stay(_held):
    """Holds on to something for longer than anybody should have to wait."""
    time.sleep(60)
    return {"held": True}


def invisible_memory(_):
    """Makes itself invisible to its own user and keeps memory in files without a name."""
    LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    return stay([in_memory() for _ in range(PIECES)])


def invisible_disk(_):
    """Makes itself invisible to its own user and keeps removed files open."""
    LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    return stay([on_disk() for _ in range(PIECES)])


def crowd(what):
    """Opens very many files first, and then those that matter."""
    null = os.open("/dev/null", os.O_RDONLY)
    for _ in range(52):
        if os.fork() == 0:
            stay([os.dup(null) for _ in range(1000)])
    if os.fork() == 0:
        stay([what() for _ in range(PIECES)])
    return stay(None)


def crowded_memory(_):
    """Keeps memory behind more open files than anybody can look at."""
    return crowd(in_memory)


def crowded_disk(_):
    """Keeps removed files behind more open files than anybody can look at."""
    return crowd(on_disk)


def mapped_disk(_):
    """Removes and closes files that it keeps mapped."""
    for _ in range(PIECES):
        file = on_disk()
        LIBC.mmap(None, 8 * MEGABYTE, mmap.PROT_READ, mmap.MAP_SHARED, file, 0)
        os.close(file)
    return stay(None)


def secret_memory(_):
    """Takes memory that even the kernel does not look at."""
    if LIBC.syscall(MEMFD_SECRET, 0) == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return {"secret": True}


def page_tables(_):
    """Touches little of very much, so that the kernel keeps long tables for it."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE
    room = mmap.mmap(-1, 256 << 30, flags)
    room.madvise(15)  # MADV_NOHUGEPAGE
    for at in range(0, 256 << 30, 2 << 20):
        room[at]
    return stay(room)


ALL = {tool.__name__: tool for tool in (
    invisible_memory, invisible_disk, crowded_memory, crowded_disk, mapped_disk, secret_memory,
    page_tables)}

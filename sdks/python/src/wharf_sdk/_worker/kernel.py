"""What the standard library lacks of the kernel's ways to look after processes."""

from __future__ import annotations

import os
import re
import signal
import stat
import struct
import sys
from typing import Any, Callable, Iterable, List, Optional, Tuple

SET_PARENT_DEATH_SIGNAL = 1
SET_CHILD_SUBREAPER = 36
SET_NO_NEW_PRIVS = 38
# Landlock has the same numbers on every machine.
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
LANDLOCK_VERSION = 1
LANDLOCK_PATH_BENEATH = 1
# How many rights to files there are since which version; the rest is to be left to the fence.
LANDLOCK_RIGHTS = ((5, 16), (3, 15), (2, 14), (1, 13))
# Signals and abstract sockets.
LANDLOCK_SCOPED = 3
# What stands in the root of a fence beside what is mounted there.
USUAL = tuple("bin dev etc lib lib32 lib64 libx32 opt proc run sbin usr".split())
# Execute, read a file, list a folder.
READ = 0b1101
# Execute, write, read, truncate, control a device: all that concerns a file by itself.
OF_FILES = 0b111 | 1 << 14 | 1 << 15

_prctl: Optional[Any] = None
_syscall: Optional[Any] = None
if sys.platform == "linux":
    try:
        import ctypes

        _prctl = ctypes.CDLL(None, use_errno=True).prctl
        _syscall = ctypes.CDLL(None, use_errno=True).syscall
        _syscall.restype = ctypes.c_long
    except (ImportError, AttributeError, OSError):
        # Without it the process group is all there is to kill.
        _prctl = _syscall = None


def inherit_orphans() -> None:
    """Makes this process the parent of every process below it whose own parent ends."""
    if _prctl is not None:
        _prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(parent: int) -> None:
    """Ends this process when its parent ends, also if that has just happened."""
    if _prctl is not None:
        _prctl(SET_PARENT_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def descriptors() -> List[int]:
    """The descriptors that this process has open."""
    try:
        numbers = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return []
    return [number for number in numbers if _is_open(number)]


def _is_open(number: int) -> bool:
    """The folder that was listed is among what it lists, but no longer open."""
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def children() -> List[int]:
    """The processes whose parent is this one."""
    own = os.getpid()
    try:
        with open("/proc/self/task/%d/children" % own, "rb") as file:
            return [int(number) for number in file.read().split()]
    except OSError:
        pass
    try:
        everyone = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    return [pid for pid in everyone if _parent(pid) == own]


def _parent(pid: int) -> int:
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            return int(file.read().rsplit(b")", 1)[1].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def keep_apart(hidden: Iterable[str], own: Iterable[str], readable: Iterable[str]) -> bool:
    """Gives this process and all it starts a Landlock domain of their own; whether it could.

    Processes outside of it can then not be looked into or signaled. Of what lies in the folders
    `hidden` only `own`, and for reading `readable`, can be opened any more. Everything else is as
    it was.
    """
    version = _landlock(LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_VERSION)
    if version < 1:
        return False
    every = next((1 << count) - 1 for since, count in LANDLOCK_RIGHTS if version >= since)
    attributes = struct.pack("=Q", every)
    if version >= 6:
        attributes = struct.pack("=QQQ", every, 0, LANDLOCK_SCOPED)
    rules = _landlock(LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    if rules < 0:
        return False
    try:
        hidden = [os.path.realpath(path) for path in hidden]
        for path in _around(hidden):
            _allow(rules, path, every)
        for path in own:
            _allow(rules, path, every)
        for path in readable:
            _allow(rules, path, every & READ)
        if _prctl is None or _prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            return False
        return _landlock(LANDLOCK_RESTRICT_SELF, rules, 0) == 0
    finally:
        os.close(rules)


def _landlock(number: int, *arguments: Any) -> int:
    if _syscall is None:
        return -1
    as_long = (ctypes.c_long(one) if isinstance(one, int) else one for one in arguments)
    return int(_syscall(ctypes.c_long(number), *as_long))


def _allow(rules: int, path: str, rights: int) -> None:
    """What is not there, or not to be seen, needs no right."""
    try:
        place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= OF_FILES
        rule = struct.pack("=Qi", rights, place)
        _landlock(LANDLOCK_ADD_RULE, rules, LANDLOCK_PATH_BENEATH, rule, 0)
    finally:
        os.close(place)


def _around(hidden: List[str]) -> List[str]:
    """Everything there is but what lies in these folders.

    Links are left out: what counts is where they lead. A folder that is shown in a second place is
    hidden there, too. In a fence folders on the way cannot be listed; there, what is mounted below
    them is all there is. If that does not even show where this process is at home, nothing is
    hidden.
    """
    shut = {place for place in map(_place, hidden) if place is not None}
    found: List[str] = []
    folders = ["/"]
    while folders:
        for path in _inside(folders.pop()):
            if os.path.islink(path) or _place(path) in shut or any(map(_holds(path), hidden)):
                continue
            if any(_holds(one)(path) for one in hidden):
                folders.append(path)
            else:
                found.append(path)
    home = os.path.realpath(os.environ.get("HOME", "/"))
    return found if any(_holds(home)(one) for one in found) else ["/"]


def _holds(path: str) -> Callable[[str], bool]:
    """Whether a folder is this path or lies around it."""
    return lambda folder: (path + "/").startswith(folder.rstrip("/") + "/")


def _place(path: str) -> Optional[Tuple[int, int]]:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _inside(folder: str) -> List[str]:
    """What is in a folder; if it cannot be listed, what is known to be there."""
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        pass
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        lines = []
    points = [re.sub(r"\\([0-7]{3})", _character, line.split(" ")[4]) for line in lines]
    usual = [os.path.join(folder, name) for name in USUAL] if folder == "/" else []
    return usual + [point for point in points if point != folder and _holds(point)(folder)]


def _character(escaped: Any) -> str:
    return chr(int(escaped.group(1), 8))

"""What the standard library lacks of the kernel's ways to look after processes."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, List, Optional

SET_PARENT_DEATH_SIGNAL = 1
SET_CHILD_SUBREAPER = 36

_prctl: Optional[Any] = None
if sys.platform == "linux":
    try:
        import ctypes

        _prctl = ctypes.CDLL(None, use_errno=True).prctl
    except (ImportError, AttributeError, OSError):
        # Without it the process group is all there is to kill.
        _prctl = None


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

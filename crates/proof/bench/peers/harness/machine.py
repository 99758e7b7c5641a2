"""What the machine is, and what else it does while something is measured."""

from __future__ import annotations

import fcntl
import os
import platform
import socket
import struct
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from .children import LIBC, below, fields_of
from .figures import median

CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
IFF_UP = 0x1
TICKS = os.sysconf("SC_CLK_TCK")
# A round is called busy when others used more than this many processors in it.
BUSY_CORES = 0.15
FLUSHES = 15


def describe() -> dict[str, object]:
    """What it is."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "memory_gib": round(pages / 2**30),
        "kernel": ".".join(platform.release().split(".")[:2]),
        "system": system_name(),
    }


def system_name() -> str:
    try:
        lines = Path("/etc/os-release").read_text().splitlines()
    except OSError:
        return platform.system()
    named = dict(line.split("=", 1) for line in lines if "=" in line)
    return named.get("PRETTY_NAME", platform.system()).strip('"')


def close_network() -> bool:
    """Leaves this process, and all that it starts, with a loopback of its own and no other network.

    Where that is not allowed (it takes root), peers are still bound to loopback and watched.
    """
    if LIBC.unshare(CLONE_NEWNET) != 0:
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh", b"lo", IFF_UP)
        fcntl.ioctl(control, SIOCSIFFLAGS, request)
    return True


def heard_outside(pids: list[int]) -> list[str]:
    """Addresses beyond loopback on which these processes listen."""
    inodes = set()
    for pid in pids:
        try:
            for entry in os.scandir(f"/proc/{pid}/fd"):
                target = os.readlink(entry.path)
                if target.startswith("socket:["):
                    inodes.add(target[8:-1])
        except OSError:
            continue
    found = []
    for name in ("tcp", "tcp6"):
        table = Path(f"/proc/net/{name}").read_text()
        found += [f"{name} {there}" for there in beyond_loopback(table, inodes)]
    return found


def beyond_loopback(table: str, inodes: set[str]) -> list[str]:
    """Where sockets of a table of the kernel listen for others than this machine."""
    found = []
    for line in table.splitlines()[1:]:
        fields = line.split()
        address, port = fields[1].split(":")
        if fields[3] != LISTENING or fields[9] not in inodes:
            continue
        # Addresses stand there in words of four bytes, each the other way about.
        loopback = address.endswith("7F") and len(address) == 8 or address in LOOPBACK_6
        if not loopback:
            found.append(f"{address} port {int(port, 16)}")
    return found


LISTENING = "0A"
# ::1, and 127.0.0.1 as an address of IPv6.
LOOPBACK_6 = ("00000000000000000000000001000000", "0000000000000000FFFF00000100007F")


def flush_ms(folder: Path) -> float:
    """How long one flush of a small write takes on the disk of the data: the middle of a few."""
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(FLUSHES):
            begin = time.perf_counter()
            os.write(file.fileno(), b"\7" * 4096)
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - begin) * 1e3)
    return median(times)


def file_system(folder: Path) -> str:
    """The kind of file system that a folder lies on."""
    best, kind = "", "unknown"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, point, system, *_ = line.split()
        inside = f"{folder.resolve()}/".startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, system
    return kind


@dataclass(frozen=True)
class Moment:
    """Processor time at one moment: of the machine, and of this process and all below it."""

    at: float
    machine: float
    own: float


def now() -> Moment:
    first = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    user, nice, system, _idle, _wait, interrupts, soft, steal = map(int, first)
    machine = (user + nice + system + interrupts + soft + steal) / TICKS
    own = 0
    for pid in below(os.getpid()):
        fields = fields_of(pid)
        if fields:
            own += sum(int(field) for field in fields[11:15])
    return Moment(time.monotonic(), machine, own / TICKS)


def others_cores(begin: Moment, end: Moment) -> float:
    """How many processors everybody else used between two moments."""
    seconds = max(end.at - begin.at, 1e-3)
    return max(0.0, (end.machine - begin.machine) - (end.own - begin.own)) / seconds


def load() -> float:
    """The load average of the last minute."""
    return os.getloadavg()[0]


def free_port() -> int:
    """A port of loopback that is free now, for peers that cannot be told to pick one."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

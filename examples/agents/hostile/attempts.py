"""The attempts: each takes the call's input and answers what came of it.

An attempt that the fence stops raises an OSError, and that is what is reported. One that takes
too much of something is not expected to come back at all.
"""

import ctypes
import errno
import os
import socket
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
PTRACE_ATTACH = 16
CLONE_NEWUSER = 0x10000000


def kernel(result):
    """Raises what the kernel said when a call by ctypes fails."""
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def read_file(call):
    """Reads a file that is none of its business."""
    with open(call["path"], "rb") as file:
        return {"bytes": len(file.read(65536))}


def write_file(call):
    """Writes a file where it must not."""
    with open(call["path"], "ab") as file:
        file.write(b"hostile was here\n")
    return {"written": call["path"]}


def connect_tcp(call):
    """Connects straight to a TCP port."""
    socket.create_connection((call["host"], call["port"]), timeout=5).close()
    return {"connected": "%s:%d" % (call["host"], call["port"])}


def send_udp(call):
    """Sends a datagram."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.sendto(b"hostile", (call["host"], call["port"]))
    return {"sent": True}


def connect_unix(call):
    """Connects to a Unix socket that is not its own."""
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(call["path"])
    return {"connected": call["path"]}


def connect_abstract(call):
    """Connects to an abstract Unix socket, which no path guards."""
    with socket.socket(socket.AF_UNIX) as link:
        link.connect("\0" + call["name"])
    return {"connected": call["name"]}


def by_proxy(call):
    """Asks the way out for a host that nobody approved."""
    proxy = os.environ.get("HTTPS_PROXY", "")
    if not proxy:
        raise OSError(errno.ENETUNREACH, "there is no way out at all")
    host, _, port = proxy.rpartition("/")[2].partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as link:
        link.sendall(("CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n" % call["host"]).encode())
        status = link.recv(4096).decode("latin-1").split("\r\n")[0]
    if " 200" not in status:
        raise OSError(errno.EACCES, "the proxy says: " + status)
    return {"status": status}


def ptrace(call):
    """Attaches to another process as a debugger."""
    kernel(LIBC.ptrace(PTRACE_ATTACH, call["pid"], 0, 0))
    return {"attached": call["pid"]}


def signal_other(call):
    """Kills a process outside."""
    os.kill(call["pid"], 9)
    return {"killed": call["pid"]}


def see_processes(call):
    """Looks for the core among the processes it can see."""
    seen = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
    if call["pid"] not in seen:
        raise OSError(errno.ESRCH, "it sees only %d processes" % len(seen))
    with open("/proc/%d/environ" % call["pid"], "rb") as file:
        return {"bytes": len(file.read())}


def unshare(_):
    """Makes a namespace of its own to become root in."""
    kernel(LIBC.unshare(CLONE_NEWUSER))
    return {"unshared": True}


def mount(_):
    """Mounts a file system over its own view."""
    kernel(LIBC.mount(b"none", b"/tmp", b"tmpfs", 0, None))
    return {"mounted": True}


def fork_away(call):
    """Leaves a grandchild in a session of its own that outlives everything, if it can."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for stream in (0, 1, 2):
                os.close(stream)
            sys.argv[:] = [call["marker"]]
            os.execvp("python3", ["python3", "-c", "import time; time.sleep(600)", call["marker"]])
        os._exit(0)
    os.wait()
    return {"left_behind": call["marker"]}


def fork_bomb(_):
    """Forks without end."""
    while True:
        try:
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)
        except OSError:
            time.sleep(0.01)


def eat_memory(_):
    """Takes memory without end."""
    taken = []
    while True:
        taken.append(bytearray(os.urandom(1) * (8 << 20)))


def fill_disk(_):
    """Fills its own folder without end."""
    number = 0
    while True:
        number += 1
        with open(os.path.join(os.environ["TMPDIR"], "fill-%d" % number), "wb") as file:
            file.write(b"\0" * (4 << 20))


def flood_log(_):
    """Writes lines without end."""
    line = b"hostile " * 500 + b"\n"
    while True:
        os.write(1, line)


def spin(_):
    """Keeps the processors busy for ever."""
    for _ in range(2):
        if os.fork() == 0:
            while True:
                pass
    while True:
        pass


def ignore_term(_):
    """Will not hear that it is told to end; what keeps it is installed by the main thread."""
    return {"ignores": "TERM and goodbye"}


ALL = {tool.__name__: tool for tool in (
    read_file, write_file, connect_tcp, send_udp, connect_unix, connect_abstract, by_proxy, ptrace,
    signal_other, see_processes, unshare, mount, fork_away, fork_bomb, eat_memory, fill_disk,
    flood_log, spin, ignore_term)}

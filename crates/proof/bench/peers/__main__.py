"""Wharf beside its peers, in turns: `make bench-peers`, or `python3 crates/proof/bench/peers`."""

from __future__ import annotations

import argparse
import datetime
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from harness import install, machine, report, turns
from harness.children import Broken, adopt_orphans, end_all
from harness.install import say
from harness.peer import Peer
from peers.bubblewrap import Bubblewrap
from peers.celery_redis import CeleryRedis
from peers.dbos_sqlite import Dbos
from peers.fastmcp_proxy import FastMcp
from peers.litellm_budget import LiteLlm
from peers.mcp_sdks import McpPython, McpTypeScript
from peers.nats import Nats
from peers.restate import Restate
from peers.temporal import Temporal
from peers.wharf import Acting, Wharf

OLDEST = (3, 11)

PEERS: list[type[Peer]] = [
    Restate,
    CeleryRedis,
    Dbos,
    Nats,
    Temporal,
    McpTypeScript,
    McpPython,
    FastMcp,
    LiteLlm,
    Bubblewrap,
]

EXAMPLES = """examples:
  make bench-peers                               all of it, about 15 minutes
  make bench-peers ARGS=--quick                  a first look, about 5 minutes
  make bench-peers ARGS="--only restate,celery"  two peers
  make bench-peers ARGS=--write                  also writes README.md and docs/benchmarks.md
  make bench-peers ARGS=--list                   the peers; measures nothing

Peers are installed into target/bench-peers, with pinned versions and their hashes checked, and
listen on loopback only; as root they have no other network at all. Redis, bubblewrap and wrk come
from the system's packages.
"""

# Whatever hangs, the run ends.
LONGEST_SECONDS = 3600


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make bench-peers ARGS=…",
        description="Measures Wharf beside its peers, in turns, and prints a table.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only",
        metavar="PEER",
        action="append",
        help="one peer, or several with commas between; may be given more than once",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="two rounds instead of nine, and of Wharf only what is most alike",
    )
    parser.add_argument(
        "--rounds",
        type=rounds,
        metavar="N",
        help="so many rounds; from six on there is an interval of 95 %%",
    )
    parser.add_argument("--list", action="store_true", help="list the peers and end")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        default=install.REPOSITORY / "target/bench-peers.json",
        help="where every sample goes [default: target/bench-peers.json]",
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="write the tables into README.md and docs/benchmarks.md; not with --only",
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        default=Path("/var/tmp"),
        help="where data lies while it is measured: a disk, not memory [default: /var/tmp]",
    )
    given = parser.parse_args()
    if given.write and given.only:
        parser.error("--write needs all peers: a table of some would pass for all")
    return given


def rounds(text: str) -> int:
    count = int(text)
    if not 1 <= count <= 50:
        raise argparse.ArgumentTypeError("rounds are 1 to 50")
    return count


def chosen(only: list[str] | None) -> list[Peer]:
    """The peers that were asked for, in the order of the table."""
    known = {peer.name: peer for peer in PEERS}
    names = [name for part in only or [] for name in part.split(",") if name]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise Broken(f"there is no peer {unknown[0]}; there are {', '.join(known)}")
    return [peer() for peer in PEERS if not names or peer.name in names]


def show_peers(peers: list[Peer]) -> None:
    for peer in peers:
        print(f"{peer.name:<16} {peer.title:<30} {peer.about}")


def installed(peers: list[Peer], found: report.Report) -> list[Peer]:
    """The peers that could be installed; a row says of each of the others why not."""
    ready = []
    for peer in peers:
        try:
            peer.install()
            peer.version()
            ready.append(peer)
        except Exception as error:
            work = turns.Work("all of it", 1, turns.unmeasured)
            row = turns.Row(peer.title, "–", peer.about, peer.sync, work, error=turns.why(error))
            found.rows.append(row)
            say(f"{peer.title} is left out: {turns.why(error)}")
    return ready


def measure(peers: list[Peer], wharf: Wharf, pace: turns.Pace, data: Path, found: report.Report):
    for peer in peers:
        folder = data / peer.name
        folder.mkdir()
        turns.works_of(peer, wharf, pace, folder, lambda row: tell(row, found))
        if peer.has_server:
            say(f"{peer.title}: start and idle memory")
            for row in turns.starts(peer, wharf, pace, folder):
                tell(row, found)
        # Gigabytes of one peer need not lie there while the next one is measured.
        shutil.rmtree(folder, ignore_errors=True)
    keepers = [peer for peer in peers if peer.keeps_records]
    if keepers:
        contestants: list[Peer] = [wharf, Acting(wharf), *keepers]
        found.crashes = turns.crashes(contestants, pace, data)


def tell(row: turns.Row, found: report.Report) -> None:
    """Keeps a row and shows it at once: measuring takes minutes."""
    found.rows.append(row)
    for cells in report.cells_of(row):
        print("    " + " · ".join(cells[4:]), file=sys.stderr, flush=True)


def about(wharf: Wharf, quick: bool, data: Path, closed: bool) -> dict[str, object]:
    git = ["git", "-C", str(install.REPOSITORY), "describe", "--always", "--dirty", "--abbrev=12"]
    commit = subprocess.run(git, capture_output=True, text=True, timeout=30).stdout.strip()
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%-d %B %Y, %H:%M UTC"),
        "quick": quick,
        "commit": commit or "unknown",
        "wharf": wharf.version(),
        "wharf_sync": wharf.sync,
        "profile": wharf.program.parent.name,
        "file_system": machine.file_system(data),
        "network_closed": closed,
        "load_at_start": machine.load(),
        **machine.describe(),
    }


def warn_if_busy(data: Path) -> None:
    """Says before minutes pass that they will be worth little."""
    begin = machine.now()
    time.sleep(1)
    others = machine.others_cores(begin, machine.now())
    say(f"load {machine.load():.1f}, a flush takes {machine.flush_ms(data):.2f} ms")
    if others > machine.BUSY_CORES:
        say(f"this machine is not quiet: others use {others:.1f} processors; read ratios only")


def benchmark(given: argparse.Namespace, data: Path) -> int:
    pace = turns.QUICK if given.quick else turns.FULL
    if given.rounds:
        pace = replace(pace, rounds=given.rounds)
    peers, wharf = chosen(given.only), Wharf()
    wharf.install()
    install.system_package("wrk", "wrk")
    install.system_bin()
    found = report.Report({}, pace)
    ready = installed(peers, found)
    wharf.folder = data / "version"
    closed = machine.close_network()
    found.about = about(wharf, given.quick, data, closed)
    warn_if_busy(data)
    try:
        measure(ready, wharf, pace, data, found)
    except KeyboardInterrupt:
        say("interrupted; this is what was measured")
        print(found.plain())
        report.write_json(given.json, found)
        return 130
    print(found.plain())
    report.write_json(given.json, found)
    say(f"every sample is in {given.json}")
    if given.write:
        report.write(install.REPOSITORY / "README.md", found.readme())
        report.write(install.REPOSITORY / "docs/benchmarks.md", found.markdown())
        say("wrote README.md and docs/benchmarks.md")
    broken = [row for row in [*found.rows, *found.crashes] if row.error]
    return 1 if len(broken) == len(found.rows) + len(found.crashes) else 0


def end_on(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


def too_long(_signal: int, _frame: object) -> None:
    say(f"not over after {LONGEST_SECONDS // 60} minutes")
    raise KeyboardInterrupt


def main() -> int:
    given = arguments()
    if sys.version_info < OLDEST:
        raise Broken("python3 is older than 3.11; put a newer one first in PATH")
    if given.list:
        show_peers(chosen(given.only))
        return 0
    given.data.mkdir(parents=True, exist_ok=True)
    if machine.file_system(given.data) in ("tmpfs", "ramfs"):
        raise Broken(
            f"{given.data} lies in memory, where flushing costs nothing; name a disk by --data"
        )
    adopt_orphans()
    signal.signal(signal.SIGTERM, end_on)
    signal.signal(signal.SIGHUP, end_on)
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(LONGEST_SECONDS)
    data = Path(tempfile.mkdtemp(prefix="wharf-peers-", dir=given.data))
    try:
        return benchmark(given, data)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        end_all()
        shutil.rmtree(data, ignore_errors=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Broken as broken:
        sys.exit(f"bench-peers: {broken}")
    except KeyboardInterrupt:
        sys.exit(130)

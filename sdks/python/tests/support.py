"""A real core in a home of its own, and small things that several tests need."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, TypeVar

from wharf_sdk import Tool, tool

ROOT = Path(__file__).resolve().parents[3]
SOURCE = Path(__file__).resolve().parents[1] / "src"

LONG_SECONDS = 60.0

Found = TypeVar("Found")


def program() -> Path:
    """The `wharf` to try; a test that needs it is skipped where it was never built."""
    named = os.environ.get("WHARF_BIN")
    built = ROOT / "target" / "debug" / "wharf"
    if not named and not built.is_file():
        raise unittest.SkipTest("wharf is not built and WHARF_BIN is not set")
    return Path(named) if named else built


def wait_for(what: str, look: Callable[[], Optional[Found]]) -> Found:
    """Waits until there is something, and says what was awaited if there never is."""
    until = time.monotonic() + LONG_SECONDS
    while True:
        found = look()
        if found is not None:
            return found
        if time.monotonic() > until:
            raise AssertionError("waited in vain for " + what)
        time.sleep(0.01)


class Core:
    """A core in a process of its own, with a home that vanishes with it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="wharf-python-"))
        self.home = self.folder / "home"
        self._process: Optional[subprocess.Popen[bytes]] = None

    def environment(self) -> Dict[str, str]:
        """This process's environment with this home, and nothing that points elsewhere."""
        given = {k: v for k, v in os.environ.items() if not k.startswith(("WHARF_", "XDG_"))}
        return dict(given, WHARF_HOME=str(self.home), HOME=str(self.folder))

    def up(self, listen: str = "127.0.0.1:0") -> Core:
        """Starts it and waits until it is ready."""
        with open(self.folder / "core.log", "ab") as log:
            self._process = subprocess.Popen(
                [str(program()), "up", "--listen", listen],
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        wait_for("the core to be ready", self._ready)
        return self

    def _ready(self) -> Optional[bool]:
        process = self._process
        assert process is not None
        if process.poll() is not None:
            raise AssertionError((self.folder / "core.log").read_text("utf-8", "replace"))
        try:
            info = json.loads((self.home / "run" / "core.json").read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return True if info["pid"] == process.pid else None

    @property
    def url(self) -> str:
        """Where its API is."""
        info = json.loads((self.home / "run" / "core.json").read_text("utf-8"))
        return str(info["http"])

    def kill(self) -> None:
        """kill -9, and nothing else."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def close(self) -> None:
        """Ends it and removes its home."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(LONG_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def wharf(self, *arguments: str) -> str:
        """Runs the program beside the core, which must go well."""
        done = subprocess.run(
            [str(program()), *arguments],
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONG_SECONDS,
        )
        if done.returncode != 0:
            raise AssertionError("%s: %s%s" % (arguments, done.stdout, done.stderr))
        return done.stdout

    def add_agent(self, folder: Path, agent_id: str, *arguments: str) -> None:
        """Adds, approves and starts an agent, and waits until it runs."""
        self.wharf("agents", "add", str(folder))
        self.wharf("agents", "approve", agent_id, "--all", *arguments)
        self.wharf("agents", "start", agent_id)

        def running() -> Optional[bool]:
            shown = json.loads(self.wharf("agents", "show", agent_id, "--json"))
            return True if shown["state"] == "running" else None

        wait_for("the agent to run", running)


class WithCore(unittest.TestCase):
    """Tests that share one core. Each uses names of its own."""

    core: Core

    @classmethod
    def setUpClass(cls) -> None:
        program()
        cls.core = Core()
        cls.addClassCleanup(cls.core.close)
        cls.core.up()


class Frames:
    """What a handler said, in order."""

    def __init__(self) -> None:
        self.all: List[Dict[str, Any]] = []

    def __call__(self, frame: Dict[str, Any]) -> None:
        # What cannot be sent would be noticed only by a server otherwise.
        json.dumps(frame, allow_nan=False)
        self.all.append(frame)

    def partial(self) -> List[Dict[str, Any]]:
        """Outputs that were shown before the end."""
        return [frame["outputs"] for frame in self.all if frame["kind"] == "Response"]

    def of(self, kind: str) -> List[Dict[str, Any]]:
        """The data of all frames of a kind."""
        return [frame["data"] for frame in self.all if frame["kind"] == kind]


class Tried(unittest.TestCase):
    """Runs functions as tools, and takes what they say apart."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.frames = Frames()

    def run_it(
        self,
        work: Callable[..., Any],
        inputs: Optional[Dict[str, Any]] = None,
        ctrl: Any = None,
        **more: Any,
    ) -> Dict[str, Any]:
        made = work if isinstance(work, Tool) else tool(work)
        payload = dict({"run_id": "r1", "mode": "real", "inputs": inputs or {}}, **more)
        payload.setdefault("outputs", {})
        response = made(payload, self.frames, ctrl)
        json.dumps(response, allow_nan=False)
        self.assertEqual(response["kind"], "Response")
        self.assertTrue(response["control"]["final"])
        self.assertEqual(response["control"]["run_id"], "r1")
        return response

    def outputs_of(self, work: Callable[..., Any], *given: Any, **more: Any) -> Dict[str, Any]:
        response = self.run_it(work, *given, **more)
        self.assertEqual(response["control"]["status"], "success", response)
        outputs: Dict[str, Any] = response["outputs"]
        return outputs

    def error_of(self, work: Callable[..., Any], *given: Any, **more: Any) -> Dict[str, Any]:
        response = self.run_it(work, *given, **more)
        self.assertEqual(response["control"]["status"], "error", response)
        error: Dict[str, Any] = response["error"]
        return error

    def file(self, name: str, data: bytes) -> str:
        path = self.folder / name
        path.write_bytes(data)
        return str(path)

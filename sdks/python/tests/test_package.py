"""The package as it is installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from tests.support import SOURCE

PACKAGE = SOURCE.parent

SHOW = """
import wharf_sdk, pathlib
from wharf_sdk import Agent, AsyncClient, Client, tool
folder = pathlib.Path(wharf_sdk.__file__).parent
assert (folder / "py.typed").is_file()
print(folder, wharf_sdk.__version__, [n for n in wharf_sdk.__all__ if not hasattr(wharf_sdk, n)])
"""


class Installed(unittest.TestCase):
    def test_k033_pip_installs_it_into_an_environment_of_its_own(self) -> None:
        if importlib.util.find_spec("ensurepip") is None:
            self.skipTest("this Python cannot make an environment of its own")
        with tempfile.TemporaryDirectory() as folder:
            python = str(Path(folder) / "bin" / "python")
            self.call(sys.executable, "-m", "venv", folder)
            # Building and installing fetches nothing, wherever there would be something to fetch.
            self.call(python, "-m", "pip", "install", "--quiet", "--no-index", str(PACKAGE))
            shown = self.call(python, "-I", "-c", SHOW).split(" ", 2)
            self.assertTrue(shown[0].startswith(folder), shown)
            self.assertEqual(shown[1:], ["0.1.0", "[]\n"])
            names = self.call(python, "-m", "pip", "show", "--files", "wharf-sdk")
            self.assertNotIn("libs/", names, "only workers need those")
            self.assertIn("Requires: \n", names)
            self.assertEqual(
                self.call(python, "-m", "pip", "check"), "No broken requirements found.\n"
            )
            # Whoever changes the sources installs where they are.
            install = ["-m", "pip", "install", "--quiet", "--no-index", "--editable", str(PACKAGE)]
            self.call(python, *install)
            self.assertIn(str(SOURCE), self.call(python, "-B", "-I", "-c", SHOW))

    def call(self, *command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

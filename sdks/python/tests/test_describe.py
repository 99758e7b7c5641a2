"""What a handler says of itself, as `python3 -m wharf_sdk.describe` prints it."""

from __future__ import annotations

import importlib.util
import json
import py_compile
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List

from tests.support import SOURCE

SEVERAL = '''
import os, subprocess, sys
from wharf_sdk import tool

print("loading")
os.write(1, b"straight to the descriptor")
subprocess.run([sys.executable, "-c", "print('of a child')"])

@tool
def shout(text: str) -> dict:
    "Says it louder."
    return {"text": text.upper()}

@tool(stream="response", name="tell", mock=True)
def _story(prompt: str):
    yield prompt
'''


HELPED = "import helper\nfrom wharf_sdk import tool\n@tool\ndef %s() -> str:\n    return helper.NAME\n"


def forged(path: Path, text: str) -> None:
    """Puts a compiled module beside a source that says something else, and looks older."""
    other = path.with_name("other.py")
    other.write_text(text, "utf-8")
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    target = importlib.util.cache_from_source(str(path))
    py_compile.compile(str(other), target, doraise=True, invalidation_mode=unchecked)
    other.unlink()


class Describe(unittest.TestCase):
    def described(self, handler: str, code: int = 0) -> Dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "handler.py"
            path.write_text(handler, "utf-8")
            command = [sys.executable, "-B", "-m", "wharf_sdk.describe", str(path)]
            done = subprocess.run(
                command, env={"PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, timeout=60
            )
        self.assertEqual(done.returncode, code, done.stderr)
        said: Dict[str, Any] = json.loads(done.stdout)
        self.assertEqual(said["describe"], 1)
        return said

    def tools(self, handler: str) -> List[Dict[str, Any]]:
        found: List[Dict[str, Any]] = self.described(handler)["tools"]
        return found

    def problem(self, handler: str) -> Dict[str, Any]:
        error: Dict[str, Any] = self.described(handler, 1)["error"]
        return error

    def test_k033_all_tools_of_a_file_are_named_whatever_it_prints(self) -> None:
        shout, tell = self.tools(SEVERAL)
        self.assertEqual(
            shout,
            {
                "name": "shout",
                "description": "Says it louder.",
                "input_schema": {
                    "type": "object",
                    "properties": {"text": {"type": "string"}},
                    "required": ["text"],
                    "additionalProperties": False,
                },
                "output_schema": None,
                "stream": None,
                "mock": False,
                "durable": False,
            },
        )
        self.assertEqual((tell["name"], tell["stream"], tell["mock"]), ("tell", "response", True))

    def test_what_was_compiled_beside_a_handler_is_not_what_runs(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            handler, helper = Path(folder) / "handler.py", Path(folder) / "helper.py"
            handler.write_text(HELPED % "mine", "utf-8")
            helper.write_text("NAME = 'mine'\n", "utf-8")
            forged(handler, HELPED % "forged")
            forged(helper, "raise SystemExit('forged')\n")
            command = [sys.executable, "-B", "-m", "wharf_sdk.describe", str(handler)]
            done = subprocess.run(
                command, env={"PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, timeout=60
            )
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual([tool["name"] for tool in json.loads(done.stdout)["tools"]], ["mine"])

    def test_tools_that_are_imported_are_tools_of_the_file(self) -> None:
        text = "import sys, types\nfrom wharf_sdk import tool\nother = types.ModuleType('other')\n"
        text += "exec('from wharf_sdk import tool\\n@tool\\ndef a(): ...', other.__dict__)\n"
        text += "a = other.a\n@tool\ndef b(): ...\n"
        self.assertEqual([one["name"] for one in self.tools(text)], ["a", "b"])

    def test_a_plain_entry_is_a_tool_without_a_name(self) -> None:
        [plain] = self.tools("def entry(payload): return {}\n")
        self.assertEqual((plain["name"], plain["input_schema"]), (None, {}))
        self.assertIsNone(plain["output_schema"])

    def test_what_cannot_be_read_is_said_in_one_line(self) -> None:
        error = self.problem("def entry(payload:\n")
        self.assertRegex(error["message"], r"\ASyntaxError in handler.py, line 1: .+\Z")
        self.assertNotIn("\n", error["message"])

    def test_what_cannot_be_imported_is_told_without_frames_of_the_runtime(self) -> None:
        text = "def load():\n    import no_such_module\n\nload()\n"
        error = self.problem(text)
        sentence = "ModuleNotFoundError in handler.py, line 2: No module named 'no_such_module'"
        self.assertEqual(error["message"], sentence)
        frames = [line.strip() for line in error["traceback"] if line.startswith("  File")]
        self.assertEqual(
            frames,
            [
                'File "handler.py", line 4, in <module>',
                'File "handler.py", line 2, in load',
            ],
        )
        self.assertEqual(
            error["traceback"][-1], "ModuleNotFoundError: No module named 'no_such_module'"
        )

    def test_an_annotation_that_cannot_be_an_input_names_the_function(self) -> None:
        text = "from wharf_sdk import tool\n\n@tool\ndef make(x: type(print)): ...\n"
        error = self.problem(text)
        self.assertRegex(error["message"], r"\ATypeError in handler.py, line [34]: ")
        self.assertEqual(len([one for one in error["traceback"] if "  File" in one]), 1)

    def test_an_end_of_the_program_is_told_like_any_other(self) -> None:
        error = self.problem("import sys\nsys.exit('no licence')\n")
        self.assertEqual(error["message"], "SystemExit in handler.py, line 2: no licence")

    def test_a_file_without_tools_and_one_that_is_not_there_say_so(self) -> None:
        self.assertIn("has no function `entry`", self.problem("x = 1\n")["message"])

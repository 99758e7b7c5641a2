"""The manifest to begin with, as the command prints it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict

from tests.support import SOURCE

try:
    import tomllib
except ImportError:  # Before Python 3.11 nothing reads TOML; the text is still looked at.
    tomllib = None  # type: ignore[assignment]

HANDLER = '''
from typing import List, Literal, Optional, TypedDict
from wharf_sdk import tool, File


class Shout(TypedDict):
    text: str


@tool
def shout(text: str, how: Literal["loud", 'very "loud"'] = "loud", image: Optional[File] = None,
          tags: List[str] = []) -> Shout:
    """Says it louder.

    The rest of the documentation is for readers of the code.
    """
    return {"text": text.upper()}
'''


class Manifest(unittest.TestCase):
    def printed(self, handler: str, *arguments: str, code: int = 0) -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "handler.py"
            path.write_text(handler, "utf-8")
            command = [sys.executable, "-B", "-m", "wharf_sdk.manifest", str(path), *arguments]
            done = subprocess.run(
                command, env={"PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, timeout=60
            )
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def test_k033_a_handler_describes_itself(self) -> None:
        text = self.printed(HANDLER, "--ref", "acme/shout@2")
        self.assertIn('ref = "acme/shout@2"', text)
        if tomllib is None:
            return
        manifest: Dict[str, Any] = tomllib.loads(text)
        self.assertEqual(manifest["description"], "Says it louder.")
        self.assertEqual(manifest["handler"], "handler.py")
        self.assertNotIn("max_cost_micro", manifest, "whoever names no price has none")
        self.assertNotIn("free", manifest)
        properties = manifest["input_schema"]["properties"]
        self.assertEqual(properties["how"], {"enum": ["loud", 'very "loud"'], "default": "loud"})
        self.assertEqual(properties["tags"], {"type": "array", "items": {"type": "string"}})
        self.assertEqual(manifest["input_schema"]["required"], ["text"])
        self.assertEqual(manifest["output_schema"]["properties"], {"text": {"type": "string"}})

    def test_a_file_without_a_tool_says_so(self) -> None:
        self.assertIn("no function under `@tool`", self.printed("def entry(): ...", code=1))

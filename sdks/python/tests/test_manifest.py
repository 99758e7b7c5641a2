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
        text = self.printed(HANDLER, "--ref", "acme/shout@2", "--schemas")
        self.assertIn('ref = "acme/shout@2"', text)
        if tomllib is None:
            return
        manifest: Dict[str, Any] = tomllib.loads(text)
        self.assertEqual(manifest["description"], "Says it louder.")
        self.assertEqual(manifest["handler"], "handler.py")
        self.assertNotIn("max_cost_micro", manifest, "whoever names no price has none")
        self.assertNotIn("free", manifest)
        properties = manifest["input_schema"]["properties"]
        how = {"type": "string", "enum": ["loud", 'very "loud"'], "default": "loud"}
        self.assertEqual(properties["how"], how)
        tags = {"type": "array", "items": {"type": "string"}, "default": []}
        self.assertEqual(properties["tags"], tags)
        self.assertEqual(manifest["input_schema"]["required"], ["text"])
        self.assertEqual(manifest["output_schema"]["properties"], {"text": {"type": "string"}})

    def test_what_stands_in_the_code_is_not_kept_twice(self) -> None:
        text = self.printed(HANDLER, "--ref", "acme/shout@2")
        self.assertTrue(text.startswith('ref = "acme/shout@2"\nhandler = "handler.py"\n'), text)
        for word in ("schema", "description", "mock"):
            self.assertNotIn(word, text)

    def test_one_of_several_tools_is_named(self) -> None:
        several = HANDLER + "\n\n@tool(mock=True)\ndef other() -> None: ...\n"
        said = self.printed(several, code=1)
        self.assertEqual(len(said.splitlines()), 1, said)
        self.assertIn("It has `shout`, `other`.", said)
        text = self.printed(several, "--function", "other", "--ref", "acme/other@1")
        self.assertIn('handler = "handler.py"\nfunction = "other"\n', text)
        text = self.printed(several, "--function", "other", "--schemas")
        self.assertIn("mock = true", text)

    def test_a_reference_that_no_manifest_may_have_is_refused_with_the_reason(self) -> None:
        said = self.printed(HANDLER, "--ref", "Acme/Types", code=2)
        self.assertIn("in lower case, such as acme/types@1", said)

    def test_a_handler_that_cannot_be_imported_is_one_line(self) -> None:
        said = self.printed("def entry(payload:\n", code=1)
        self.assertRegex(said, r"\Aerror: SyntaxError in handler.py, line 1: .*\n\Z")

    def test_a_file_without_a_tool_says_so(self) -> None:
        self.assertIn("no function under `@tool`", self.printed("def entry(): ...", code=1))

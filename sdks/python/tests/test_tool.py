"""Functions as tools of a tool server: what they take and give."""

from __future__ import annotations

import http.server
import io
import json
import os
import threading
import types
from dataclasses import dataclass
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Dict,
    List,
    Optional,
)
from unittest import mock

from wharf_sdk import Context, Fault, File, tool

from tests.support import Tried


class Inputs(Tried):
    def test_t016_parameters_are_inputs(self) -> None:
        def add(a: int, b: int = 2) -> Dict[str, int]:
            return {"sum": a + b}

        self.assertEqual(self.outputs_of(add, {"a": 1}), {"sum": 3})
        self.assertEqual(self.outputs_of(add, {"a": 1, "b": 5}), {"sum": 6})

    def test_t016_inputs_that_do_not_fit_are_refused_before_the_function_runs(self) -> None:
        ran: List[int] = []

        def take(a: int) -> None:
            ran.append(a)

        for inputs, message in (
            ({}, "`a` is missing."),
            ({"a": "1"}, "`a` must be a whole number."),
            ({"a": 1, "b": 2}, "The tool has no input `b`."),
        ):
            error = self.error_of(take, inputs)
            self.assertEqual(error, {"code": "ERR_INPUTS", "message": message})
        self.assertEqual(ran, [])

    def test_t023_files_come_as_the_annotation_wants_them(self) -> None:
        place = self.file("a.txt", "hé".encode())

        def text(f: str) -> Dict[str, Any]:
            return {"value": f}

        def raw(f: bytes) -> Dict[str, Any]:
            return {"value": f.decode("utf-8")}

        def path(f: Path) -> Dict[str, Any]:
            return {"value": f.read_text("utf-8")}

        def stream(f: File) -> Dict[str, Any]:
            with f:
                return {"value": (f.read(1) + f.read()).decode("utf-8")}

        for work in (text, raw, path, stream):
            self.assertEqual(self.outputs_of(work, {"f": place}, refs=["f"]), {"value": "hé"})

    def test_t023_without_an_annotation_files_are_text_if_they_can_be(self) -> None:
        def take(f):  # type: ignore[no-untyped-def]
            return {"kind": type(f).__name__}

        text, data = self.file("a", b"abc"), self.file("b", b"\xff\xfe")
        self.assertEqual(self.outputs_of(take, {"f": text}, refs=["f"]), {"kind": "str"})
        self.assertEqual(self.outputs_of(take, {"f": data}, refs=["f"]), {"kind": "bytes"})

    def test_t023_a_file_that_is_no_text_or_no_json_is_named(self) -> None:
        def text(f: str) -> None: ...

        def record(f: Dict[str, int]) -> None: ...

        data = self.file("b", b"\xff\xfe")
        self.assertEqual(
            self.error_of(text, {"f": data}, refs=["f"])["message"], "The file of `f` is not text."
        )
        data = self.file("c", b"{")
        self.assertEqual(
            self.error_of(record, {"f": data}, refs=["f"])["message"],
            "The file of `f` is not JSON.",
        )
        data = self.file("d", b'{"a": 1}')
        self.assertEqual(self.outputs_of(lambda f: f, {"f": data}, refs=["f"])["value"], '{"a": 1}')

    def test_t024_only_what_is_named_is_a_reference(self) -> None:
        def take(prompt: str) -> Dict[str, Any]:
            return {"value": prompt}

        place = self.file("a.txt", b"inside")
        self.assertEqual(self.outputs_of(take, {"prompt": place}, refs=[]), {"value": place})
        url = "https://example.com/x"
        self.assertEqual(self.outputs_of(take, {"prompt": url}, refs=[]), {"value": url})

    def test_text_given_inline_can_be_taken_as_a_file(self) -> None:
        def take(a: Path, b: File, c: Optional[File] = None) -> Dict[str, Any]:
            return {"a": a.read_text("utf-8"), "b": b.text(), "c": c is None, "size": b.size}

        given = {"a": "one", "b": "two"}
        self.assertEqual(
            self.outputs_of(take, given), {"a": "one", "b": "two", "c": True, "size": 3}
        )

    def test_all_other_inputs_can_be_taken_by_name(self) -> None:
        def take(a: int, **rest: Any) -> Dict[str, Any]:
            return dict(rest)

        self.assertEqual(self.outputs_of(take, {"a": 1, "b": [2]}), {"b": [2]})

    def test_k001_what_may_be_left_out_can_have_words_of_json_schema(self) -> None:
        def take(n: Annotated[Optional[int], "how many", {"minimum": 1}] = None) -> Dict[str, Any]:
            return {"n": n}

        self.assertEqual(self.outputs_of(take), {"n": None})
        self.assertEqual(self.outputs_of(take, {"n": 1}), {"n": 1})
        self.assertEqual(self.error_of(take, {"n": 0})["message"], "`n` must not be less than 1.")


class Outputs(Tried):
    def test_t016_anything_but_a_record_is_a_value(self) -> None:
        @dataclass
        class Point:
            x: int
            y: int

        self.assertEqual(self.outputs_of(lambda: 3), {"value": 3})
        self.assertEqual(self.outputs_of(lambda: [1, (2,)]), {"value": [1, [2]]})
        self.assertEqual(self.outputs_of(lambda: Point(1, 2)), {"x": 1, "y": 2})
        self.assertEqual(self.outputs_of(lambda: None), {})

    def test_t027_t028_what_is_wanted_as_a_file_is_written_and_confirmed(self) -> None:
        places = {
            name: str(self.folder / "out" / name) for name in ("text", "data", "json", "copy")
        }
        source = Path(self.file("source", b"from a file"))

        def give() -> Dict[str, Any]:
            return {"text": "é", "data": b"\x00\xff", "json": {"a": 1}, "copy": source, "n": 1}

        outputs = self.outputs_of(give, outputs=places)
        self.assertEqual(outputs, dict(places, n=1))
        read = {name: Path(place).read_bytes() for name, place in places.items()}
        self.assertEqual(read["text"], "é".encode())
        self.assertEqual(read["data"], b"\x00\xff")
        self.assertEqual(json.loads(read["json"]), {"a": 1})
        self.assertEqual(read["copy"], b"from a file")

    def test_t027_outputs_can_be_written_while_the_tool_works(self) -> None:
        places = {name: str(self.folder / name) for name in ("a", "b", "c")}

        def give(context: Context) -> None:
            context.write("a", iter([b"one ", b"two"]))
            context.write("b", io.BytesIO(b"stream"))
            with context.writer("c") as file:
                file.write(b"xxxx tail")
                file.seek(0)
                file.write(b"head")

        self.assertEqual(self.outputs_of(give, outputs=places), places)
        self.assertEqual((self.folder / "a").read_bytes(), b"one two")
        self.assertEqual((self.folder / "b").read_bytes(), b"stream")
        self.assertEqual((self.folder / "c").read_bytes(), b"head tail")

    def test_t028_a_stream_that_fails_leaves_no_file(self) -> None:
        place = self.folder / "video"

        def give(context: Context) -> None:
            with context.writer("video") as file:
                file.write(b"half")
                raise Fault("media.broken", "The source broke off.")

        self.assertEqual(self.error_of(give, outputs={"video": str(place)})["code"], "media.broken")
        self.assertFalse(place.exists())

    def test_t012_what_json_lacks_is_an_error_that_names_the_output(self) -> None:
        for value in (b"raw", float("nan"), object(), Path("/tmp")):
            error = self.error_of(lambda value=value: {"image": value})
            self.assertEqual(error["code"], "tool.invalid_output")
            self.assertIn("`image`", error["message"])

    def test_an_output_that_has_no_place_and_is_binary_is_refused(self) -> None:
        def give(context: Context) -> None:
            context.write("video", b"x")

        self.assertEqual(self.error_of(give)["code"], "tool.output_too_large")

    def test_text_written_without_a_place_is_an_ordinary_output(self) -> None:
        def give(context: Context) -> None:
            context.write("note", "hi")

        self.assertEqual(self.outputs_of(give), {"note": "hi"})


class Entry(Tried):
    def module(self, text: str) -> types.ModuleType:
        module = types.ModuleType("handler_of_a_test")
        exec(compile(text, "handler.py", "exec"), module.__dict__)
        return module

    def test_t016_a_tool_stands_in_its_module_as_entry(self) -> None:
        module = self.module(
            "from wharf_sdk import tool\n@tool\ndef shout(text: str):\n    'Louder.'\n"
            "    return {'text': text.upper()}\n"
        )
        entry = module.__dict__["entry"]
        payload = {"run_id": "r", "mode": "mock", "inputs": {"text": "a"}, "outputs": {}}
        self.assertEqual(entry(payload)["outputs"], {"text": "A"})
        self.assertEqual((entry.name, entry.description), ("shout", "Louder."))

    def test_the_environment_names_one_of_several_tools_of_a_file(self) -> None:
        tools = "".join("@tool\ndef %s(): return '%s'\n" % (name, name) for name in "abc")
        entry = self.module("from wharf_sdk import tool\n" + tools).__dict__["entry"]
        payload = {"run_id": "r", "mode": "mock", "inputs": {}, "outputs": {}}
        with mock.patch.dict(os.environ, {"WHARF_FUNCTION": "b"}):
            self.assertEqual(entry(payload)["outputs"], {"value": "b"})
        with mock.patch.dict(os.environ, {"WHARF_FUNCTION": ""}):
            error = entry(payload)["error"]
        self.assertIn("must name one of a, b, c", error["message"])

    def test_what_cannot_be_an_input_is_refused_when_the_tool_is_made(self) -> None:
        def takes_any(*values: int) -> None: ...

        with self.assertRaisesRegex(TypeError, "inputs have names"):
            tool(takes_any)

    def test_k001_the_schema_comes_from_the_signature(self) -> None:
        @tool
        def make(
            prompt: str, context: Context, image: Optional[File] = None, n: int = 1
        ) -> None: ...

        self.assertEqual(
            make.schema(),
            {
                "type": "object",
                "properties": {
                    "prompt": {"type": "string"},
                    "image": {"type": "string"},
                    "n": {"type": "integer", "default": 1},
                },
                "required": ["prompt"],
                "additionalProperties": False,
            },
        )


class Addresses(Tried):
    """A tool in a plain container, without a worker of ours: it moves files by itself."""

    def setUp(self) -> None:
        super().setUp()
        stored: Dict[str, bytes] = {"/in": b"from afar"}
        self.stored = stored

        class Storage(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = stored.get(self.path.split("?")[0])
                self.send_response(200 if found is not None else 404)
                self.send_header("Content-Length", str(len(found or b"")))
                self.end_headers()
                self.wfile.write(found or b"")

            def do_PUT(self) -> None:
                stored[self.path.split("?")[0]] = self.rfile.read(
                    int(self.headers["Content-Length"])
                )
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None: ...

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Storage)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.base = "http://127.0.0.1:%d" % server.server_address[1]

    def test_t023_t027_addresses_are_fetched_and_written(self) -> None:
        def copy(source: File) -> Dict[str, Any]:
            return {"copy": source}

        place = self.base + "/out?X-Amz-Signature=s"
        outputs = self.outputs_of(
            copy, {"source": self.base + "/in?sig=s"}, refs=["source"], outputs={"copy": place}
        )
        self.assertEqual(outputs, {"copy": place})
        self.assertEqual(self.stored["/out"], b"from afar")

    def test_t029_t014_a_file_that_is_not_there_is_named_without_its_address(self) -> None:
        def take(source: str) -> None: ...

        error = self.error_of(take, {"source": self.base + "/none?sig=canary"}, refs=["source"])
        self.assertEqual(error["code"], "artifact.not_found")
        self.assertNotIn("canary", error["message"])

"""The client against a real core."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import socket
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any, List
from unittest import mock

from wharf_sdk import AsyncClient, Client, RunFailed, WharfError
from wharf_sdk.events import Asked, Decided, Finished, Progress, Queued, Started, Text

from tests.support import Core, WithCore, program, wait_for


class Runs(WithCore):
    def setUp(self) -> None:
        self.client = Client(home=str(self.core.home))
        self.addCleanup(self.client.close)

    def test_k033_a_run_is_started_waited_for_and_typed(self) -> None:
        run = self.client.run("wharf/count", {"n": 3, "delay_ms": 0})
        self.assertTrue(run.over and run.succeeded)
        self.assertEqual(run.result(), {"n": 3, "sum": 6})
        self.assertEqual((run.tool, run.world, run.attempt), ("wharf/count", "default", 1))
        self.assertEqual(self.client.get(run).outputs, run.outputs)

    def test_a_run_that_fails_is_given_and_its_result_raises(self) -> None:
        run = self.client.run("wharf/fail", {"code": "acme.broken", "message": "It broke."})
        self.assertEqual(run.status, "failed")
        with self.assertRaises(RunFailed) as caught:
            run.result()
        self.assertEqual(
            (caught.exception.code, caught.exception.message), ("acme.broken", "It broke.")
        )
        self.assertIs(caught.exception.run, run)

    def test_a_refusal_is_an_error_with_its_code_and_details(self) -> None:
        with self.assertRaises(WharfError) as caught:
            self.client.run("wharf/count", {"n": 0})
        error = caught.exception
        self.assertEqual(
            (error.code, error.status, error.retryable), ("tool.invalid_input", 422, False)
        )
        self.assertEqual(error.details, {"path": "/n"})
        with self.assertRaises(WharfError) as caught:
            self.client.get("nobody")
        self.assertEqual(caught.exception.code, "run.not_found")

    def test_events_come_typed_and_in_order(self) -> None:
        run = self.client.start("wharf/count", {"n": 2, "delay_ms": 0})
        self.assertFalse(run.over)
        events = list(self.client.stream(run))
        kinds = [type(event) for event in events]
        self.assertEqual(kinds[:2], [Queued, Started])
        self.assertIn(Progress, kinds)
        text = "".join(event.text for event in events if isinstance(event, Text))
        self.assertEqual(text, "1\n2\n")
        last = events[-1]
        assert isinstance(last, Finished) and last.run is not None
        self.assertEqual(last.run.result(), {"n": 2, "sum": 3})
        self.assertEqual(sorted(event.seq for event in events), [event.seq for event in events])
        behind = list(self.client.stream(run, after=events[2].seq))
        self.assertEqual([event.seq for event in behind], [event.seq for event in events[3:]])

    def test_waiting_ends_and_cancel_reaches_the_run(self) -> None:
        run = self.client.run("wharf/sleep", {"ms": 3_600_000}, wait=0.2)
        self.assertFalse(run.over)
        self.assertFalse(self.client.wait(run, seconds=0.2).over)
        self.client.cancel(run, reason="enough")
        self.assertEqual(self.client.wait(run).status, "canceled")

    def test_the_same_key_is_the_same_run(self) -> None:
        one = self.client.run("wharf/count", {"n": 1}, idempotency_key="k")
        two = self.client.run("wharf/count", {"n": 1}, idempotency_key="k")
        self.assertEqual(one.run_id, two.run_id)
        with self.assertRaises(WharfError) as caught:
            self.client.start("wharf/count", {"n": 2}, idempotency_key="k")
        self.assertEqual(caught.exception.code, "run.conflict")

    def test_runs_and_tools_are_listed_page_by_page(self) -> None:
        self.client.worlds.create("listing")
        made = {
            self.client.start("wharf/count", {"n": 1}, world="listing").run_id for _ in range(60)
        }
        listed = list(self.client.list(world="listing"))
        self.assertEqual({run.run_id for run in listed}, made)
        self.assertEqual(len(listed), 60)
        self.assertIn("wharf/count", {tool.tool_id for tool in self.client.tools()})
        self.assertEqual(self.client.tool("wharf/count").input_schema["required"], ["n"])

    def test_questions_and_approvals_are_answered(self) -> None:
        run = self.client.start("wharf/ask", {"question": "Which?"}, run_id="asks")
        events = self.client.stream(run)
        asked = next(event for event in events if isinstance(event, Asked))
        assert asked.ask is not None
        self.assertEqual((asked.ask.title, asked.ask.kind), ("Which?", "question"))
        [ask] = [ask for ask in self.client.inbox(kind="question") if ask.run_id == "asks"]
        self.client.answer(ask, "red")
        self.assertTrue(any(isinstance(event, Decided) for event in events))
        self.assertEqual(self.client.wait(run).result()["answer"], "red")
        run = self.client.start("wharf/approve-me", run_id="approves")
        ask = wait_for("the approval", lambda: next(iter(self.client.inbox(kind="approval")), None))
        self.client.decide(ask, allow=False, reason="no")
        self.assertEqual(self.client.wait(run).status, "refused")
        with self.assertRaises(WharfError) as caught:
            self.client.decide(ask, allow=True)
        self.assertEqual(caught.exception.code, "ask.decided")

    def test_one_connection_serves_many_requests(self) -> None:
        self.client.run("wharf/count", {"n": 1, "delay_ms": 0})
        kept = self.client._transport._kept
        assert kept is not None
        socket_of = kept.sock
        for _ in range(5):
            self.client.run("wharf/count", {"n": 1, "delay_ms": 0})
        self.assertIs(kept.sock, socket_of)

    def test_async_runs_go_on_at_once(self) -> None:
        async def several() -> List[Any]:
            async with AsyncClient(home=str(self.core.home)) as client:
                runs = await asyncio.gather(
                    *(client.run("wharf/count", {"n": n, "delay_ms": 0}) for n in (1, 2, 3))
                )
                started = await client.start("wharf/count", {"n": 1, "delay_ms": 0})
                kinds = [event.kind async for event in client.stream(started)]
                return [[run.result()["sum"] for run in runs], kinds[-1]]

        self.assertEqual(asyncio.run(several()), [[1, 3, 6], "finished"])

    def test_async_refusals_and_cancels_leave_a_client_that_works(self) -> None:
        async def several() -> bool:
            async with AsyncClient(home=str(self.core.home)) as client:
                with self.assertRaises(WharfError):
                    await client.get("nobody")
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(client.run("wharf/sleep", {"ms": 300}), 0.05)
                run = await client.start("wharf/count", {"n": 1_000_000})
                async for _ in client.stream(run):
                    break
                await client.cancel(run)
                return (await client.run("wharf/count", {"n": 1, "delay_ms": 0})).succeeded

        self.assertTrue(asyncio.run(several()))


class Files(WithCore):
    def setUp(self) -> None:
        self.client = Client(home=str(self.core.home))
        self.addCleanup(self.client.close)

    def test_files_are_put_listed_read_and_removed(self) -> None:
        self.client.worlds.create("files", limit_micro=100, default_hold_micro=10)
        self.assertEqual(self.client.worlds.get("files").limit_micro, 100)
        self.assertIsNone(self.client.worlds.set("files", limit_micro=None).limit_micro)
        files = self.client.files("files")
        info = files.put("/a folder/ö.txt", "hé", media_type="text/x-test")
        self.assertEqual(
            (info.path, info.bytes, info.media_type), ("/a folder/ö.txt", 3, "text/x-test")
        )
        files.put("/stream", io.BytesIO(b"from a stream"))
        files.put("/pieces", iter([b"one ", b"two"]))
        self.assertEqual(files.get("/a folder/ö.txt").decode("utf-8"), "hé")
        self.assertEqual(files.get("/pieces"), b"one two")
        self.assertEqual(
            [one.path for one in files.ls()], ["/a folder/ö.txt", "/pieces", "/stream"]
        )
        self.assertEqual([one.path for one in files.ls("/p")], ["/pieces"])
        self.assertEqual(files.trace("/pieces")["written"][0]["bytes"], 7)
        files.rm("/pieces")
        with self.assertRaises(WharfError) as caught:
            files.get("/pieces")
        self.assertEqual(
            (caught.exception.code, caught.exception.status), ("artifact.not_found", 404)
        )
        with self.assertRaises(WharfError) as caught:
            files.put("/../x", b"")
        self.assertEqual(caught.exception.code, "scope.path_invalid")
        self.client.worlds.remove("files", force=True)
        self.assertNotIn("files", {world.world for world in self.client.worlds.list()})

    def test_large_files_go_in_and_out_in_pieces(self) -> None:
        files = self.client.files()
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "source", Path(folder) / "target"
            source.write_bytes(os.urandom(1 << 20) * 16)
            files.put("/large", source)
            files.save("/large", target)
            digest = hashlib.sha256(source.read_bytes()).digest()
            self.assertEqual(hashlib.sha256(target.read_bytes()).digest(), digest)
            self.assertEqual(sorted(os.listdir(folder)), ["source", "target"])

    def test_runs_read_and_write_files(self) -> None:
        self.client.files().put("/in.txt", "content")
        run = self.client.run(
            "wharf/echo", {"text.world": "/in.txt"}, outputs={"text.world": "/out.txt"}
        )
        self.assertEqual(run.result()["text"], "world://default/out.txt")
        self.assertEqual(self.client.files().get("/out.txt"), b"content")
        self.assertEqual(
            {(one.direction, one.path) for one in run.artifacts},
            {("in", "/in.txt"), ("out", "/out.txt")},
        )

    def test_a_download_that_breaks_off_goes_on(self) -> None:
        data = os.urandom(1 << 20)
        self.client.files().put("/broken", data)
        with Cutter(self.core.url, after=200_000) as cutter:
            token = (self.core.home / "run" / "owner.token").read_text("utf-8").strip()
            with Client(cutter.url, token) as client:
                self.assertEqual(client.files().get("/broken"), data)
        self.assertGreater(cutter.connections, 3)


class Breaks(unittest.TestCase):
    def setUp(self) -> None:
        program()
        self.core = Core()
        self.addCleanup(self.core.close)

    def test_a_stream_goes_on_after_every_broken_connection(self) -> None:
        self.core.up()
        token = (self.core.home / "run" / "owner.token").read_text("utf-8").strip()
        with Cutter(self.core.url, after=1500) as cutter, Client(cutter.url, token) as client:
            run = client.start("wharf/count", {"n": 40, "delay_ms": 2})
            events = list(client.stream(run))
        self.assertGreater(cutter.connections, 3)
        text = "".join(event.text for event in events if isinstance(event, Text))
        self.assertEqual(text, "".join("%d\n" % n for n in range(1, 41)))
        numbers = [event.seq for event in events]
        self.assertEqual(numbers, sorted(set(numbers)))
        self.assertIsInstance(events[-1], Finished)

    def test_a_core_that_is_killed_and_comes_back_elsewhere_is_found_again(self) -> None:
        self.core.up()
        with Client(home=str(self.core.home), patience=60) as client:
            run = client.start("wharf/ask", {"question": "Still there?"})
            events = client.stream(run)
            next(event for event in events if isinstance(event, Asked))
            self.core.kill()
            back = threading.Thread(target=self.core.up)
            back.start()
            # Sent while there is no core: it waits for one.
            again = client.start("wharf/count", {"n": 1}, run_id="after")
            back.join()
            [ask] = list(client.inbox())
            client.answer(ask, "yes")
            self.assertIsInstance(list(events)[-1], Finished)
            self.assertEqual(client.wait(again).status, "succeeded")

    def test_without_a_core_the_error_says_so(self) -> None:
        with mock.patch.dict(os.environ, {"WHARF_URL": "", "WHARF_TOKEN": ""}):
            with self.assertRaises(WharfError) as caught:
                Client(home=str(self.core.home), patience=0).run("wharf/count")
        self.assertEqual(
            (caught.exception.code, caught.exception.retryable), ("core.unreachable", True)
        )
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            url = "http://127.0.0.1:%d" % closed.getsockname()[1]
            with self.assertRaises(WharfError) as caught:
                Client(url, "t", patience=0).run("wharf/count")
        self.assertEqual(caught.exception.code, "core.unreachable")
        with self.assertRaises(WharfError) as caught:
            Client("ftp://example", "t").run("wharf/count")
        self.assertEqual(caught.exception.code, "config.invalid")

    def test_the_environment_names_the_core(self) -> None:
        self.core.up()
        token = (self.core.home / "run" / "owner.token").read_text("utf-8").strip()
        given = {"WHARF_URL": self.core.url, "WHARF_TOKEN": token, "WHARF_HOME": "/nowhere"}
        with mock.patch.dict(os.environ, given), Client() as client:
            self.assertTrue(client.run("wharf/count", {"n": 1, "delay_ms": 0}).succeeded)
        with Client(self.core.url, "wrong") as client, self.assertRaises(WharfError) as caught:
            client.run("wharf/count", {"n": 1})
        self.assertEqual((caught.exception.code, caught.exception.status), ("auth.invalid", 401))


class Cutter:
    """Passes connections on to a core, and cuts each after so many bytes of answers."""

    def __init__(self, url: str, after: int) -> None:
        host, port = url.rsplit("/", 1)[1].split(":")
        self._core, self._after = (host, int(port)), after
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self._listener.getsockname()[1]
        self.connections = 0

    def __enter__(self) -> Cutter:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            core = socket.create_connection(self._core)
            threading.Thread(target=self._up, args=(client, core), daemon=True).start()
            threading.Thread(target=self._down, args=(core, client), daemon=True).start()

    def _up(self, client: socket.socket, core: socket.socket) -> None:
        try:
            while True:
                data = client.recv(65536)
                if not data:
                    break
                # The core is to answer for itself, not for whoever stands in between.
                here, there = self.url.split("//")[1], "%s:%d" % self._core
                core.sendall(data.replace(here.encode(), there.encode()))
        except OSError:
            pass
        finally:
            core.close()

    def _down(self, core: socket.socket, client: socket.socket) -> None:
        left = self._after
        try:
            while left > 0:
                data = core.recv(min(left, 65536))
                if not data:
                    break
                left -= len(data)
                client.sendall(data)
        except OSError:
            pass
        finally:
            for one in (client, core):
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            client.close()

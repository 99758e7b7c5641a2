"""The order of rounds, what a failure ends, and programs that are started and ended."""

import os
import sys
import tempfile
import time
import unittest
from dataclasses import replace
from pathlib import Path

from harness import machine, turns
from harness.callers import Caller, Sample
from harness.children import Broken, Child, environment, run, wait_until
from harness.install import LOCKS, PROGRAMS
from harness.peer import Work
from harness.turns import PEER, QUICK, Row, in_turns

PACE = replace(QUICK, rounds=4)

ECHO = """
import asyncio
from loop import serve

async def echo(text):
    await asyncio.sleep(0.001)
    return text

async def liar(text):
    return "something else"

asyncio.run(serve({"echo": echo, "liar": liar}))
"""


class Turns(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.folder = Path(made.name)

    def row(self, measure, ours):
        work = Work("a work", 1, measure, {"ours": ours}, "p50_ms", "ms", "lower")
        return Row("Other", "1", "there", "never", work)

    def test_each_round_goes_the_other_way_about(self):
        met = []

        def who(name):
            def measure(_callers, _seconds):
                met.append(name)
                return Sample({"p50_ms": 1.0})

            return measure

        row = in_turns(self.row(who(PEER), who("ours")), PACE, self.folder)
        self.assertEqual(row.error, "")
        warm, rounds = met[:2], met[2:]
        self.assertEqual(warm, [PEER, "ours"])
        self.assertEqual(rounds, [PEER, "ours", "ours", PEER, PEER, "ours", "ours", PEER])
        self.assertEqual(len(row.rounds), PACE.rounds)

    def test_a_contestant_that_breaks_ends_its_row_only(self):
        def broken(_callers, _seconds):
            raise Broken("it hung up")

        row = in_turns(self.row(broken, lambda *_: Sample({"p50_ms": 1.0})), PACE, self.folder)
        self.assertEqual((row.error, row.rounds), ("it hung up", []))

        def surprised(_callers, _seconds):
            return {}["figures"]

        row = in_turns(self.row(surprised, surprised), PACE, self.folder)
        self.assertEqual(row.error, "KeyError: 'figures'")

    def test_answers_that_are_wrong_are_no_figure(self):
        good = {"calls": 5, "per_second": 5.0, "p50_ms": 1.0, "p99_ms": 2.0}
        self.assertEqual(Sample.of(good, "x").figures["p50_ms"], 1.0)
        for bad in ({"wrong": 1}, {"failed": 1, "why": "gone"}, {"calls": 0}):
            with self.assertRaises(Broken):
                Sample.of({**good, **bad}, "x")

    def test_half_a_line_of_a_ledger_is_not_counted(self):
        file = self.folder / "ledger"
        self.assertEqual(turns.lines(file), [])
        file.write_text("call1\ncall2\ncal")
        self.assertEqual(turns.lines(file), ["call1", "call2"])


class Programs(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.folder = Path(made.name)
        self.env = environment(self.folder / "home", {"PYTHONPATH": str(PROGRAMS)})

    def test_a_caller_makes_calls_and_compares_each_answer(self):
        caller = Caller(
            [sys.executable, "-c", ECHO], log=self.folder / "log", env=self.env, programs=2
        )
        self.addCleanup(caller.stop)
        one, many = caller.measure("echo", 1, 0.1), caller.measure("echo", 8, 0.1)
        self.assertGreaterEqual(one.figures["p50_ms"], 1.0)
        self.assertGreater(many.figures["per_second"], one.figures["per_second"])
        with self.assertRaisesRegex(Broken, "answers were wrong"):
            caller.measure("liar", 1, 0.1)
        with self.assertRaisesRegex(Broken, "KeyError"):
            caller.measure("unknown", 1, 0.1)

    def test_what_a_program_started_ends_with_it(self):
        starts = "import subprocess, time; subprocess.Popen(['sleep', '600']); time.sleep(600)"
        child = Child([sys.executable, "-c", starts], log=self.folder / "log", env=self.env)
        self.addCleanup(child.kill)
        wait_until(lambda: len(child.tree()) == 2, "the program and its child")
        both = child.tree()
        child.stop()
        wait_until(lambda: not any(alive(pid) for pid in both), "the end of both")

    def test_a_wait_ends_with_what_it_waited_for(self):
        child = Child(
            [sys.executable, "-c", "print('no such disk')"], log=self.folder / "log", env=self.env
        )
        with self.assertRaisesRegex(Broken, "its port.*it ended instead.*no such disk"):
            child.wait_until(lambda: False, "its port", 30)
        with self.assertRaisesRegex(Broken, "a sign: not within"):
            wait_until(lambda: False, "a sign", 0.05)
        with self.assertRaisesRegex(Broken, "did not end within"):
            run(["sleep", "600"], env=self.env, seconds=0.2)

    def test_a_listener_beyond_loopback_is_seen(self):
        lines = ["  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt uid"]
        for inode, address, state in (
            ("11", "0100007F:1F90", "0A"),
            ("12", "00000000:1F91", "0A"),
            ("13", "0200A8C0:1F92", "0A"),
            ("14", "00000000:1F93", "01"),
            ("15", "00000000:1F94", "0A"),
            ("16", "00000000000000000000000000000000:1F95", "0A"),
            ("17", "00000000000000000000000001000000:1F96", "0A"),
        ):
            lines.append(f"   0: {address} 00000000:0000 {state} 0:0 00:0 0 0 0 {inode} 1")
        found = machine.beyond_loopback("\n".join(lines), {"11", "12", "13", "14", "16", "17"})
        self.assertEqual([it.split()[-1] for it in found], ["8081", "8082", "8085"])

    def test_a_file_system_is_that_of_the_innermost_mount(self):
        for folder in ("/proc", "/proc/self"):
            self.assertEqual(machine.file_system(Path(folder)), "proc")
        self.assertNotEqual(machine.file_system(self.folder), "proc")

    def test_others_are_told_from_this_process(self):
        begin, spent = machine.now(), time.process_time()
        while time.process_time() - spent < 0.2:
            pass
        end = machine.now()
        # The clock of the kernel goes in steps.
        self.assertGreater(end.own - begin.own, 0.1)
        self.assertLess(machine.others_cores(begin, end), os.cpu_count() + 0.5)


class Locks(unittest.TestCase):
    def test_every_package_is_pinned_by_version_and_hash(self):
        found = sorted(LOCKS.glob("*.txt"))
        self.assertGreater(len(found), 5)
        for lock in found:
            for entry in lock.read_text().replace("\\\n", " ").splitlines():
                if entry and not entry.startswith("#"):
                    self.assertRegex(entry, r"^[\w.-]+==\S+( ; .*)? +--hash=sha256:", lock.name)

    def test_no_lock_names_a_host(self):
        for lock in LOCKS.rglob("*"):
            if lock.is_file():
                self.assertNotIn('"resolved"', lock.read_text(), lock.name)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    unittest.main()

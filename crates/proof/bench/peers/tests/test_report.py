"""Tables, what they say of rows that failed, and where they are written."""

import unittest

from harness.callers import Sample
from harness.children import Broken
from harness.peer import Work, calls
from harness.report import BEGIN, END, Report, cells_of, number, replaced
from harness.turns import PEER, QUICK, Crash, CrashRow, Round, Row, unmeasured

ABOUT = {
    "date": "1 January 2030, 12:00 UTC",
    "quick": True,
    "commit": "abc",
    "wharf": "0.1.0",
    "wharf_sync": "each commit",
    "profile": "release",
    "file_system": "ext4",
    "network_closed": True,
    "processor": "a processor",
    "cores": 2,
    "memory_gib": 8,
    "kernel": "6.1",
    "system": "a system",
}


def row(pairs, callers=1, others=0.0, peer="Other", error=""):
    ours = {"Python agent": unmeasured}
    it = Row(
        peer, "1.2", "a process", "each write", calls("durable echo", callers, unmeasured, ours)
    )
    for theirs, mine in pairs:
        samples = {
            who: Sample({"p50_ms": value, "per_second": value, "p99_ms": value, "calls": 9})
            for who, value in ((PEER, theirs), ("Python agent", mine))
        }
        it.rounds.append(Round(samples, others, 0.1, 0.5))
    it.error = error
    return it


def report(*rows):
    found = Report(dict(ABOUT), QUICK)
    found.rows += rows
    return found


class Tables(unittest.TestCase):
    def test_a_row_has_both_figures_and_how_many_times_as_good(self):
        [cells] = cells_of(row([(4.0, 1.0), (6.0, 2.0), (5.0, 2.0)]))
        self.assertEqual(cells[:4], ["Other", "1.2", "durable echo", "1"])
        self.assertEqual(cells[4:7], ["5 ms (4–6)", "Python agent", "2 ms (1–2)"])
        self.assertEqual(cells[7], "3 × (2.50–4, 75 %)")

    def test_a_row_that_failed_says_why_and_breaks_no_table(self):
        [cells] = cells_of(row([], error="refused | by\nits server"))
        self.assertEqual(cells[4], "not measured: refused / by its server")
        self.assertIn("not measured", report(row([], error="gone")).readme())

    def test_a_work_without_a_counterpart_says_so(self):
        it = row([(4.0, 1.0)])
        it.work = calls("three durable steps", 1, unmeasured)
        self.assertEqual(cells_of(it)[0][5:], ["no counterpart", "–", "–"])

    def test_a_count_has_no_number_of_times(self):
        it = row([(0.0, 1.0)])
        ours = {"Python agent": unmeasured}
        it.work = Work("a budget", 64, unmeasured, ours, "calls", "calls", "lower", ratio=False)
        self.assertEqual(cells_of(it)[0][7], "–")

    def test_numbers_have_three_digits(self):
        for value, wanted in (
            (0.876, "0.88"),
            (11536.2, "11,536"),
            (48.04, "48.0"),
            (0.0234, "0.023"),
            (312.4, "312"),
        ):
            self.assertEqual(number(value), wanted)


class Warnings(unittest.TestCase):
    def test_a_quiet_machine_is_not_warned_about(self):
        self.assertEqual(report(row([(4.0, 1.0)])).warnings(), [])

    def test_a_busy_one_is(self):
        [warning] = report(row([(4.0, 1.0), (4.0, 1.0)], others=1.5)).warnings()
        self.assertIn("not quiet: in 2 of 2 rounds", warning)
        self.assertIn("not quiet", report(row([(4.0, 1.0)], others=1.5)).readme())

    def test_a_debug_build_is(self):
        found = report(row([(4.0, 1.0)]))
        found.about["profile"] = "debug"
        self.assertIn("not the release build", " ".join(found.warnings()))


class Documents(unittest.TestCase):
    def test_only_what_stands_between_the_markers_is_replaced(self):
        document = f"before\n\n{BEGIN}\n\nold\n\n{END}\n\nafter\n"
        found = replaced(document, "new")
        self.assertEqual(found, f"before\n\n{BEGIN}\n\nnew\n\n{END}\n\nafter\n")
        self.assertEqual(replaced(found, "new"), found)

    def test_a_document_without_its_markers_is_not_touched(self):
        for document in ("nothing", f"{BEGIN} only", f"{BEGIN}{BEGIN}{END}"):
            with self.assertRaises(Broken):
                replaced(document, "new")

    def test_the_first_page_shows_the_like_for_like_figures(self):
        text = report(row([(4.0, 2.0)]), row([(100.0, 300.0)], callers=64)).readme()
        self.assertIn("| Other 1.2 | 4 ms | 2 ms | 2 × | 100 calls/s | 300 calls/s | 3 × |", text)
        self.assertIn("1 January 2030, 12:00 UTC", text)

    def test_crashes_are_added_up(self):
        found = report(row([(4.0, 1.0)]))
        told = {"failed, executed: maybe": 3}
        crashes = [Crash(300, 0, 2, 30.0, told, 1), Crash(310, 1, 0, 50.0, told, 0)]
        found.crashes.append(CrashRow("Other", "1.2", crashes))
        [cells] = found.crash_lines()
        self.assertEqual(cells[:4], ["Other", "610", "1", "2"])
        self.assertEqual(
            cells[4:], ["40 ms (30–50)", "6 failed, executed: maybe (1 of them not done)"]
        )
        self.assertIn("| Other | 610 | 1 | 2 |", found.markdown())


if __name__ == "__main__":
    unittest.main()

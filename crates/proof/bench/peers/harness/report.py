"""What was found: tables for the terminal and for the documents, and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .children import Broken
from .figures import Spread, median, spread
from .turns import PEER, CrashRow, Pace, Row

# Definitions of links that nothing refers to: every reader of Markdown leaves them out.
BEGIN = '[bench peers: begin]: # "written by make bench-peers ARGS=--write"'
END = '[bench peers: end]: # "what make bench-peers writes ends here"'
NONE = "no counterpart"


class Report:
    """Everything that one run found."""

    def __init__(self, about: dict[str, Any], pace: Pace) -> None:
        self.about = about
        self.pace = pace
        self.rows: list[Row] = []
        self.crashes: list[CrashRow] = []

    # ---- what a reader must know of the machine

    def rounds(self) -> list:
        return [round for row in self.rows for round in row.rounds]

    def warnings(self) -> list[str]:
        """Why the figures may not be what a quiet machine would give."""
        found = []
        rounds = self.rounds()
        busy = sum(round.busy for round in rounds)
        if busy:
            others = median(round.others_cores for round in rounds)
            found.append(
                f"The machine was not quiet: in {busy} of {len(rounds)} rounds others used more "
                f"than 0.15 processors ({others:.2f} at the median)."
            )
        flushes = self.flushes()
        if flushes is not None and flushes.most > 3 * flushes.median:
            found.append(
                f"The disk was not steady: a flush took {flushes.median:.2f} ms at the median and "
                f"{flushes.most:.2f} ms before the slowest round."
            )
        if not self.about.get("network_closed"):
            found.append("Not root: the network stayed open; peers were watched, not shut in.")
        if self.about.get("profile") != "release":
            found.append("Wharf was not the release build: its figures say nothing.")
        return found

    def flushes(self) -> Spread | None:
        values = [round.flush_ms for round in self.rounds()]
        return spread(values) if values else None

    def notes(self) -> list[str]:
        """What rows must be read with, each said once."""
        found: dict[str, dict[str, None]] = {}
        for row in self.rows:
            if row.work.note:
                found.setdefault(row.work.note, {})[row.peer] = None
        return [f"{', '.join(peers)}: {note}." for note, peers in found.items()]

    # ---- tables

    def lines(self) -> list[list[str]]:
        """The table's cells, one line for a peer's figure beside one of Wharf's."""
        return [cells for row in self.rows for cells in cells_of(row)]

    def crash_lines(self) -> list[list[str]]:
        return [crash_cells(row) for row in self.crashes]

    def plain(self) -> str:
        """The tables for a terminal."""
        parts = [aligned(HEAD, grouped(self.lines()))] if self.rows else []
        if self.crashes:
            parts += ["kill -9 of everything under load", aligned(CRASH_HEAD, self.crash_lines())]
        parts += [f"note: {note}" for note in self.notes()]
        parts += [f"warning: {warning}" for warning in self.warnings()]
        return "\n\n".join(parts)

    def markdown(self) -> str:
        """The section of the documentation."""
        parts = [self.where(), table(HEAD, self.lines())]
        if self.crashes:
            parts += [
                "kill -9 of everything at once while calls come in, a start with the same folder, "
                "and a look at what handlers wrote down outside of the peer:",
                table(CRASH_HEAD, self.crash_lines()),
            ]
        parts += ["\n".join(f"- {note}" for note in [*self.notes(), *self.syncs()])]
        return "\n\n".join(parts)

    def syncs(self) -> list[str]:
        """What a durable call waits for, peer by peer."""
        seen = dict.fromkeys((row.peer, row.sync) for row in self.rows if row.sync)
        told = "; ".join(f"{peer}: {sync}" for peer, sync in seen)
        ours = self.about["wharf_sync"]
        return [f"What is flushed before an answer: Wharf: {ours}; {told}."] if told else []

    def where(self) -> str:
        """One paragraph: when, on what, how often, how quiet."""
        it = self.about
        flushes = self.flushes()
        flush = f" A flush of 4 KiB took {flushes.median:.2f} ms at the median." if flushes else ""
        quick = " (`--quick`)" if it["quick"] else ""
        text = (
            f"{it['date']}{quick}: {it['cores']} cores ({it['processor']}), "
            f"{it['memory_gib']} GiB, {it['system']}, Linux {it['kernel']}, {it['file_system']}. "
            f"Wharf {it['wharf']}, commit {it['commit']}. "
            "Callers, servers and handlers share the cores; nothing is pinned. "
            f"Each figure is the median of {self.pace.rounds} rounds in turns with Wharf, of "
            f"{self.pace.seconds:g} s each, with the lowest and the highest; the number of times "
            f"stands with its interval.{flush}"
        )
        warned = " ".join(f"**{warning}**" for warning in self.warnings())
        return f"{text} {warned}".strip()

    def readme(self) -> str:
        """The few rows that the first page shows: durable calls, like for like."""
        found: dict[str, dict[int, Row]] = {}
        for row in self.rows:
            if row.work.title == "durable echo":
                found.setdefault(row.peer, {})[row.work.callers] = row
        lines = [readme_cells(peer, by_callers) for peer, by_callers in found.items()]
        it = self.about
        warned = " ".join(f"**{warning}**" for warning in self.warnings())
        quick = ", a quick run" if it["quick"] else ""
        said = (
            f"{it['date']}{quick}, {it['cores']} cores ({it['processor']}), Linux {it['kernel']}, "
            "everything on one machine, in turns with Wharf calling an agent in Python in a "
            f"sandboxed process of its own. {warned}"
        ).strip()
        return (
            f"{table(README_HEAD, lines)}\n\n{said} [All figures, and what is not comparable]"
            + ("(docs/benchmarks.md#beside-others).")
        )

    # ---- JSON

    def json(self) -> dict[str, Any]:
        return {
            "about": self.about,
            "pace": vars(self.pace),
            "warnings": self.warnings(),
            "notes": self.notes(),
            "rows": [json_of(row) for row in self.rows],
            "kill_9": [
                {
                    "peer": row.peer,
                    "version": row.version,
                    "error": row.error,
                    "crashes": [vars(crash) for crash in row.crashes],
                }
                for row in self.crashes
            ],
        }


HEAD = ["peer", "version", "work", "at once", "figure", "Wharf, as", "Wharf", "times as good"]
CRASH_HEAD = ["who", "acknowledged", "lost", "done twice", "ready again", "says itself"]
README_HEAD = [
    "durable calls, each flushed to disk before it is acknowledged",
    "1 caller: peer",
    "Wharf",
    "times as good",
    "64 callers: peer",
    "Wharf ",
    "times as good ",
]


def cells_of(row: Row) -> list[list[str]]:
    """The lines of one row: one for each counterpart."""
    start = [row.peer, row.version, row.work.title, str(row.work.callers)]
    if row.error:
        return [[*start, f"not measured: {one_line(row.error)}", "–", "–", "–"]]
    theirs = shown(row.spread(PEER), row.work.unit)
    if not row.work.beside:
        return [[*start, theirs, NONE, "–", "–"]]
    return [
        [*start, theirs, ours, shown(row.spread(ours), row.work.unit), times(row.advantage(ours))]
        for ours in row.work.beside
    ]


def crash_cells(row: CrashRow) -> list[str]:
    if row.error:
        return [row.peer, f"not measured: {one_line(row.error)}", "–", "–", "–", "–"]

    def total(name: str) -> str:
        return f"{sum(getattr(crash, name) for crash in row.crashes):,}"

    ready = [crash.ready_again_ms for crash in row.crashes]
    said: dict[str, int] = {}
    for crash in row.crashes:
        for what, count in crash.undone.items():
            said[what] = said.get(what, 0) + count
    told = "; ".join(f"{count} {what}" for what, count in sorted(said.items())) or "–"
    never = sum(crash.undone_not_done for crash in row.crashes)
    told += f" ({never} of them not done)" if never else ""
    again = shown(spread(ready), "ms") if max(ready) >= 1 else "–"
    return [row.peer, total("acknowledged"), total("lost"), total("done_twice"), again, told]


def readme_cells(peer: str, rows: dict[int, Row]) -> list[str]:
    version = next(iter(rows.values())).version
    cells = [f"{peer} {version}"]
    for callers in (1, 64):
        row = rows.get(callers)
        if row is None or row.error or not row.work.beside:
            cells += ["not measured", "–", "–"]
            continue
        ours = next(iter(row.work.beside))
        unit = row.work.unit
        better = row.advantage(ours)
        cells += [
            f"{number(row.spread(PEER).median)} {unit}",
            f"{number(row.spread(ours).median)} {unit}",
            f"{number(better.median)} ×" if better else "–",
        ]
    return cells


def shown(it: Spread, unit: str) -> str:
    """A median with the lowest and the highest."""
    if it.count == 1 or it.least == it.most:
        return f"{number(it.median)} {unit}"
    return f"{number(it.median)} {unit} ({number(it.least)}–{number(it.most)})"


def times(it: Spread | None) -> str:
    """How many times as good, with the interval and what it is worth."""
    if it is None:
        return "–"
    if it.count < 2:
        return f"{number(it.median)} ×"
    sure = f"{100 * it.confidence:.0f} %"
    return f"{number(it.median)} × ({number(it.low)}–{number(it.high)}, {sure})"


def number(value: float) -> str:
    """Three digits that mean something."""
    if value >= 1000:
        return f"{value:,.0f}"
    if value >= 100 or value == int(value):
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def one_line(text: str) -> str:
    return " ".join(text.split())[:200].replace("|", "/")


def grouped(lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """Lines without what the line above says already, up to the first cell that differs."""
    found, above = [], []
    for line in lines:
        same = 0
        while above and same < len(line) and line[same] == above[same]:
            same += 1
        found.append([""] * same + list(line[same:]))
        above = line
    return found


def aligned(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Columns for a terminal."""
    widths = [max(len(line[column]) for line in [head, *lines]) for column in range(len(head))]
    made = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        for line in [head, *lines]
    ]
    return "\n".join(line.rstrip() for line in made)


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """The same in Markdown."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(cell.strip() for cell in row)} |" for row in rows)


def json_of(row: Row) -> dict[str, Any]:
    found: dict[str, Any] = {
        "peer": row.peer,
        "version": row.version,
        "handler": row.about,
        "sync": row.sync,
        "work": row.work.title,
        "callers": row.work.callers,
        "figure": row.work.figure,
        "unit": row.work.unit,
        "better": row.work.better,
        "note": row.work.note,
        "error": row.error,
        "wharf": list(row.work.beside) or NONE,
        "rounds": [
            {
                "samples": {who: dict(it.figures) for who, it in round.samples.items()},
                "others_cores": round.others_cores,
                "flush_ms": round.flush_ms,
                "load": round.load,
                "busy": round.busy,
            }
            for round in row.rounds
        ],
    }
    if row.rounds and not row.error:
        found["spread"] = {who: vars(row.spread(who)) for who in row.rounds[0].samples}
        better = {ours: row.advantage(ours) for ours in row.work.beside}
        found["times_better"] = {ours: vars(it) for ours, it in better.items() if it is not None}
    return found


def replaced(document: str, text: str) -> str:
    """A document with the text between its markers replaced."""
    if document.count(BEGIN) != 1 or document.count(END) != 1:
        raise Broken(f"the document needs one line {BEGIN} and one line {END}")
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def write(file: Path, text: str) -> None:
    """Writes a text between the markers of a file."""
    file.write_text(replaced(file.read_text(), text))


def write_json(file: Path, report: Report) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(report.json(), indent=2, ensure_ascii=False) + "\n")

"""What a tool knows of the run it works on, and what it can say while it works."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterable, Mapping, Optional, Union

from ._host import Host
from .encoding import to_json
from .fault import Canceled, Fault
from .files import File, Writer, Written
from .steps import DurableContext

LEVELS = ("debug", "info", "warn", "error")
PIECE_BYTES = 1 << 20
# Text that grows is shown piece by piece up to this length, then in steps of a part of it:
# each step repeats all of it, so that smaller ones would cost far more than they show.
SHOWN_AT_ONCE = 8 * 1024
STEP = 32

Data = Union[str, bytes, Path, File, Iterable[bytes], Mapping[str, Any], Any]


class Context(DurableContext):
    """One run, as its tool sees it. Ask for it with a parameter of this type."""

    run_id: str
    mode: str
    attempt: int
    outputs: Mapping[str, str]
    # Where the run stands in its trace, as W3C Trace Context writes it; for calls to others, as the
    # headers of these names. Absent where nobody traces.
    traceparent: Optional[str] = None
    tracestate: Optional[str] = None

    def __init__(
        self, run_id: str, mode: str, attempt: int, outputs: Mapping[str, str], host: Host
    ) -> None:
        self.run_id, self.mode, self.attempt, self.outputs = run_id, mode, attempt, outputs
        self.cost_micro = 0
        self._host = host
        self._given: Dict[str, Any] = {}
        self._grown: Dict[str, str] = {}
        self._shown: Dict[str, int] = {}

    # What differs between a tool server and an agent.

    @property
    def canceled(self) -> bool:
        """Whether the run was called off."""
        raise NotImplementedError

    def log(self, text: str, level: str = "info") -> None:
        """Writes a line to the run's log: `debug`, `info`, `warn` or `error`."""
        raise NotImplementedError

    def progress(self, fraction: float, text: str = "") -> None:
        """Says how far the run is, from 0 to 1, and what it is doing."""
        raise NotImplementedError

    def _tell_cost(self) -> None:
        """Says what the run has cost so far, where somebody can be told before the end."""

    def _show(self, outputs: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def _wait(self, seconds: float) -> bool:
        raise NotImplementedError

    def _place(self, name: str) -> str:
        """Where an output goes; empty when it goes nowhere but into the answer."""
        return self.outputs.get(name, "")

    # What does not.

    @property
    def is_mock(self) -> bool:
        """Whether the run only pretends: it must not act on the world."""
        return self.mode == "mock"

    def status(self, text: str, fraction: float) -> None:
        """The same as `progress`, in the order of the other languages."""
        self.progress(fraction, text)

    def check(self) -> None:
        """Ends the tool if the run was called off."""
        if self.canceled:
            raise Canceled()

    def pause(self, seconds: float) -> None:
        """Waits, and ends the tool at once if the run is called off meanwhile."""
        if self._wait(seconds):
            raise Canceled()

    def cost(self, micro: int) -> None:
        """Adds to what the run has cost, in micro-dollars; it counts also if the run fails.

        The core hears of it at once, and stops a run that has spent its budget.
        """
        if isinstance(micro, bool) or not isinstance(micro, int) or micro < 0:
            raise ValueError("A cost is a whole number of micro-dollars that is not negative.")
        self.cost_micro += micro
        if micro:
            self._tell_cost()

    def partial(self, **outputs: Any) -> None:
        """Shows outputs that are not final; what is shown replaces what was shown before."""
        self.check()
        self._show({name: to_json(value, name) for name, value in outputs.items()})

    def append(self, name: str, text: str) -> None:
        """Adds text to an output that grows. Without another value it is the output at the end."""
        self.check()
        grown = self._grown.get(name, "") + text
        self._grown[name] = grown
        added = len(grown) - self._shown.get(name, 0)
        if added and (len(grown) <= SHOWN_AT_ONCE or added * STEP >= len(grown)):
            self._shown[name] = len(grown)
            self._show({name: grown})

    def write(self, name: str, data: Data) -> Any:
        """Writes an output to where it goes, at once, and gives what stands for it.

        Takes text, bytes, a path, a `File`, an open binary file, pieces of bytes, or JSON. An
        output that nobody wants as a file becomes an ordinary one if it is text or JSON.
        """
        place = self._place(name)
        if not place and not _is_binary(data):
            self._given[name] = data
            return data
        place = self._need(name)
        if isinstance(data, (Path, File)):
            path = data.path if isinstance(data, File) else data
            return self._store(name, place, path)
        path = self._scratch_file()
        try:
            with open(path, "wb") as file:
                for piece in _pieces(data, name):
                    file.write(piece)
            return self._store(name, place, path)
        finally:
            path.unlink()

    def writer(self, name: str) -> Writer:
        """A stream to write an output to; it is stored when the `with` block ends well."""
        place = self._need(name)
        return Writer(name, self._scratch_file(), lambda path: self._store(name, place, path))

    def _need(self, name: str) -> str:
        place = self._place(name)
        if not place:
            text = "There is no place for `%s`; ask for it as a file." % name
            raise Fault("tool.output_too_large", text)
        return place

    def _store(self, name: str, place: str, path: Path) -> Written:
        self.check()
        self._host.store(name, place, path)
        self._given[name] = Written(name)
        return Written(name)

    def _scratch_file(self) -> Path:
        number, name = tempfile.mkstemp(dir=self._host.scratch(), prefix="output-")
        os.close(number)
        return Path(name)


def _is_binary(data: Any) -> bool:
    if isinstance(data, (bytes, bytearray, memoryview, Path, File)) or hasattr(data, "read"):
        return True
    return not isinstance(data, (str, list, tuple, dict)) and hasattr(data, "__iter__")


def _pieces(data: Any, name: str) -> Iterable[bytes]:
    """Data as bytes: text in UTF-8, bytes as they are, anything else as JSON."""
    if isinstance(data, str):
        return [data.encode("utf-8")]
    if isinstance(data, (bytes, bytearray, memoryview)):
        return [bytes(data)]
    if hasattr(data, "read"):
        return iter(lambda: data.read(PIECE_BYTES), b"")
    if _is_binary(data):
        pieces: Iterable[bytes] = data
        return pieces
    return [json.dumps(to_json(data, name), ensure_ascii=False).encode("utf-8")]

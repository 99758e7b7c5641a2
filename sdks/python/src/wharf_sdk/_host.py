"""The seam between a tool and whatever runs it: who moves the bytes of files.

Inputs may be references (an address or a path) and outputs may have destinations. A tool never
opens either by itself; it asks its host. The worker of a tool server installs a host of its own,
which asks the server; without one, `DirectHost` does the same with the standard library, as a
handler in a plain container would.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, BinaryIO, Dict, Iterable, Optional, cast

from . import _trace
from .fault import Fault

ARTIFACTS = "/artifacts/"
SILENCE_SECONDS_MAX = 30
PIECE_BYTES = 1 << 20


class Host:
    """What runs a tool, as far as files go. A worker derives its own and installs it."""

    def fetch(self, key: str, reference: str) -> Path:
        """Brings the file that an input refers to here, and says where it lies.

        Raises `Fault` when it cannot be had.
        """
        raise NotImplementedError

    def store(self, key: str, destination: str, source: Path) -> None:
        """Writes a file to where an output goes, and returns once it is safe there."""
        raise NotImplementedError

    def scratch(self) -> Path:
        """A folder for files that are gone when the run is over."""
        raise NotImplementedError

    def trouble(self) -> None:
        """Keeps the story of the exception that is being handled where callers do not read it."""
        error = sys.exc_info()[1]
        if error is not None:
            sys.stderr.write(_trace.text(error))

    def step(self, message: Dict[str, Any]) -> Dict[str, Any]:
        """Has a step of durable code done, and gives the answer."""
        raise Fault("tool.unavailable", "Only durable tools that a core runs have steps.")

    def is_reference(self, key: str, value: Any) -> bool:
        """Whether an input refers to a file."""
        return is_reference(key, value, None)


class DirectHost(Host):
    """Reads and writes addresses and paths by itself."""

    def __init__(self) -> None:
        self._scratch: Optional[tempfile.TemporaryDirectory[str]] = None

    def fetch(self, key: str, reference: str) -> Path:
        if not reference.startswith(("https://", "http://")):
            if not os.path.isfile(reference):
                raise Fault("artifact.not_found", "The file of the input `%s` is not there." % key)
            return Path(reference)
        number, path = tempfile.mkstemp(dir=self.scratch(), prefix="input-")
        try:
            with os.fdopen(number, "wb") as file:
                with _open(reference) as source:
                    shutil.copyfileobj(source, file, PIECE_BYTES)
        except OSError as error:  # Its text may hold the address, which nobody should see.
            if (status := _status(error)) is not None:
                raise _refused(status, "The file of the input `%s`" % key) from None
            raise Fault(
                "storage.unavailable", "The file of the input `%s` cannot be read." % key, True
            ) from None
        return Path(path)

    def store(self, key: str, destination: str, source: Path) -> None:
        try:
            if not destination.startswith(("https://", "http://")):
                _replace(Path(destination), source)
                return
            with open(source, "rb") as file:
                _open(destination, file).close()
        except OSError as error:
            if (status := _status(error)) is not None:
                raise _refused(status, "The output `%s`" % key) from None
            raise Fault(
                "storage.unavailable", "The output `%s` cannot be written." % key, True
            ) from None

    def scratch(self) -> Path:
        if self._scratch is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="wharf-run-")
        return Path(self._scratch.name)

    def close(self) -> None:
        """Removes what was fetched."""
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None


def _open(address: str, sent: Optional[BinaryIO] = None) -> BinaryIO:
    """Asks for an address, or sends a file there."""
    # A worker never comes here, and is spared what a third of its imports would be.
    from urllib import request

    asked = request.Request(address)
    if sent is not None:
        size = os.fstat(sent.fileno()).st_size
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        asked = request.Request(address, data=cast(Any, sent), method="PUT", headers=headers)
    return cast(BinaryIO, request.urlopen(asked, timeout=SILENCE_SECONDS_MAX))


def _status(error: OSError) -> Optional[int]:
    """What a server answered, if it was that which went wrong."""
    status = getattr(error, "code", None)
    return status if isinstance(status, int) else None


def _replace(path: Path, source: Path) -> None:
    """Puts a copy in the place of a file at once: nobody ever sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(dir=path.parent, prefix=".wharf-")
    try:
        with os.fdopen(number, "wb") as file, open(source, "rb") as given:
            shutil.copyfileobj(given, file, PIECE_BYTES)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _refused(status: int, what: str) -> Fault:
    if status == 404:
        return Fault("artifact.not_found", what + " is not there.")
    if status in (401, 403):
        return Fault("storage.denied", what + " was refused by storage.")
    return Fault("storage.unavailable", what + " was refused by storage.", status >= 500)


def is_reference(key: str, value: Any, refs: Optional[Iterable[str]]) -> bool:
    """Whether an input refers to a file.

    `refs` names those that do. Without it an address under `https://` and a path below
    `/artifacts/` are references, as the original protocol has it.
    """
    if not isinstance(value, str):
        return False
    if refs is not None:
        return key in refs
    return value.startswith(("https://", ARTIFACTS))


_installed: Host = DirectHost()


def install(host: Host) -> None:
    """Lets this host serve all tools of the process from now on."""
    global _installed
    _installed = host


def installed() -> Host:
    """The host that serves tools of this process."""
    return _installed

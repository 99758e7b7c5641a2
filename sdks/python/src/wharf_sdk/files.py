"""Files that a tool is given and files that it writes."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Callable, Iterator, Optional, Type

PIECE_BYTES = 1 << 16


class File:
    """An input as a stream of bytes. It is brought here when it is first used."""

    def __init__(self, name: str, locate: Callable[[], Path]) -> None:
        self.name = name
        self._locate = locate
        self._path: Optional[Path] = None
        self._stream: Optional[BinaryIO] = None

    @property
    def path(self) -> Path:
        """Where it lies. Only to be read: the file may not be yours alone."""
        if self._path is None:
            self._path = self._locate()
        return self._path

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return os.stat(self.path).st_size

    def open(self) -> BinaryIO:
        """A stream of its own, from the beginning."""
        return open(self.path, "rb")

    def read(self, size: int = -1) -> bytes:
        """The next bytes; all that are left without a size."""
        if self._stream is None:
            self._stream = self.open()
        return self._stream.read(size)

    def text(self) -> str:
        """All of it as UTF-8 text."""
        return self.path.read_text("utf-8")

    def __iter__(self) -> Iterator[bytes]:
        """All of it in pieces, in bounded memory."""
        with self.open() as stream:
            while True:
                piece = stream.read(PIECE_BYTES)
                if not piece:
                    return
                yield piece

    def close(self) -> None:
        """Ends reading; the file can be read again from the beginning."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def __enter__(self) -> File:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        # Where it lies may be an address that lets its reader in.
        return "File(%r)" % self.name


class Written:
    """Stands for an output that is already where it belongs. `Context.write` gives it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return "Written(%r)" % self.name


class Writer:
    """An output as a stream to be written; it is stored when it is closed without an error."""

    def __init__(self, name: str, path: Path, store: Callable[[Path], Any]) -> None:
        self.name = name
        self._path, self._store = path, store
        self._stream: BinaryIO = open(path, "wb")

    def write(self, data: bytes) -> int:
        """Adds bytes."""
        return self._stream.write(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Goes elsewhere, such as back to a head that is known only at the end."""
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        """Where the next bytes go."""
        return self._stream.tell()

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self._stream.close()
        try:
            if kind is None:
                self._store(self._path)
        finally:
            if self._path.exists():
                self._path.unlink()

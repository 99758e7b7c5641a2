"""Worlds and the files in them."""

from __future__ import annotations

import http.client
import json
import os
import tempfile
import urllib.parse
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Dict, Iterable, Iterator, List, Mapping, Optional, Type, Union

from ._http import Broken, Transport, away, query, quoted
from .errors import WharfError
from .models import FileInfo, World, take

PIECE_BYTES = 1 << 20
# How often a download that breaks off without having brought anything is gone on with.
RESUMES_MAX = 5
# How long the core may take to make sure of a file once it has all of it.
STORED_SECONDS_MAX = 300.0

Source = Union[bytes, str, Path, BinaryIO, Iterable[bytes]]


class Worlds:
    """All worlds that the token may see."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, world: str, **settings: Any) -> World:
        """Makes a world. Settings are `limit_micro`, `default_hold_micro`, `publish`, …"""
        body = dict(settings, world=world)
        return take(World, self._transport.call("POST", "/v1/worlds", body)[1])

    def list(self) -> Iterator[World]:
        """All of them."""
        for item in pages(self._transport, "/v1/worlds"):
            yield take(World, item)

    def get(self, world: str) -> World:
        """One world as it stands."""
        return take(World, self._transport.call("GET", "/v1/worlds/" + quoted(world))[1])

    def set(self, world: str, **settings: Any) -> World:
        """Changes settings; those that are not named stay, None takes a limit away."""
        path = "/v1/worlds/" + quoted(world)
        return take(World, self._transport.call("PATCH", path, settings)[1])

    def remove(self, world: str, force: bool = False) -> None:
        """Removes a world; one that holds files only with `force`."""
        path = query("/v1/worlds/" + quoted(world), force="true" if force else None)
        self._transport.call("DELETE", path)

    def files(self, world: str = "default") -> Files:
        """The files of a world."""
        return Files(self._transport, world)


class Files:
    """The files of one world. Paths begin with a slash."""

    def __init__(self, transport: Transport, world: str) -> None:
        self._transport, self.world = transport, world
        self._base = "/v1/worlds/%s" % quoted(world)

    def put(self, path: str, source: Source, media_type: Optional[str] = None) -> FileInfo:
        """Writes a file and returns once it is safe. Takes bytes, text, a path on this machine,
        an open binary file or pieces of bytes; large ones are sent in bounded memory."""
        headers = {"Content-Type": media_type} if media_type else {}
        opened: Optional[BinaryIO] = None
        body: Any = source.encode("utf-8") if isinstance(source, str) else source
        if isinstance(source, Path):
            body = opened = open(source, "rb")
        try:
            size = _size(body)
            if size is not None:
                headers["Content-Length"] = str(size)
            put = ("PUT", self._file(path), headers, body, STORED_SECONDS_MAX)
            with self._transport.open(*put) as answer:
                return take(FileInfo, _json(answer))
        finally:
            if opened is not None:
                opened.close()

    def open(self, path: str) -> Download:
        """A file as a stream to be read; it goes on by itself when the connection breaks."""
        return Download(self._transport, self._file(path))

    def get(self, path: str) -> bytes:
        """All of a file."""
        with self.open(path) as stream:
            return stream.read()

    def save(self, path: str, destination: Union[str, Path]) -> None:
        """Copies a file to this machine, in bounded memory; a broken copy leaves nothing."""
        target = Path(destination)
        number, name = tempfile.mkstemp(dir=target.parent, prefix=".wharf-")
        try:
            with os.fdopen(number, "wb") as file, self.open(path) as stream:
                for piece in stream:
                    file.write(piece)
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise

    def ls(self, prefix: str = "/", local: bool = False) -> Iterator[FileInfo]:
        """Files whose paths begin so; with `local` also those of runs."""
        path = query(self._base + "/artifacts", prefix=prefix, local="true" if local else None)
        for item in pages(self._transport, path):
            yield take(FileInfo, item)

    def rm(self, path: str) -> None:
        """Removes a file."""
        self._transport.call("DELETE", self._file(path))

    def trace(self, path: str) -> Mapping[str, Any]:
        """Where a file comes from and where it went."""
        asked = query(self._base + "/trace", path=path)
        answer: Dict[str, Any] = self._transport.call("GET", asked)[1]
        return answer

    def _file(self, path: str) -> str:
        return self._base + "/files/" + urllib.parse.quote(path[1:] if path[:1] == "/" else path)


class Download:
    """A file that is being read."""

    def __init__(self, transport: Transport, path: str) -> None:
        self._transport, self._path = transport, path
        self._read, self._resumes = 0, 0
        self._answer: http.client.HTTPResponse = transport.open("GET", path)
        self.size = int(self._answer.headers.get("content-length") or 0)
        self.b3: str = self._answer.headers.get("wharf-b3") or ""
        self.media_type: str = self._answer.headers.get("content-type") or ""
        self._tag: str = self._answer.headers.get("etag") or ""

    def read(self, size: int = -1) -> bytes:
        """The next bytes, fewer only at the end; all that are left without a size."""
        pieces: List[bytes] = []
        wanted = self.size - self._read if size < 0 else min(size, self.size - self._read)
        while wanted > 0:
            piece = self._piece(min(wanted, PIECE_BYTES))
            pieces.append(piece)
            wanted -= len(piece)
        return b"".join(pieces)

    def __iter__(self) -> Iterator[bytes]:
        while self._read < self.size:
            yield self._piece(min(self.size - self._read, PIECE_BYTES))

    def _piece(self, size: int) -> bytes:
        while True:
            try:
                piece = self._answer.read(size)
                if piece:
                    self._read, self._resumes = self._read + len(piece), 0
                    return piece
                problem: WharfError = away(ConnectionError("it ended early"))
            except Broken as error:
                problem = away(error)
            self._resume(problem)

    def _resume(self, problem: WharfError) -> None:
        """Asks for the rest of the same version of the file."""
        self._answer.close()
        self._resumes += 1
        if not self._tag or self._resumes > RESUMES_MAX:
            raise problem
        headers = {"Range": "bytes=%d-" % self._read, "If-Range": self._tag}
        self._answer = self._transport.open("GET", self._path, headers)
        if self._answer.status != 206 and self._read:
            self._answer.close()
            raise WharfError("artifact.checksum", "The file was replaced while it was read.", True)

    def close(self) -> None:
        """Ends reading."""
        self._answer.close()

    def __enter__(self) -> Download:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()


def pages(transport: Transport, path: str) -> Iterator[Dict[str, Any]]:
    """Everything in a list, page by page as it is needed."""
    joint, cursor = "&" if "?" in path else "?", None
    while True:
        page = path if cursor is None else path + joint + "cursor=" + quoted(cursor)
        answer = transport.call("GET", page)[1]
        yield from answer["items"]
        cursor = answer.get("next_cursor")
        if cursor is None:
            return


def _size(body: Any) -> Optional[int]:
    """How many bytes there are to send, if that can be known."""
    if isinstance(body, (bytes, bytearray, memoryview)):
        return len(body)
    try:
        return os.fstat(body.fileno()).st_size - int(body.tell())
    except (AttributeError, OSError, ValueError):
        return None


def _json(answer: http.client.HTTPResponse) -> Any:
    try:
        return json.loads(answer.read())
    except Broken as error:
        raise away(error) from None

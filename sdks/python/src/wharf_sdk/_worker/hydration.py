"""Files of a run, for handlers: through the server inside a worker, plainly outside of one."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

from .. import _host, _trace
from ..fault import Canceled, Fault, clip
from .channel import Channel, encode
from .values import AROUND_BYTES, BINARY, LINE_BYTES_MAX, Judge

# Larger values go to the server as a file instead of inside a message.
INLINE_BYTES_MAX = 1 << 16
PIECE_BYTES = 1 << 20


class WorkerHost(_host.Host):
    """Asks the server to fetch and to write."""

    def __init__(self, channel: Channel, start: Mapping[str, Any]) -> None:
        payload = start["payload"]
        self._channel = channel
        self._inputs: Mapping[str, Any] = payload.get("inputs") or {}
        self.places: Mapping[str, Any] = payload.get("outputs") or {}
        self._references = frozenset(start.get("refs") or ())
        self._folder = str(start.get("folder") or "")
        self._line_bytes_max = int(start.get("line_bytes_max") or LINE_BYTES_MAX)
        self._numbers = itertools.count(1)
        self.written: Dict[str, str] = {}

    def is_reference(self, key: str, value: Any) -> bool:
        """Whether this is an input of the run that refers to a file."""
        return key in self._references and isinstance(value, str) and self._inputs.get(key) == value

    def fetch(self, key: str, reference: str) -> Path:
        answer = self._channel.ask({"kind": "fetch", "key": key})
        return Path(answer["path"])

    def store(self, key: str, destination: str, source: Path) -> None:
        """Writes a file. One that lies elsewhere is brought into the run's folder first."""
        self._need(key)
        own = Path(self._folder)
        inside = os.path.realpath(source).startswith(os.path.realpath(own) + os.sep)
        path = source if inside else self._own_path()
        try:
            if not inside:
                with open(source, "rb") as given, open(path, "wb") as copy:
                    shutil.copyfileobj(given, copy, PIECE_BYTES)
            self._put(key, {"path": str(path)})
        finally:
            if not inside:
                path.unlink()

    def scratch(self) -> Path:
        if not self._folder:
            raise Fault("ERR_STORAGE", "The run has no folder for files.")
        return Path(self._folder)

    def step(self, message: Dict[str, Any]) -> Dict[str, Any]:
        """Has the server do a step; a run that is called off meanwhile raises `Canceled`."""
        message = dict(message, kind="step")
        if len(encode(message)) + AROUND_BYTES > self._line_bytes_max:
            text = "A step takes or gives more than %d bytes." % self._line_bytes_max
            raise Fault("tool.input_too_large", text)
        try:
            return self._channel.ask(message)
        except Fault as fault:
            if fault.code == "ERR_CANCELED":
                raise Canceled() from None
            raise

    def trouble(self) -> None:
        error = sys.exc_info()[1]
        if error is not None:
            self._channel.trouble(_trace.text(error))

    def write(self, key: str, value: Any) -> None:
        """Writes a value: text as UTF-8, bytes as they are, anything else as JSON."""
        self._need(key)
        if isinstance(value, str):
            try:
                content = value.encode("utf-8")
            except UnicodeEncodeError:
                text = "The output `%s` holds text that is not Unicode." % clip(key)
                raise Fault("ERR_HANDLER", text) from None
        elif isinstance(value, BINARY):
            content = bytes(value)
        else:
            Judge(1 << 62).outputs({key: value})
            content = json.dumps(value, allow_nan=False).encode("utf-8")
        if len(content) <= INLINE_BYTES_MAX and isinstance(value, str):
            self._put(key, {"value": value})
            return
        path = self._own_path()
        path.write_bytes(content)
        try:
            self._put(key, {"path": str(path)})
        finally:
            path.unlink()

    def _put(self, key: str, source: Dict[str, Any]) -> None:
        self._channel.ask(dict(source, kind="put", key=key))
        self.written[key] = str(self.places[key])

    def _need(self, key: str) -> None:
        if key not in self.places:
            text = "The run has no place for the output `%s`." % clip(key)
            raise Fault("ERR_HANDLER", text)

    def _own_path(self) -> Path:
        return self.scratch() / (".put-%d" % next(self._numbers))


def hydrate_inputs(inputs: Mapping[str, Any]) -> Dict[str, Any]:
    """Gives inputs with the bytes of files in the stead of what refers to them."""
    host = _host.installed()
    result: Dict[str, Any] = {}
    for key, value in inputs.items():
        if isinstance(host, WorkerHost):
            refers = host.is_reference(key, value)
        else:
            refers = _host.is_reference(key, value, None)
        result[key] = host.fetch(key, value).read_bytes() if refers else value
    return result


def write_outputs(outputs_schema: Mapping[str, Any], results: Mapping[str, Any]) -> None:
    """Writes those results that have a place to where it is."""
    host = _host.installed()
    for key, place in outputs_schema.items():
        if key not in results:
            continue
        if isinstance(host, WorkerHost):
            host.write(key, results[key])
        else:
            _write_directly(host, key, str(place), results[key])


def _write_directly(host: _host.Host, key: str, place: str, value: Any) -> None:
    content: Optional[bytes] = bytes(value) if isinstance(value, BINARY) else None
    if content is None:
        text = value if isinstance(value, str) else json.dumps(value)
        content = text.encode("utf-8")
    path = host.scratch() / ("output-%d" % len(os.listdir(host.scratch())))
    path.write_bytes(content)
    try:
        host.store(key, place, path)
    finally:
        path.unlink()

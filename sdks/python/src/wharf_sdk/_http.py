"""One connection to a core: where it is, requests, answers, what to do when it breaks."""

from __future__ import annotations

import http.client
import json
import os
import re
import select
import socket
import ssl
import time
import urllib.parse
from pathlib import Path
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Tuple

from .errors import CoreAway, WharfError

# The core closes a connection on which nothing happened for 75 seconds.
IDLE_SECONDS_MAX = 60.0
PAUSE_SECONDS = 0.05
PAUSE_SECONDS_MAX = 1.0

PEM = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)

Broken = (OSError, http.client.HTTPException)


class Trust(NamedTuple):
    """What a core's certificate is trusted by; by what the system trusts when nothing is named."""

    # Certificates that may be the core's own, whatever name they are for.
    own: FrozenSet[bytes] = frozenset()
    # A file with certificates, of which one may have signed the core's.
    ca: Optional[str] = None

    @classmethod
    def of(cls, ca: Optional[str], home: Optional[Path]) -> Trust:
        """The certificates of a file, and the one in a home whose core it is."""
        own = set(_certificates(Path(ca))) if ca else set()
        if home is not None and home.exists():
            own.update(_certificates(home))
        return cls(frozenset(own), ca or None)


def _certificates(path: Path) -> List[bytes]:
    try:
        text = path.read_text("utf-8")
        found = [ssl.PEM_cert_to_DER_cert(block) for block in PEM.findall(text)]
    except (OSError, ValueError) as error:
        text = "The certificates in %s cannot be read: %s." % (path, error)
        raise WharfError("config.invalid", text) from None
    if not found:
        raise WharfError("config.invalid", "%s holds no certificate." % path)
    return found


class Core(NamedTuple):
    """Where a core is, and what lets one in."""

    url: str
    token: str
    trust: Trust = Trust()


def find(url: Optional[str], token: Optional[str], home: Optional[str]) -> Core:
    """A core by what was given, else by the environment, else by its home. The owner's token goes
    to the home's own core only."""
    place = Path(home or os.environ.get("WHARF_HOME") or _home()) / "run"
    own = _url_of(place)
    url = url or os.environ.get("WHARF_URL") or own
    if not url:
        text = "No core runs with the home %s. Start one with: wharf up" % place.parent
        raise CoreAway(text)
    url = str(url).rstrip("/")
    token = token or os.environ.get("WHARF_TOKEN")
    if not token and url == own:
        try:
            token = (place / "owner.token").read_text("utf-8").strip()
        except (OSError, ValueError):
            pass
    if not token:
        raise WharfError("auth.required", "There is no token; give one, or set WHARF_TOKEN.")
    trust = Trust()
    if url.startswith("https:"):
        trust = Trust.of(os.environ.get("WHARF_CA"), place / "core.pem" if url == own else None)
    return Core(url, token, trust)


def _url_of(place: Path) -> Optional[str]:
    """Where the core is that runs with a home, if one does."""
    try:
        return str(json.loads((place / "core.json").read_text("utf-8"))["http"]).rstrip("/")
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _home() -> Path:
    data = os.environ.get("XDG_DATA_HOME", "")
    base = Path(data) if data.startswith("/") else Path.home() / ".local" / "share"
    return base / "wharf"


class Transport:
    """Requests over a connection that is kept. It belongs to one thread at a time."""

    def __init__(self, find: Callable[[], Core], timeout: float, patience: float) -> None:
        self._find, self.timeout, self.patience = find, timeout, patience
        self._kept: Optional[http.client.HTTPConnection] = None
        self._used = 0.0

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        timeout: Optional[float] = None,
        repeatable: Optional[bool] = None,
    ) -> Tuple[int, Any]:
        """Sends JSON (bytes are JSON already) and gives status and JSON; an error of the core is
        raised.

        A request that may be sent twice without harm is sent again when the connection breaks,
        until the core was away for too long.
        """
        data = body
        if body is not None and not isinstance(body, bytes):
            data = json.dumps(body, allow_nan=False).encode("utf-8")
        headers = {"Content-Type": "application/json"} if data is not None else {}
        again = method in ("GET", "PUT", "DELETE") if repeatable is None else repeatable
        until, pause = time.monotonic() + self.patience, PAUSE_SECONDS
        while True:
            sent = False
            try:
                connection = self._connection(timeout)
                sent = True
                connection.request(method, path, data, headers=self._let_in(headers))
                response = connection.getresponse()
                status, answer = response.status, response.read()
                self._used = time.monotonic()
                if response.will_close:
                    self.close()
                return status, checked(status, answer)
            except (*Broken, CoreAway) as error:
                self.close()
                timed_out = isinstance(error, socket.timeout)
                if timed_out or (sent and not again) or time.monotonic() >= until:
                    raise away(error) from None
                time.sleep(pause)
                pause = min(pause * 2, PAUSE_SECONDS_MAX)

    def open(
        self,
        method: str,
        path: str,
        headers: Optional[Mapping[str, str]] = None,
        body: Any = None,
        timeout: Optional[float] = None,
    ) -> http.client.HTTPResponse:
        """Begins a transfer on a connection of its own, which closes with the answer."""
        core = self._find()
        connection = connect(core, self.timeout if timeout is None else timeout)
        given = dict(headers or {}, Authorization="Bearer " + core.token, Connection="close")
        chunked = body is not None and "Content-Length" not in given
        if chunked:
            given["Transfer-Encoding"] = "chunked"
        try:
            try:
                connection.request(method, path, body, given, encode_chunked=chunked)
            except (BrokenPipeError, ConnectionResetError):
                # Refused before all was sent: the answer may be there and says why.
                pass
            response = connection.getresponse()
        except Broken as error:
            connection.close()
            raise away(error) from None
        if response.status >= 400:
            with response:
                answer = response.read(1 << 20)
            connection.close()
            checked(response.status, answer)
        return response

    def _connection(self, timeout: Optional[float]) -> http.client.HTTPConnection:
        idle = time.monotonic() - self._used
        if self._kept is not None and (idle > IDLE_SECONDS_MAX or _is_over(self._kept)):
            self.close()
        wanted = self.timeout if timeout is None else timeout
        if self._kept is None:
            core = self._find()
            self._kept = connect(core, wanted)
            self._token = core.token
            try:
                self._kept.connect()
            except OSError as error:
                raise away(error) from None
        if self._kept.sock is not None:
            self._kept.sock.settimeout(wanted)
        return self._kept

    def _let_in(self, headers: Mapping[str, str]) -> Dict[str, str]:
        return dict(headers, Authorization="Bearer " + self._token)

    def close(self) -> None:
        """Closes the connection that is kept; the next request opens another."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None


def _is_over(connection: http.client.HTTPConnection) -> bool:
    """Whether the other end has closed a connection on which nothing is awaited."""
    if connection.sock is None or not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(0))


def _tls(ca: Optional[str], compare: bool) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca)
    if compare:
        # Whose certificate it is is looked at when it is there.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class TrustingConnection(http.client.HTTPSConnection):
    """A connection that is encrypted and goes to a core that is trusted. Nothing is sent before
    that is known."""

    def __init__(self, host: str, port: Optional[int], trust: Trust, timeout: float) -> None:
        self._trust = trust
        super().__init__(host, port, timeout=timeout, context=_tls(trust.ca, bool(trust.own)))

    def connect(self) -> None:
        super().connect()
        if not self._trust.own:
            return
        assert isinstance(self.sock, ssl.SSLSocket)
        if self.sock.getpeercert(binary_form=True) in self._trust.own:
            return
        self.close()
        if self._trust.ca is None:
            raise ssl.SSLCertVerificationError("it is not the certificate of the home's core")
        # Somebody in the file may have signed it.
        signed = http.client.HTTPSConnection(
            self.host, self.port, timeout=self.timeout, context=_tls(self._trust.ca, False)
        )
        signed.connect()
        self.sock = signed.sock


def connect(core: Core, timeout: float) -> http.client.HTTPConnection:
    """A connection that is not yet open."""
    parts = urllib.parse.urlsplit(core.url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        text = "The address of a core begins with http:// or https://."
        raise WharfError("config.invalid", text)
    if parts.scheme == "https":
        return TrustingConnection(parts.hostname, parts.port, core.trust, timeout)
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)


def checked(status: int, answer: bytes) -> Any:
    """The JSON of an answer; what the core calls an error is raised."""
    try:
        value = json.loads(answer) if answer else None
    except ValueError:
        value = None
    if status < 400:
        return value
    error = value.get("error") if isinstance(value, dict) else None
    if not isinstance(error, dict):
        error = {"code": "core.internal", "message": "The core answered %d." % status}
    raise WharfError.from_json(error, status)


def away(error: BaseException) -> WharfError:
    """A broken connection, as an error of ours."""
    if isinstance(error, WharfError):
        return error
    if isinstance(error, socket.timeout):
        return CoreAway("The core did not answer in time.")
    return CoreAway("The core cannot be reached: %s." % (error or type(error).__name__))


def quoted(text: str) -> str:
    """Text as one step of a path."""
    return urllib.parse.quote(text, safe="")


def query(path: str, /, **values: Any) -> str:
    """A path with those values that are there."""
    given = {name: str(value) for name, value in values.items() if value is not None}
    return path + "?" + urllib.parse.urlencode(given) if given else path

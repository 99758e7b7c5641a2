"""Builds the package with nothing but Python, so that installing it fetches nothing.

The interface is that of PEP 517 and PEP 660. A wheel is a zip file of the package's files with
three files about them; there is no compiled code and there are no dependencies, so this is all of
it. What the files say comes from `pyproject.toml`.
"""

from __future__ import annotations

import base64
import hashlib
import re
import tarfile
import zipfile
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
PACKAGE = "wharf_sdk"
TAG = "py3-none-any"
# Files have the same time in every build, so that the same sources give the same wheel.
MOMENT = (2020, 1, 1, 0, 0, 0)

Entry = Tuple[str, bytes]
Settings = Optional[Dict[str, Any]]


def build_wheel(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: Optional[str] = None
) -> str:
    """Makes the wheel that is installed."""
    files = [(path.relative_to(SOURCE).as_posix(), path.read_bytes()) for path in _sources()]
    return _wheel(Path(wheel_directory), files)


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: Optional[str] = None
) -> str:
    """Makes a wheel that only says where the sources are, for those who change them."""
    return _wheel(Path(wheel_directory), [(PACKAGE + ".pth", (str(SOURCE) + "\n").encode("utf-8"))])


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Makes the archive of sources that a wheel can be built from."""
    stem = "%s-%s" % (PACKAGE, _project()["version"])
    name = stem + ".tar.gz"
    kept = [ROOT / "pyproject.toml", ROOT / "README.md", Path(__file__), *_sources()]
    with tarfile.open(Path(sdist_directory) / name, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path in kept:
            archive.add(path, "%s/%s" % (stem, path.relative_to(ROOT).as_posix()))
        about = Path(sdist_directory) / "PKG-INFO"
        about.write_bytes(_metadata())
        archive.add(about, stem + "/PKG-INFO")
        about.unlink()
    return name


def _sources() -> List[Path]:
    wanted = [path for path in (SOURCE / PACKAGE).rglob("*") if path.suffix in (".py", ".typed")]
    return sorted(path for path in wanted if path.is_file())


def _wheel(folder: Path, files: List[Entry]) -> str:
    stem = "%s-%s" % (PACKAGE, _project()["version"])
    name, about = "%s-%s.whl" % (stem, TAG), stem + ".dist-info"
    kind = "Wheel-Version: 1.0\nGenerator: wharf\nRoot-Is-Purelib: true\nTag: %s\n" % TAG
    entries = files + [(about + "/METADATA", _metadata()), (about + "/WHEEL", kind.encode("utf-8"))]
    record = "".join("%s,%s,%d\n" % (path, _digest(data), len(data)) for path, data in entries)
    entries.append((about + "/RECORD", (record + about + "/RECORD,,\n").encode("utf-8")))
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in entries:
            archive.writestr(zipfile.ZipInfo(path, MOMENT), data, zipfile.ZIP_DEFLATED)
    return name


def _metadata() -> bytes:
    project = _project()
    lines = [
        "Metadata-Version: 2.1",
        "Name: " + project["name"],
        "Version: " + project["version"],
        "Summary: " + project["description"],
        "License: MIT OR Apache-2.0",
        "Requires-Python: " + project["requires-python"],
        "Description-Content-Type: text/markdown",
        "",
        (ROOT / "README.md").read_text("utf-8"),
    ]
    return "\n".join(lines).encode("utf-8")


def _project() -> Dict[str, str]:
    """The texts of `pyproject.toml`; before Python 3.11 nothing else reads that form."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    return dict(re.findall(r'^([a-z-]+) = "([^"\n]*)"$', text, re.MULTILINE))


def _digest(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    return "sha256=" + digest.rstrip(b"=").decode("ascii")

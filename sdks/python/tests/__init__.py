"""Tests of the Python package. Run them with `python3 -m unittest discover -s tests -t .`."""

import sys
from pathlib import Path

# The package is tried as it lies here, installed or not.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

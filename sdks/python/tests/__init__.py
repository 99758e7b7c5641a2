"""Tests of the Python package. Run them with `python3 -m unittest discover -s tests -t .`."""

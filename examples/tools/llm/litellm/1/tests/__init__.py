"""Tests of llm/litellm@1. Run them with `python3 -m unittest discover -s tests -t .`."""

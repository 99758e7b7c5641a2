"""Files of a run under the name by which handlers of the run protocol import them."""

from __future__ import annotations

from wharf_sdk._worker.hydration import hydrate_inputs, write_outputs

__all__ = ["hydrate_inputs", "write_outputs"]

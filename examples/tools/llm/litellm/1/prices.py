"""What models cost, from the table beside this file: dollars for a million tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Optional

from chat import Usage
from wharf_sdk import Prices, per_token

TABLE = {
    name: Prices.dollars(price["prompt"], price["completion"])
    for name, price in json.loads(
        Path(__file__).with_name("prices.json").read_text("utf-8")
    ).items()
}


def of(model: str) -> Optional[Prices]:
    """The price of a model; a dated version costs what its model costs."""
    name = model.rsplit("/", 1)[-1]
    fitting = [known for known in TABLE if name == known or name.startswith(known + "-20")]
    return TABLE[max(fitting, key=len)] if fitting else None


def cost(usage: Usage, price: Prices) -> int:
    """What tokens cost, in millionths of a dollar."""
    return per_token(usage.prompt, usage.completion, price)

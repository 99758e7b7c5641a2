"""What a run cost, in micro-dollars: millionths of a dollar, always whole numbers.

Floating point never touches money here. What does not come out even is rounded up, so that a run
never reports less than it cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Union

Number = Union[int, float, str, Decimal, Fraction]

TOKENS_PER_PRICE = 1_000_000


@dataclass(frozen=True)
class Prices:
    """What a million tokens cost, in micro-dollars: those that go in, those that come out."""

    prompt: int
    completion: int

    @classmethod
    def dollars(cls, prompt: Number, completion: Number) -> Prices:
        """Prices as they stand in price lists: dollars for a million tokens, such as "0.15"."""
        return cls(micro(prompt), micro(completion))


def micro(dollars: Number) -> int:
    """Dollars as micro-dollars, rounded up."""
    return _up(_exact(dollars, "An amount of money") * 1_000_000)


def per_token(prompt_tokens: int, completion_tokens: int, prices: Prices) -> int:
    """What these tokens cost together; rounded up once, for the sum."""
    for count in (prompt_tokens, completion_tokens):
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise ValueError("A number of tokens is a whole number that is not negative.")
    total = prompt_tokens * prices.prompt + completion_tokens * prices.completion
    return _up(Fraction(total, TOKENS_PER_PRICE))


def per_second(seconds: Number, price: int) -> int:
    """What this many seconds cost, at this many micro-dollars a second."""
    return _up(_exact(seconds, "A time") * price)


def _exact(number: Number, what: str) -> Fraction:
    """A number as it is written: 0.1 is a tenth, not what binary makes of it."""
    try:
        exact = Fraction(repr(number) if isinstance(number, float) else number)
    except (ValueError, OverflowError, TypeError):
        raise ValueError("%s is a finite number." % what) from None
    if exact < 0:
        raise ValueError("%s is not negative." % what)
    return exact


def _up(amount: Fraction) -> int:
    return -(-amount.numerator // amount.denominator)

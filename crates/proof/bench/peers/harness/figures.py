"""Statistics of figures that were taken in turns.

Two figures of one round met the same machine, so a ratio is made within each round, and what is
shown is how the ratios are spread: their median, and the interval that holds the true median. The
interval goes by the order of the ratios alone, as that of `wharf-bench --against` does, and assumes
nothing about how noise is distributed; with fewer than six rounds it cannot reach 95 %, and says
what it does reach.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb

# An interval leaves out as many values at each end as this share of the cases allows.
TAIL_MAX = 0.025


@dataclass(frozen=True)
class Spread:
    """A median, the smallest and largest value, and the interval that holds the true median."""

    median: float
    least: float
    most: float
    low: float
    high: float
    confidence: float
    count: int


def median(values: Iterable[float]) -> float:
    """The middle value, or the middle between the two middle ones."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("there is no median of nothing")
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def ranks_outside(count: int) -> int:
    """How many of the smallest and of the largest values may be left out at 95 %.

    Each value is above the true median with a chance of one half, so the tails are those of
    throwing a coin so often.
    """
    outside = 0
    while outside + 1 < count / 2 and tail(count, outside + 1) <= TAIL_MAX:
        outside += 1
    return outside


def tail(count: int, outside: int) -> float:
    """The chance that the true median lies beyond the value of this rank, on one side."""
    return sum(comb(count, rank) for rank in range(outside + 1)) / 2**count


def spread(values: Sequence[float]) -> Spread:
    """How values are spread."""
    ordered = sorted(values)
    outside = ranks_outside(len(ordered))
    return Spread(
        median=median(ordered),
        least=ordered[0],
        most=ordered[-1],
        low=ordered[outside],
        high=ordered[len(ordered) - 1 - outside],
        confidence=max(0.0, 1 - 2 * tail(len(ordered), outside)),
        count=len(ordered),
    )


def advantage(ours: Sequence[float], theirs: Sequence[float], better: str) -> Spread:
    """How many times as good the first are as the second, round by round; above 1 they are better.

    `better` says what good is: `lower` (a time, memory) or `higher` (calls a second).
    """
    if better not in ("lower", "higher"):
        raise ValueError(f"better is lower or higher, not {better}")
    pairs = [(mine, other) for mine, other in zip(ours, theirs, strict=True)]
    if any(mine <= 0 or other <= 0 for mine, other in pairs):
        raise ValueError("a figure that is not above zero has no ratio")
    return spread([other / mine if better == "lower" else mine / other for mine, other in pairs])

"""The colours of pictures. Pure."""

from __future__ import annotations

from itertools import pairwise

INK = "#2b303b"
QUIET = "#6b7280"
FRAME = "#c3c8d1"
BEST = "#e4572e"
CUT = "#9aa1ad"

# From bad to good. Distinguishable with colour blindness; the good end is dark enough for white paper.
_RAMP = ((0.0, (233, 214, 160)), (0.35, (140, 200, 160)), (0.7, (52, 141, 178)), (1.0, (30, 58, 128)))


def ramp(share: float) -> str:
    """The colour of a value: 0 for the worst, 1 for the best.

    >>> ramp(0), ramp(1), ramp(7)
    ('#e9d6a0', '#1e3a80', '#1e3a80')
    """
    share = min(1.0, max(0.0, share))
    for (low, first), (high, second) in pairwise(_RAMP):
        if share <= high:
            part = (share - low) / (high - low)
            return "#" + "".join(f"{round(a + part * (b - a)):02x}" for a, b in zip(first, second, strict=True))
    raise AssertionError("a share is at most 1")

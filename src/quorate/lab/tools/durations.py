"""Durations as ``sleep`` and ``timeout`` take them: ``2``, ``0.5``, ``30s``, ``1m``."""

from __future__ import annotations

import math

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(text: str) -> float:
    """A duration in seconds. Raises ValueError."""
    unit = _UNITS.get(text[-1:])
    found = float(text[:-1]) * unit if unit else float(text)
    if not math.isfinite(found) or found < 0:
        raise ValueError(f"{text!r} is no duration")
    return found

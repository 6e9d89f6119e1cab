"""Sizes as LVM reads and prints them."""

from __future__ import annotations

from quorate.lab.lvm.volume import EXTENT
from quorate.lab.tools.arguments import UsageError

_UNITS = {"b": 1, "s": 512, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}


def parse(text: str) -> int:
    """Bytes of ``32M``, ``1.5g``, ``4096b``; a bare number is MiB."""
    number, unit = (text[:-1], text[-1].lower()) if text and text[-1].lower() in _UNITS else (text, "m")
    try:
        return int(float(number) * _UNITS[unit]) if unit != "b" else int(number)
    except ValueError:
        raise UsageError(f"Invalid argument for --size: {text}") from None


def extents_of(size: int) -> int:
    """Whole extents, rounded up as LVM does."""
    return -(-size // EXTENT)


def shown(size: int) -> str:
    """With the unit that suits: ``32.00 MiB``."""
    for unit, name in (("p", "PiB"), ("t", "TiB"), ("g", "GiB"), ("m", "MiB"), ("k", "KiB")):
        if size >= _UNITS[unit]:
            return f"{size / _UNITS[unit]:.2f} {name}"
    return f"{size} B"


def reported(size: int, units: str, suffix: bool) -> str:
    """A report's field."""
    if units.lower() == "b":
        return f"{size}{'B' if suffix else ''}"
    if units.lower() in ("h", "r", "") or units.lower() not in _UNITS:
        for unit in "ptgmk":
            if size >= _UNITS[unit]:
                return f"{size / _UNITS[unit]:.2f}{unit if suffix else ''}"
        return f"{size}{'b' if suffix else ''}"
    return f"{size / _UNITS[units.lower()]:.2f}{units.lower() if suffix else ''}"

"""Quantities (``10Gi``, ``500m``), parsed, compared and printed as Kubernetes does.

The text a person wrote is kept: a Quantity read and written back is the same text. ``canonical()`` is what
Kubernetes would print for that value: the largest suffix of the same family that keeps the number whole.

Two departures, both at the edge: an exponent has at most three digits, because Kubernetes expands ``1e999999999`` to
a gigabyte of zeros (the schema says so too, and refuses it at the door); and beyond ``E`` there is no suffix to
promote to, where Kubernetes drops it and prints ``1000E`` as ``1``.
"""

from __future__ import annotations

import re
from functools import total_ordering

#: What a quantity looks like: the schema's pattern and the parser's, so that what is admitted can be read.
QUANTITY_PATTERN = r"^([+-]?)([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?$"
#: Longer text is not a number that anybody means.
QUANTITY_MAX_LENGTH = 64

_PARSER = re.compile(QUANTITY_PATTERN[:-1] + r"\Z")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_BY_POWER = {power: suffix for suffix, power in _DECIMAL.items()}
#: Nothing finer than this is kept.
_NANOS = 10**9
#: Kubernetes caps what is written with a binary suffix at 2^63-1, and only that.
_BINARY_CAP = (2**63 - 1) * _NANOS


@total_ordering
class Quantity:
    """An exact amount, with the text it was written in."""

    __slots__ = ("nanos", "text")

    text: str
    #: The amount in billionths: whole, so that nothing is ever rounded twice.
    nanos: int

    def __init__(self, text: str | int) -> None:
        """Parse; raises ValueError with the value and what is allowed."""
        self.text = str(text)
        match = _PARSER.match(self.text)
        if match is None or len(self.text) > QUANTITY_MAX_LENGTH:
            raise ValueError(
                f"{self.text[:80]!r} is not a quantity: expected a number with an optional suffix"
                " (Ki Mi Gi Ti Pi Ei, n u m k M G T P E) or an exponent of at most three digits"
            )
        sign, number, _, suffix = match.groups(default="")
        magnitude = _nanos(number, suffix)
        self.nanos = -magnitude if sign == "-" else magnitude

    @classmethod
    def of_bytes(cls, count: int) -> Quantity:
        """An amount of bytes in its canonical binary form: 10737418240 is ``10Gi``."""
        return cls(_binary_text(count))

    def __int__(self) -> int:
        """The amount in whole units, rounded away from zero, as Kubernetes' ``Value()`` does."""
        whole = -(-abs(self.nanos) // _NANOS)
        return whole if self.nanos >= 0 else -whole

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nanos == other.nanos

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Quantity({self.text!r})"

    def canonical(self) -> str:
        """The same value as Kubernetes prints it."""
        if self.text.endswith("i") and self.nanos % _NANOS == 0 and abs(self.nanos) >= 1024 * _NANOS:
            return _binary_text(self.nanos // _NANOS)
        return _decimal_text(self.nanos, exponent_form=_is_exponent(self.text))


def _is_exponent(text: str) -> bool:
    """Whether the text ends in an exponent; a lone ``E`` is the suffix exa."""
    return text[-1].isdigit() and ("e" in text or "E" in text)


def _nanos(number: str, suffix: str) -> int:
    whole, _, fraction = number.partition(".")
    digits = int(whole + fraction or "0")
    if suffix in _BINARY[1:]:
        exact = digits * 1024 ** _BINARY.index(suffix) * _NANOS
        return min(_rounded_up(exact, 10 ** len(fraction)), _BINARY_CAP)
    power = 9 - len(fraction) + (_DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:]))
    return digits * 10**power if power >= 0 else _rounded_up(digits, 10**-power)


def _rounded_up(dividend: int, divisor: int) -> int:
    """Kubernetes gives a little too much rather than nothing."""
    return -(-dividend // divisor)


def _binary_text(count: int) -> str:
    power = 0
    while count and count % 1024 == 0 and power < len(_BINARY) - 1:
        count //= 1024
        power += 1
    return f"{count}{_BINARY[power]}"


def _decimal_text(nanos: int, *, exponent_form: bool) -> str:
    if not nanos:
        return "0"
    mantissa, power = nanos, -9
    while mantissa % 1000 == 0 and (exponent_form or power < 18):
        mantissa //= 1000
        power += 3
    if not exponent_form:
        return f"{mantissa}{_DECIMAL_BY_POWER[power]}"
    return f"{mantissa}e{power}" if power else str(mantissa)

"""Quantities (``10Gi``, ``500m``), parsed, compared and printed as Kubernetes does.

The text a person wrote is kept: a Quantity read and written back is the same text. ``canonical()`` is what
Kubernetes would print for that value: the largest suffix of the same family that keeps the number whole.
"""

from __future__ import annotations

import re
from decimal import ROUND_UP, Decimal
from functools import total_ordering

#: The pattern Kubernetes puts into schemas for a quantity written as a string.
QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)

_PARTS = re.compile(r"^([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?[0-9]+))?$")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_BY_POWER = {power: suffix for suffix, power in _DECIMAL.items()}
_NANO = Decimal(1).scaleb(-9)
#: Kubernetes caps a quantity at 2^63-1 (times 10^0); larger text is accepted and capped.
_CAP = Decimal(2**63 - 1)


@total_ordering
class Quantity:
    """An exact amount, with the text it was written in."""

    __slots__ = ("text", "value")

    text: str
    value: Decimal

    def __init__(self, text: str | int) -> None:
        """Parse; raises ValueError with the value and what is allowed."""
        self.text = str(text)
        match = _PARTS.match(self.text)
        if match is None:
            raise ValueError(
                f"{self.text!r} is not a quantity: expected a number with an optional suffix"
                " (Ki Mi Gi Ti Pi Ei, n u m k M G T P E) or an exponent"
            )
        number, suffix, exponent = match.groups()
        value = Decimal(number)
        if exponent is not None:
            value = value.scaleb(int(exponent))
        elif suffix in _BINARY:
            value *= 1024 ** _BINARY.index(suffix)
        elif suffix is not None:
            value = value.scaleb(_DECIMAL[suffix])
        # Kubernetes keeps nothing finer than a nano and rounds what is finer away from zero.
        value = value.quantize(_NANO, rounding=ROUND_UP) if abs(value) < _CAP else value
        self.value = max(-_CAP, min(_CAP, value))

    @classmethod
    def of_bytes(cls, count: int) -> Quantity:
        """An amount of bytes in its canonical binary form: 10737418240 is ``10Gi``."""
        return cls(_binary_text(count))

    def __int__(self) -> int:
        """The amount in whole units, rounded up, as Kubernetes' ``Value()`` does."""
        return int(self.value.to_integral_value(rounding=ROUND_UP))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.value == other.value

    def __lt__(self, other: Quantity) -> bool:
        return self.value < other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Quantity({self.text!r})"

    def canonical(self) -> str:
        """The same value as Kubernetes prints it."""
        match = _PARTS.match(self.text)
        assert match is not None, "checked by the constructor"
        _, suffix, exponent = match.groups()
        if suffix in _BINARY[1:] and self.value == self.value.to_integral_value() and abs(self.value) >= 1024:
            return _binary_text(int(self.value))
        return _decimal_text(self.value, exponent_form=exponent is not None)


def _binary_text(count: int) -> str:
    power = 0
    while count and count % 1024 == 0 and power < len(_BINARY) - 1:
        count //= 1024
        power += 1
    return f"{count}{_BINARY[power]}"


def _decimal_text(value: Decimal, *, exponent_form: bool) -> str:
    if not value:
        return "0"
    power = -9
    mantissa = int(value.scaleb(9).to_integral_value(rounding=ROUND_UP))
    while mantissa % 1000 == 0 and power < 18:
        mantissa //= 1000
        power += 3
    if not exponent_form:
        return f"{mantissa}{_DECIMAL_BY_POWER[power]}"
    return f"{mantissa}e{power}" if power else str(mantissa)

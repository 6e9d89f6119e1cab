"""Output made fit for showing: no colours, no secrets, not too long."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from quorate.api.secret import Secret

#: What a CommandError has room for.
MAX_LENGTH: Final = 1024


def plain(text: str) -> str:
    """Without terminal escapes and other control characters."""
    raise NotImplementedError


def masked(text: str, secrets: Iterable[Secret] = ()) -> str:
    """Without these secrets, nor any other that a command line or a file in the text gives as a shared secret."""
    raise NotImplementedError


def trimmed(text: str, limit: int = MAX_LENGTH) -> str:
    """At most ``limit`` characters: the first lines and the last ones, since they say what failed and how."""
    raise NotImplementedError


def presentable(text: str, secrets: Iterable[Secret] = ()) -> str:
    """Plain, masked and trimmed, in this order: a secret cut in two would not be found."""
    return trimmed(masked(plain(text), secrets))

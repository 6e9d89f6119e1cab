"""A secret on the wire: it can be sent and compared, and never shows in a repr, a log line or an error."""

from __future__ import annotations


class Secret:
    """Text that must not be shown. ``reveal()`` is the only way to read it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The secret itself: for the wire and for the file that needs it."""
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__

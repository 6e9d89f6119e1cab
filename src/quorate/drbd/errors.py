"""What can be wrong with text that goes to DRBD's tools or comes from them."""

from __future__ import annotations

from quorate.errors import QuorateError


class UnreadableOutput(QuorateError):
    """A tool's output is not what that tool prints: says which tool, and where it stops making sense."""


class UnwritableConfig(QuorateError):
    """A config that no ``.res`` file can express: a field is missing, or has a character that cannot be quoted."""

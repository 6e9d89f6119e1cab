"""What the lab refuses to do."""

from __future__ import annotations

from quorate.errors import QuorateError


class FaultRefused(QuorateError):
    """A fault that cannot be: what it names is not there, or is so already. The message says what there is."""

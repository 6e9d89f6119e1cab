"""What keeps the suite from running, and what a scenario ends with."""

from __future__ import annotations


class MetalError(Exception):
    """Every error of the suite's own."""


class CannotRun(MetalError):
    """The suite cannot run here; the text says what to do."""


class Failed(MetalError):
    """A scenario did not go as it must."""

"""The answer of a question that came to nothing."""

from __future__ import annotations

from quorate.api.maintenance.action import StatusCode
from quorate.maintenance.messages import Status


class Declined(Exception):
    """Ends a question with a status, and what it had begun is taken back. ``deadline``: when to ask again."""

    def __init__(self, code: StatusCode, reason: str, *, deadline: int | None = None) -> None:
        super().__init__(reason)
        self.status = Status(code=code, reason=reason)
        self.deadline = deadline


def wrong(reason: str) -> Declined:
    """The question itself is at fault."""
    return Declined(StatusCode.WRONG_REQUEST, reason)

"""Waiting for an answer to change: told by the broker at once, and by its Deadline if it is not."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from quorate.cli.maintenance.client import Client
from quorate.errors import QuorateError

#: Never ask more often, nor less: seconds.
SHORTEST: Final = 1.0
LONGEST: Final = 60.0


async def next_time(client: Client, user: str, request_id: str, deadline: int) -> None:
    """Return when asking again is worth it."""
    from quorate.cli.maintenance.options import now

    patience = min(max((deadline - now()) / 1_000_000, SHORTEST), LONGEST)
    with suppress(TimeoutError, QuorateError):
        async with asyncio.timeout(patience), client.changes(user, request_id) as changes:
            async for _ in changes:
                return
    # A broker that hangs up at once must not be asked in a hurry.
    await asyncio.sleep(SHORTEST)

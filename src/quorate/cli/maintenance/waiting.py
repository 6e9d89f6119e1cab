"""Waiting for an answer to change: told by the broker at once, and by its Deadline if it is not."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, Final

import click

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


async def either(waiting: Awaitable[None], stop: asyncio.Event) -> None:
    """Until the one or the other."""
    both: set[asyncio.Future[Any]] = {asyncio.ensure_future(waiting), asyncio.ensure_future(stop.wait())}
    try:
        done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    finally:
        for each in both:
            each.cancel()


def stopped_by_signals(in_a_hurry: str) -> asyncio.Event:
    """Set by the first SIGINT or SIGTERM, to put things in order; the second ends us, saying what may be left."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def signalled() -> None:
        if stop.is_set():
            click.echo(in_a_hurry, err=True)
            os._exit(130)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, signalled)
    return stop

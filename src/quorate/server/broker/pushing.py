"""Changes as they happen: one stream of trees per listener, and an end for all of them when the server stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

from quorate.errors import Forbidden
from quorate.maintenance.broker import Broker
from quorate.maintenance.messages import Caller
from quorate.server.broker.json_trees import Tree
from quorate.server.broker.translation import answers

#: Seconds of silence after which a listener is told that the stream still lives.
_SILENCE: Final = 15.0


class Streams:
    """Every open stream of changes."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        #: The server stops.
        self.stopped = asyncio.Event()

    def stop(self) -> None:
        """End them all; new ones end at once."""
        self.stopped.set()

    @staticmethod
    def allowed(caller: Caller, user: str) -> str:
        """Whose changes a caller is shown: its own; everybody's to an admin, and where the interface is open."""
        if caller.admin or caller.anyone:
            return user
        if user not in ("", caller.name):
            raise Forbidden(f"{caller.name} may not watch what is {user}'s: only an admin may")
        return caller.name

    async def changes(self, user: str, request_id: str) -> AsyncGenerator[Tree | None, None]:
        """What happens to a user's requests and permissions; None as soon as it listens, and while nothing happens."""
        changes = aiter(self._broker.changes(user=user, request_id=request_id))
        stopped = asyncio.ensure_future(self.stopped.wait())
        upcoming = asyncio.ensure_future(anext(changes, None))
        try:
            await asyncio.sleep(0)  # one turn of the loop: now nothing is missed
            yield None
            while True:
                await asyncio.wait([upcoming, stopped], timeout=_SILENCE, return_when=asyncio.FIRST_COMPLETED)
                if stopped.done():
                    return
                if not upcoming.done():
                    yield None
                    continue
                change = upcoming.result()
                if change is None:
                    return
                yield answers.change(change)
                upcoming = asyncio.ensure_future(anext(changes, None))
        finally:
            for task in (stopped, upcoming):
                task.cancel()
            await asyncio.gather(stopped, upcoming, return_exceptions=True)
            if hasattr(changes, "aclose"):
                await changes.aclose()

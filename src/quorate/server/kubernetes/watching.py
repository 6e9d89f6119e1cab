"""Watches: one response that does not end, a line per change.

A stream ends when its time is over (the client asked for a limit, or half an hour to an hour of ours), when the
server stops, when the history it needs is gone or its token opens nothing any more (an ERROR line says so), or when the
client goes away. All but the last end it properly, so the client knows that it missed nothing and resumes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from functools import partial

from aiohttp import web

from quorate.engine.embedded import Change, EmbeddedStore, Subscription
from quorate.engine.store import EventType
from quorate.errors import Unauthorized
from quorate.server.kubernetes import status
from quorate.server.kubernetes.auth import Access
from quorate.server.kubernetes.options import ListOptions
from quorate.server.kubernetes.paths import Target
from quorate.server.kubernetes.rendering import Renderer, watch_line
from quorate.server.kubernetes.requests import CALLER

#: Seconds. Spread, so that clients that came together do not come back together.
_SHORTEST, _LONGEST = 1800.0, 3600.0
#: A client takes a watch that says nothing for long for dead.
_BOOKMARK_PERIOD = 60.0
#: Seconds of a stream's life in which its token is believed: to look at it for each event would be dear.
_STILL_KNOWN_PERIOD = 1.0
#: Events that are sent before others go on.
_SENT_AT_ONCE = 32


class Watches:
    """The streams under way, so that a stopping server can end them."""

    def __init__(self, store: EmbeddedStore, chance: random.Random, access: Access) -> None:
        self._store = store
        self._chance = chance
        self._access = access
        self._deadlines: dict[int, asyncio.Timeout] = {}
        self._stopping = False

    def stop(self) -> None:
        """End every stream now, as if its time were over."""
        self._stopping = True
        for deadline in list(self._deadlines.values()):
            deadline.reschedule(0)

    async def stream(
        self, request: web.Request, target: Target, options: ListOptions, renderer: Renderer
    ) -> web.StreamResponse:
        """Answer a watch."""
        subscription = self._store.subscribe(
            target.kind,
            resource_version=self._begin(options),
            namespace=target.namespace,
            labels=options.labels,
            fields=options.fields,
            initial_events=bool(options.send_initial_events),
        )
        response = web.StreamResponse(headers={"Content-Type": renderer.content_type, "Cache-Control": "no-cache"})
        response.enable_chunked_encoding()
        async with aclosing(subscription):
            with suppress(ConnectionResetError):  # the client went away
                await response.prepare(request)
                try:
                    with self._limited(options) as deadline:
                        async with deadline:
                            still_known = partial(self._still_known, request)
                            await self._send(subscription, response, renderer, still_known, bookmarks=options.bookmarks)
                except TimeoutError:
                    pass  # its time is over
                except ConnectionResetError:
                    raise
                except Exception as error:  # too late for another response: it is the stream's last line
                    await response.write(watch_line("ERROR", status.encode(status.failure(status.explained(error)))))
                await response.write_eof()
        return response

    def _still_known(self, request: web.Request) -> None:
        """Raises Unauthorized where a request like this one would be refused by now, or be another's."""
        if self._access.identify(request.path, request.headers) != request[CALLER]:
            raise Unauthorized("Unauthorized")

    async def _send(
        self,
        subscription: Subscription,
        response: web.StreamResponse,
        renderer: Renderer,
        still_known: Callable[[], None],
        *,
        bookmarks: bool,
    ) -> None:
        first = True
        sent = 0
        now = asyncio.get_running_loop().time
        asked_at = now()
        while True:
            sent += 1
            if sent % _SENT_AT_ONCE == 0:
                # Neither a backlog nor a connection that takes all of it makes anybody wait by itself.
                await asyncio.sleep(0)
            try:
                async with asyncio.timeout(_BOOKMARK_PERIOD):
                    change = await anext(subscription)
            except StopAsyncIteration:
                return
            except TimeoutError:
                change = Change(EventType.BOOKMARK, None, subscription.reached)
            # A token that was taken back opens nothing: also no stream that it opened before.
            if now() - asked_at >= _STILL_KNOWN_PERIOD:
                still_known()
                asked_at = now()
            if change.record is not None:
                await response.write(renderer.event(change.type, change.record, first=first))
                first = False
            elif bookmarks:
                await response.write(renderer.bookmark(change.version, ends_state=change.initial_events_end))

    def _begin(self, options: ListOptions) -> int | None:
        if options.send_initial_events is False and not options.resource_version:
            return self._store.resource_version  # from now on, without the state
        return options.resource_version

    @contextmanager
    def _limited(self, options: ListOptions) -> Iterator[asyncio.Timeout]:
        seconds = options.timeout or self._chance.uniform(_SHORTEST, _LONGEST)
        deadline = asyncio.timeout(0 if self._stopping else seconds)
        self._deadlines[id(deadline)] = deadline
        try:
            yield deadline
        finally:
            del self._deadlines[id(deadline)]

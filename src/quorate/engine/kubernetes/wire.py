"""One connection to a server, for one request at a time: its answer whole, or line by line as it comes."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from quorate.engine.kubernetes.messages import AnswerReader, Head, Malformed

#: Reading pauses while so many bytes of a stream wait for whoever follows it.
BACKLOG = 1 << 20


class Broken(Exception):
    """The connection broke after the request may have been sent."""


class Silent(Broken):
    """Nothing came for too long."""


class Answer(NamedTuple):
    """What the server said to one request."""

    head: Head
    #: Empty if it is followed by :meth:`Wire.lines`.
    body: bytes


class Wire(asyncio.BufferedProtocol):
    """Made by ``engine.kubernetes.pool``. Whoever stops waiting for an answer must :meth:`abort`."""

    def __init__(self, buffer: memoryview) -> None:
        """``buffer`` is what all connections of an event loop read into: whatever comes is taken from it at once.

        Without one asyncio would make, and cut, a quarter of a megabyte for every record of TLS.
        """
        self._loop = asyncio.get_running_loop()
        self._buffer = buffer
        #: Done once the connection is closed.
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self._transport: asyncio.Transport | None = None
        self._reader: AnswerReader | None = None
        self._pieces: list[bytes] = []
        self._answer: asyncio.Future[Answer] | None = None
        self._failure: Broken | None = None
        # Of a stream.
        self._follows = False
        #: Pieces of a line that has not ended.
        self._rest: list[bytes] = []
        self._ready: list[bytes] = []
        #: How many bytes have come since somebody took lines.
        self._backlog = 0
        self._waiting: asyncio.Future[None] | None = None
        self._paused = False
        self._silence = 0.0
        self._heard_at = 0.0
        self._watchdog: asyncio.TimerHandle | None = None

    @property
    def transport(self) -> asyncio.Transport:
        """What is below; the tunnel's TLS, once there is one."""
        assert self._transport is not None, "not connected"
        return self._transport

    @transport.setter
    def transport(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    @property
    def idle(self) -> bool:
        """Whether another request can be sent."""
        return self._reader is None and self._failure is None and not self.transport.is_closing()

    def ask(self, request: bytes, *, silence: float | None = None, tunnel: bool = False) -> asyncio.Future[Answer]:
        """Send a request; Broken if there is no answer.

        With ``silence`` an acceptance comes without its body, which is then followed by :meth:`lines`, until nothing
        comes for so many seconds.
        """
        self._reader = AnswerReader(tunnel=tunnel)
        self._follows = silence is not None
        self._silence = silence or 0.0
        self._answer = self._loop.create_future()
        self.transport.write(request)
        return self._answer

    async def lines(self) -> list[bytes] | None:
        """The lines that have come since, at least one; None at the end. A last one that was cut off is dropped."""
        while not self._ready:
            if self._failure is not None:
                raise self._failure
            if self._reader is None:
                return None
            if self._paused:
                self._paused = False
                self._heard_at = self._loop.time()
                self.transport.resume_reading()
            self._waiting = self._loop.create_future()
            await self._waiting
        ready, self._ready = self._ready, []
        self._backlog = 0
        return ready

    def abort(self) -> None:
        """Close at once; what is under way has failed."""
        if self._reader is not None and self._failure is None:
            self._fail(Broken("it was closed on this side"))
        else:
            self._close()

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        reader = self._reader
        if reader is None:
            # Nobody has asked anything: it cannot be the answer to what is asked next.
            self._fail(Broken("the server said something that it was not asked"))
            return
        try:
            content = reader.feed(self._buffer[:nbytes])
        except Malformed as error:
            self._fail(Broken(str(error)))
            return
        if reader.head is None:
            return
        if self._follows and reader.head.status < 300:
            self._take_lines(reader.head, content)
        elif content:
            self._pieces.append(content)
        if reader.over:
            self._finish(reader, reader.head)

    def eof_received(self) -> None:
        if self._reader is None:
            self.abort()  # or it would be taken for an open one until asyncio has said its good-byes

    def connection_lost(self, error: Exception | None) -> None:
        reader = self._reader
        if reader is not None and self._failure is None:
            if error is None and reader.head is not None and reader.ends_with_connection:
                self._finish(reader, reader.head)
            else:
                self._fail(Broken(str(error or "the server closed the connection")))
        self._stop_watchdog()
        if not self.closed.done():
            self.closed.set_result(None)

    # Below

    def _finish(self, reader: AnswerReader, head: Head) -> None:
        """The answer is complete."""
        self._reader = None
        body, self._pieces = b"".join(self._pieces), []
        if reader.excess or not head.keeps:
            self.abort()
        self._stop_watchdog()
        self._say(Answer(head, body))
        _release(self._waiting)

    def _take_lines(self, head: Head, content: bytes) -> None:
        self._heard_at = self._loop.time()
        if self._watchdog is None:
            self._watchdog = self._loop.call_later(self._silence, self._check_silence)
            self._say(Answer(head, b""))
        complete, end, rest = content.rpartition(b"\n")
        if not end:
            self._rest.append(rest)
            return
        self._ready += b"".join([*self._rest, complete]).split(b"\n")
        self._rest = [rest]
        _release(self._waiting)
        self._backlog += len(content)
        if not self._paused and self._backlog > BACKLOG:
            self._paused = True
            self.transport.pause_reading()

    def _check_silence(self) -> None:
        """One timer for the whole stream: one for each wait would cost more than the rest of the wait."""
        left = self._heard_at + self._silence - self._loop.time()
        if left > 0 or self._paused:
            self._watchdog = self._loop.call_later(left if left > 0 else self._silence, self._check_silence)
        else:
            self._fail(Silent("nothing came"))

    def _stop_watchdog(self) -> None:
        if self._watchdog is not None:
            self._watchdog.cancel()
            self._watchdog = None

    def _say(self, answer: Answer) -> None:
        # Not kept: an idle connection would hold the last list that came over it.
        asked, self._answer = self._answer, None
        if asked is not None and not asked.done():
            asked.set_result(answer)

    def _fail(self, failure: Broken) -> None:
        self._failure = failure
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(failure)
        _release(self._waiting)
        self._close()

    def _close(self) -> None:
        self._stop_watchdog()
        self.transport.abort()


def _release(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)

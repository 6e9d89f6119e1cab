"""An answer over HTTP/1.1, taken from bytes as they come. No I/O.

What HTTP is, httptools knows (llhttp, the parser of Node.js), and it is strict: what is doubtful is an error. Here is
what its callbacks mean for one answer, and the few things that it leaves to whoever uses it.
"""

from __future__ import annotations

from typing import NamedTuple

from httptools import HttpParserError, HttpResponseParser

#: More bytes than this without content are no head, no line between two chunks, and no trailers.
HEAD_LIMIT = 65536


class Malformed(Exception):
    """What came is no answer."""


class Head(NamedTuple):
    """How an answer begins."""

    status: int
    reason: str
    retry_after: str | None
    #: Whether the connection can be used again afterwards.
    keeps: bool


class AnswerReader:
    """Takes one answer apart. Feed it until it is ``over``."""

    def __init__(self, *, tunnel: bool = False) -> None:
        """``tunnel``: it answers CONNECT, and what follows its head, if it is an acceptance, is not HTTP."""
        #: None until it is complete.
        self.head: Head | None = None
        self.over = False
        #: Whether more has come than belongs to the answer.
        self.excess = False
        self._tunnel = tunnel
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self._reason = b""
        self._retry_after: str | None = None
        #: Whether the answer says itself where it ends.
        self._measured = False
        self._content: list[bytes] = []
        self._since_content = 0

    @property
    def ends_with_connection(self) -> bool:
        """Whether only the end of the connection will tell where the answer ends."""
        return self.head is not None and not self.over and not self._measured

    def feed(self, data: bytes | memoryview) -> bytes:
        """Take in what came; returns what of it is content."""
        if self._tunnel:
            # Byte by byte, because the parser must not see what is not HTTP.
            for at in range(len(data)):
                self._parse(data[at : at + 1])
        else:
            self._parse(data)
        content = b"".join(self._content)
        self._content.clear()
        self._since_content = 0 if content else self._since_content + len(data)
        if self._since_content > HEAD_LIMIT and not self.over:
            raise Malformed(f"no content within {HEAD_LIMIT} bytes")
        return content

    def _parse(self, data: bytes | memoryview) -> None:
        if self._parser is None:
            self.excess = self.excess or len(data) > 0
            return
        try:
            self._parser.feed_data(data)
        except HttpParserError as error:
            if not self.over:
                # What a callback raises is the context of what the parser then raises.
                raise Malformed(str(error.__context__ or error)) from None
            self.excess = True
        if self.over:
            self._parser = None  # they know each other, and would both wait for the garbage collector

    # What httptools calls

    def on_message_begin(self) -> None:
        if self.over:
            raise Malformed("a second answer")
        self._reason, self._retry_after, self._measured = b"", None, False

    def on_status(self, reason: bytes) -> None:
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.head is not None:
            return  # a trailer
        name = name.lower()
        if name == b"content-length":
            self._measured = True
        elif name == b"transfer-encoding":
            if value.strip().lower() != b"chunked":
                raise Malformed(f"unknown transfer encoding {value!r}")
            self._measured = True
        elif name == b"retry-after":
            self._retry_after = value.decode("latin-1").strip()

    def on_headers_complete(self) -> None:
        assert self._parser is not None, "it calls"
        status = self._parser.get_status_code()
        if 100 <= status < 200 and status != 101:
            return  # the answer is still to come
        if status < 200:
            raise Malformed(f"status {status}: the server speaks another protocol")
        self.over = self._tunnel and status < 300
        keeps = self.over or self._parser.should_keep_alive()
        self.head = Head(status, self._reason.decode("latin-1"), self._retry_after, keeps)

    def on_body(self, content: bytes) -> None:
        if self.head is None:
            raise Malformed("content before the answer")
        self._content.append(content)

    def on_message_complete(self) -> None:
        self.over = self.head is not None

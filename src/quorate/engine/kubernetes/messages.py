"""HTTP/1.1 as far as an API server speaks it: an answer, taken from bytes as they come. No I/O.

By hand, because one exchange is nearly all that one decision costs: aiohttp's requests, cookies, redirects, traces and
streams, none of which are used here, were a third of the CPU of "one event, one decision, one status write"
(``docs/decisions/0001-kubernetes-client.md``).
"""

from __future__ import annotations

import re
from typing import NamedTuple

#: Longer than this is no head, and no line between two chunks.
HEAD_LIMIT = 65536

_STATUS_LINE = re.compile(r"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: ([^\r\n]*))?(?=\r\n)")
#: Of all headers, those that somebody here asks for.
_HEADER = re.compile(r"\r\n(Transfer-Encoding|Content-Length|Connection|Retry-After):[ \t]*([^\r\n]*)", re.IGNORECASE)
_CHUNK_LINE = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;.*)?")


class Malformed(Exception):
    """What came is no answer."""


class Head(NamedTuple):
    """How an answer begins."""

    status: int
    reason: str
    #: Those that matter here, by lower-case name; what came twice is joined by commas.
    headers: dict[str, str]
    #: Whether the connection can be used again afterwards.
    keeps: bool


class AnswerReader:
    """Takes one answer apart. Feed it until it is ``over``."""

    def __init__(self, *, tunnel: bool = False) -> None:
        """``tunnel``: it answers CONNECT, and what follows its head, if it is an acceptance, is not HTTP."""
        #: None until it is complete.
        self.head: Head | None = None
        self.over = False
        self._tunnel = tunnel
        self._buffer = bytearray()
        self._chunked = False
        #: How much content is still to come, of this chunk if it comes in chunks; None: until the connection ends.
        self._left: int | None = 0
        #: The line end after the content of a chunk.
        self._gap = b""
        self._last_chunk = False

    @property
    def excess(self) -> bool:
        """Whether more has come than belongs to the answer."""
        return self.over and bool(self._buffer)

    @property
    def ends_with_connection(self) -> bool:
        """Whether only the end of the connection will tell where the answer ends."""
        return self._left is None

    def feed(self, data: bytes | memoryview) -> bytes:
        """Take in what came; returns what of it is content."""
        self._buffer += data
        if self.head is None and not self._take_head():
            return b""
        if self._chunked:
            return self._take_chunks()
        content = bytes(self._buffer if self._left is None else self._buffer[: self._left])
        del self._buffer[: len(content)]
        if self._left is not None:
            self._left -= len(content)
            self.over = self._left == 0
        return content

    def _take_head(self) -> bool:
        buffer = self._buffer
        while True:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(buffer) > HEAD_LIMIT:
                    raise Malformed(f"no end of the headers within {HEAD_LIMIT} bytes")
                return False
            head = _head(buffer[: end + 2].decode("latin-1"))
            del buffer[: end + 4]
            if head.status >= 200:
                break
            if head.status == 101:
                raise Malformed("the server speaks another protocol")
        self._expect_content(head)
        self.head = head
        return True

    def _expect_content(self, head: Head) -> None:
        if head.status in (204, 304) or (self._tunnel and head.status < 300):
            return
        encoding, length = head.headers.get("transfer-encoding"), head.headers.get("content-length")
        if encoding is not None:
            if encoding.lower() != "chunked":
                raise Malformed(f"unknown transfer encoding {encoding!r}")
            self._chunked = True
        elif length is not None:
            if not (length.isascii() and length.isdigit()):
                raise Malformed(f"content length {length!r}")
            self._left = int(length)
        else:
            self._left = None  # and the connection cannot be used again, because it has ended

    def _take_chunks(self) -> bytes:
        buffer, at = self._buffer, 0
        pieces = []
        while not self.over:
            if self._left:
                piece = buffer[at : at + self._left]
                pieces.append(piece)
                at += len(piece)
                self._left -= len(piece)
                if self._left:
                    break
                self._gap = b"\r\n"
            begin = at + len(self._gap)
            end = buffer.find(b"\r\n", begin)
            if end < 0:
                if len(buffer) - at > HEAD_LIMIT:
                    raise Malformed(f"no end of a chunk's line within {HEAD_LIMIT} bytes")
                break
            if buffer[at:begin] != self._gap:
                raise Malformed("a chunk is longer than it says")
            self._take_line(bytes(buffer[begin:end]))
            self._gap = b""
            at = end + 2
        del buffer[:at]
        return b"".join(pieces)

    def _take_line(self, line: bytes) -> None:
        """The line before a chunk says how long it is; after the last, which is empty, come trailers."""
        if self._last_chunk:
            self.over = not line
            return
        match = _CHUNK_LINE.fullmatch(line)
        if match is None:
            raise Malformed(f"{line[:40]!r} is not the length of a chunk")
        self._left = int(match[1], 16)
        self._last_chunk = self._left == 0


def _head(text: str) -> Head:
    match = _STATUS_LINE.match(text)
    if match is None:
        raise Malformed(f"{text[:80]!r} is not how an answer begins")
    minor, status, reason = match.groups("")
    headers: dict[str, str] = {}
    for name, value in _HEADER.findall(text):
        name = name.lower()
        headers[name] = f"{headers[name]}, {value.rstrip()}" if name in headers else value.rstrip()
    keeps = minor == "1" and "close" not in headers.get("connection", "").lower()
    return Head(int(status), reason, headers, keeps)

"""What is kept of a command's output: all of it, unless it is absurdly long; then how it began and how it ended."""

from __future__ import annotations

#: Bytes of the beginning. ``drbdsetup status --json`` of a thousand resources is a few megabytes.
HEAD = 16 * 1024 * 1024
#: Bytes of the end, where commands say what went wrong.
TAIL = 64 * 1024


class Output:
    """Takes any number of bytes in bounded memory."""

    def __init__(self, *, head: int = HEAD, tail: int = TAIL) -> None:
        self._head_limit = head
        self._tail_limit = tail
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        """Take what was read."""
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        if len(data) > room:
            self._tail += data[room:]
            # Cut only now and then: cutting moves what is kept.
            if len(self._tail) > 2 * self._tail_limit:
                self._cut()

    def text(self) -> str:
        """What was kept, as text; what is not UTF-8 shows as a replacement character."""
        self._cut()
        gap = f"\n… {self._left_out} bytes left out …\n" if self._left_out else ""
        return self._head.decode(errors="replace") + gap + self._tail.decode(errors="replace")

    def _cut(self) -> None:
        excess = len(self._tail) - self._tail_limit
        if excess > 0:
            del self._tail[:excess]
            self._left_out += excess


class Lines:
    """Cuts a stream into lines of bounded length: what goes beyond is dropped up to the line's end."""

    def __init__(self, *, longest: int = 64 * 1024) -> None:
        self._longest = longest
        self._rest = bytearray()

    def add(self, data: bytes) -> list[str]:
        """The lines that are complete now."""
        *complete, rest = data.split(b"\n")
        lines = []
        for part in complete:
            self._keep(part)
            lines.append(self._rest.decode(errors="replace"))
            self._rest.clear()
        self._keep(rest)
        return lines

    def last(self) -> str | None:
        """What came after the last line's end, if anything."""
        return self._rest.decode(errors="replace") or None

    def _keep(self, part: bytes) -> None:
        self._rest += part[: self._longest - len(self._rest)]

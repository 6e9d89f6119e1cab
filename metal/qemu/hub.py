"""The wire between the machines: frames go from one to the other through here, unless that direction is cut."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_LONGEST = 1 << 16
_LINGERS = 1 << 20


def mac_of(number: int) -> str:
    """Of a machine's card on this wire."""
    return f"52:54:00:4d:00:{number:02x}"


class Hub:
    """One socket for each machine. A frame for a known card goes there, any other to all."""

    def __init__(self, directory: Path, numbers: Iterable[int]) -> None:
        self._directory = directory
        self._ports: dict[int, socket.socket] = {}
        self._cards = {bytes.fromhex(mac_of(number).replace(":", "")): number for number in numbers}
        #: Directions that are cut, by the machines' numbers.
        self.cut: set[tuple[int, int]] = set()
        #: Frames that went through, and that were dropped, by direction.
        self.passed: dict[tuple[int, int], int] = {}
        self.dropped: dict[tuple[int, int], int] = {}

    def ours(self, number: int) -> Path:
        """Where we listen to a machine."""
        return self._directory / f"{number}.hub"

    def theirs(self, number: int) -> Path:
        """Where a machine listens to us."""
        return self._directory / f"{number}.nic"

    def open(self) -> None:
        """Begin to pass frames on."""
        loop = asyncio.get_running_loop()
        for number in self._cards.values():
            port = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            port.setblocking(False)
            port.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LINGERS)
            port.bind(str(self.ours(number)))
            self._ports[number] = port
            loop.add_reader(port, self._pass_on, number, port)

    def close(self) -> None:
        """Pass nothing on any more."""
        loop = asyncio.get_running_loop()
        for port in self._ports.values():
            loop.remove_reader(port)
            port.close()
        self._ports.clear()

    def _pass_on(self, source: int, port: socket.socket) -> None:
        for _ in range(64):
            try:
                frame = port.recv(_LONGEST)
            except BlockingIOError:
                return
            to = self._cards.get(frame[:6])
            for destination in [to] if to is not None else [each for each in self._ports if each != source]:
                way = (source, destination)
                counted = self.dropped if way in self.cut else self.passed
                counted[way] = counted.get(way, 0) + 1
                if way not in self.cut:
                    with suppress(OSError):  # a machine without power, or one whose queue is full: frames get lost
                        port.sendto(frame, str(self.theirs(destination)))

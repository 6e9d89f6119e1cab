"""A machine that does what a test tells it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from random import Random
from typing import Any

from quorate.agent.machine import CommandHung, Completed
from quorate.agent.node import Node
from quorate.agent.settings import Settings
from quorate.api.meta import NodeName
from quorate.engine.clock import Clock

Answer = Completed | Exception


class ScriptedMachine:
    """Answers commands by their beginning; records what it was asked for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ran: list[str] = []
        self.answers: dict[str, Answer | Callable[[], Answer]] = {}
        #: Commands that take so many seconds.
        self.slow: dict[str, float] = {}
        #: Commands that hang until they are taken from here.
        self.hanging: set[str] = set()
        self.at_once = 0
        self.most_at_once = 0
        self.files: dict[str, bytes] = {}
        self.taken_ports: set[int] = set()
        self.streams: list[asyncio.Queue[str | None]] = []

    async def run(self, *argv: str, silence: float, stdin: object = None) -> Completed:
        said = " ".join(argv)
        self.ran.append(said)
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        try:
            if said in self.hanging:
                await self._clock.sleep(silence)
                raise CommandHung(f"{said}: silent for {silence:g} s", still_there=lambda: said in self.hanging)
            await self._clock.sleep(self._matching(self.slow, said) or 0.0)
            answer = self._matching(self.answers, said) or Completed(0, "")
            if callable(answer):
                answer = answer()
            if isinstance(answer, Exception):
                raise answer
            return answer
        finally:
            self.at_once -= 1

    def _matching(self, table: dict[str, Any], said: str) -> Any:
        return next((value for beginning, value in table.items() if said.startswith(beginning)), None)

    async def lines(self, *argv: str) -> AsyncGenerator[str, None]:
        self.ran.append(" ".join(argv))
        heard: asyncio.Queue[str | None] = asyncio.Queue()
        self.streams.append(heard)
        while (line := await heard.get()) is not None:
            yield line

    async def read_file(self, path: str) -> bytes:
        try:
            return self.files[path]
        except KeyError:
            raise FileNotFoundError(path) from None

    async def write_file(self, path: str, content: bytes) -> None:
        self.files[path] = content

    async def move_file(self, source: str, destination: str) -> None:
        self.files[destination] = self.files.pop(source)

    async def remove_file(self, path: str) -> None:
        self.files.pop(path, None)

    async def list_directory(self, path: str) -> tuple[str, ...]:
        return tuple(sorted(name.removeprefix(f"{path}/") for name in self.files if name.startswith(f"{path}/")))

    async def port_is_free(self, address: str, port: int) -> bool:
        return port not in self.taken_ports


def scripted_node(clock: Clock, *, slots: int = 16) -> tuple[Node, ScriptedMachine]:
    machine = ScriptedMachine(clock)
    node = Node(NodeName("n0"), machine, clock=clock, random=Random(0), settings=Settings(slots=slots))
    return node, machine

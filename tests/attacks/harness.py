"""A case: what is sent, and what it may cost. And the server that it is sent to."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[2]
JSON = "application/json"
YAML = "application/yaml"
MIB = 1024 * 1024
#: Seconds after which a server that does not answer is given up.
PATIENCE = 20.0


@dataclass(frozen=True)
class Cost:
    """What one request may cost: seconds, seconds, bytes, bytes."""

    #: Processor time of the event loop at a stretch: a tenth of a second, and half as much for a machine that is busy.
    stall: float = 0.15
    #: Processor time in all.
    cpu: float = 1.5
    memory: int = 64 * MIB
    #: Beside what was sent, which an answer may repeat once.
    answer: int = 128 * 1024


@dataclass(frozen=True)
class Case:
    """One request. The body is made when it is sent."""

    name: str
    method: str
    path: str
    body: Callable[[], bytes] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: The codes of a right answer; by default it is the sender's fault, or done.
    codes: tuple[int, ...] = (
        200,
        201,
        400,
        401,
        403,
        404,
        405,
        406,
        408,
        409,
        410,
        413,
        414,
        415,
        417,
        422,
        429,
        431,
        504,
    )
    cost: Cost = Cost()


class Served:
    """The server process, and its meter."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self._process = process
        self.address = urlsplit(url)

    def ask(self, command: str) -> dict[str, float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        answer: dict[str, float] = json.loads(self._process.stdout.readline())
        return answer

    def send(self, case: Case) -> tuple[int, int]:
        """The code of the answer; and by how much it is larger, with its headers, than what was sent."""
        body = case.body() if case.body else None
        connection = http.client.HTTPConnection(str(self.address.hostname), self.address.port, timeout=PATIENCE)
        try:
            connection.request(case.method, case.path, body, dict(case.headers))
            answer = connection.getresponse()
            size = len(answer.read()) + sum(len(name) + len(value) + 4 for name, value in answer.getheaders())
            return answer.status, size - len(body or b"")
        finally:
            connection.close()


@contextmanager
def served(data: Path) -> Iterator[Served]:
    command = [sys.executable, "-m", "tests.attacks.served", str(data)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            assert url, "the server did not start"
            yield Served(process, url)
        finally:
            process.kill()


def slowness() -> float:
    """How much slower than the machine that the budgets were made on, which are thrice what it took there."""
    began = time.process_time()
    for _ in range(3):
        json.loads(json.dumps([{"a": number} for number in range(30_000)]))
    return max(1.0, (time.process_time() - began) / 0.15)

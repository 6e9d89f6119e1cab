"""One kubectl command and what it must print: the words in which the script is written."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Step:
    """A command, and what is expected of it.

    In expected lines ``*`` stands for anything, and any number of spaces for any other. ``{dir}`` in a command is the
    directory of the scene's files.
    """

    command: str
    #: Everything on standard output, line by line; None: no matter what.
    prints: str | None = ""
    #: Keeps what is printed under this name: ``{name}`` in later commands and input is replaced by it.
    keeps: str = ""
    #: Lines that must be among it, in this order, when not all of it matters.
    among: str = ""
    #: Lines that must be on standard error, in this order.
    complains: str = ""
    code: int = 0
    stdin: str = ""
    #: The editor of ``kubectl edit``.
    editor: str = ""
    #: Steps taken while this command runs, once it has printed ``first`` lines.
    meanwhile: tuple[Step, ...] = ()
    first: int = 0
    #: It does not end by itself, and is stopped after it has printed all.
    endless: bool = False
    #: Whether it means the same on a real API server.
    real: bool = True


@dataclass(frozen=True)
class Scene:
    """Steps that belong together. Scenes share nothing and may run in any order."""

    name: str
    steps: tuple[Step, ...]
    files: dict[str, str] = field(default_factory=dict)


def matches(expected: str, found: str) -> bool:
    """Whether these are the lines."""
    wanted, lines = _lines(expected), _lines(found)
    return len(wanted) == len(lines) and all(_matches(one, other) for one, other in zip(wanted, lines, strict=True))


def contains(expected: str, found: str) -> bool:
    """Whether these are among the lines, in this order."""
    lines = iter(_lines(found))
    return all(any(_matches(wanted, line) for line in lines) for wanted in _lines(expected))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _matches(wanted: str, line: str) -> bool:
    pattern = r"\s+".join(re.escape(word) for word in wanted.split()).replace(r"\*", ".*?")
    return re.fullmatch(pattern, line) is not None

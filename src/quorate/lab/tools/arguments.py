"""Command lines as the real tools take them: options anywhere, ``--name=value`` or ``--name value``, ``-L32M``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


class UsageError(Exception):
    """A command line that the tool does not take."""


@dataclass
class Arguments:
    """Options by their one canonical name, each with every value it was given, and the rest in order."""

    options: dict[str, list[str]] = field(default_factory=dict)
    rest: list[str] = field(default_factory=list)

    def has(self, name: str) -> bool:
        return name in self.options

    def get(self, name: str, default: str = "") -> str:
        return self.options[name][-1] if name in self.options else default

    def all(self, name: str) -> list[str]:
        return self.options.get(name, [])


def read(words: list[str], *, values: Mapping[str, str], flags: Mapping[str, str]) -> Arguments:
    """Sort the words. ``values`` and ``flags`` give each spelling its canonical name. Raises UsageError."""
    found = Arguments()
    stream = iter(words)
    for word in stream:
        if not word.startswith("-") or word == "-":
            found.rest.append(word)
            continue
        if word == "--":
            found.rest += stream
            break
        name, equals, value = word.partition("=")
        if name in values:
            if not equals:
                value = next(stream, "")
            found.options.setdefault(values[name], []).append(value)
        elif name in flags:
            found.options.setdefault(flags[name], []).append(value if equals else "")
        elif not word.startswith("--") and word[:2] in values:
            found.options.setdefault(values[word[:2]], []).append(word[2:])
        elif not word.startswith("--") and all(f"-{letter}" in flags for letter in word[1:]):
            for letter in word[1:]:
                found.options.setdefault(flags[f"-{letter}"], []).append("")
        else:
            raise UsageError(word)
    return found

"""Words, quoted strings and punctuation of a drbd.conf, each with the line it ends on."""

from __future__ import annotations

import re
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+|\#[^\n]*)|(?P<mark>[{};])|"(?P<quoted>[^"\n]*)"|(?P<word>[^\s{};"\#]+)|(?P<stray>.)""",
    re.VERBOSE,
)


class Token(NamedTuple):
    """A word, a string, a brace or a semicolon."""

    text: str
    line: int
    #: A word or a string, as opposed to a brace or a semicolon.
    is_value: bool

    def is_mark(self, mark: str) -> bool:
        return not self.is_value and self.text == mark


def tokens(text: str) -> list[Token]:
    """All tokens, and one empty mark for the end."""
    found, line = [], 1
    for match in _TOKEN.finditer(text):
        kind, value = match.lastgroup, match.group()
        if kind in ("word", "quoted"):
            found.append(Token(match.group(kind), line, is_value=True))
        elif kind in ("mark", "stray"):
            found.append(Token(value, line, is_value=False))
        line += value.count("\n")
    found.append(Token("", line, is_value=False))
    return found

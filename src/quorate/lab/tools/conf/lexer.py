"""Words, quoted strings and punctuation of a drbd.conf, each with the line it ends on."""

from __future__ import annotations

import re

import msgspec

#: Space and comments before it, and then a word, a string or something else, if the text does not end.
_TOKEN = re.compile(r"""((?:[ \t\r\n]+|\#[^\n]*)*)(?:([^\s{};"\#]+)|"([^"\n]*)"|(.))?""", re.VERBOSE | re.DOTALL)


class Token(msgspec.Struct, frozen=True, gc=False):
    """A word, a string, a brace or a semicolon."""

    text: str
    line: int
    #: A word or a string, as opposed to a brace or a semicolon.
    is_value: bool

    def is_mark(self, mark: str) -> bool:
        return not self.is_value and self.text == mark

    def part(self, text: str) -> Token:
        """A part of a word, where the word is."""
        return Token(text, self.line, self.is_value)


def tokens(text: str) -> list[Token]:
    """All tokens, and one empty mark for the end."""
    found, line = [], 1
    for match in _TOKEN.finditer(text):
        space, word, quoted, mark = match.groups()
        line += space.count("\n")
        if word is not None:
            found.append(Token(word, line, True))
        elif quoted is not None:
            found.append(Token(quoted, line, True))
        elif mark is not None:
            found.append(Token(mark, line, False))
    found.append(Token("", line, is_value=False))
    return found

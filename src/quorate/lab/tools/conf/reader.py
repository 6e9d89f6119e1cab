"""Words of a drbd.conf, one after the other, with drbdadm's own complaints about the wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from quorate.lab.tools.conf.lexer import Token

#: The number that drbdadm's scanner has for a word; a mark's is its character.
_WORD = 281


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that drbdadm refuses. ``line`` counts from one within the text."""

    line: int
    text: str


class Stop(Exception):
    """Nothing sensible can be read after this."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem


def shortened(value: str) -> str:
    """A value as far as drbdadm repeats it."""
    return value if len(value) <= 20 else value[:20] + "..."


def unexpected(token: Token, expected: str) -> Stop:
    """A word that is none of those that may stand here."""
    return Stop(Problem(token.line, f"Parse error: '{expected}' expected,\n\tbut got '{shortened(token.text)}'"))


def unscanned(token: Token, expected: str) -> Stop:
    """A token of the wrong kind: drbdadm adds its scanner's number for it."""
    number = _WORD if token.is_value else ord(token.text) if token.text else 0
    stop = unexpected(token, expected)
    return Stop(replace(stop.problem, text=f"{stop.problem.text} (TK {number})"))


class Reader:
    """Tokens, and the problems found so far."""

    def __init__(self, stream: list[Token]) -> None:
        self.problems: list[Problem] = []
        self._stream = stream
        self._position = 0

    def _next(self) -> Token:
        token = self._stream[self._position]
        self._position = min(self._position + 1, len(self._stream) - 1)
        return token

    def _peek(self) -> Token:
        return self._stream[self._position]

    def _mark(self, mark: str) -> None:
        token = self._next()
        if not token.is_mark(mark):
            raise unscanned(token, mark)

    def _value(self) -> Token:
        token = self._next()
        if not token.is_value:
            raise unscanned(token, "TK_STRING")
        return token

    def _integer(self) -> Token:
        token = self._next()
        if not token.is_value or not token.text.isdecimal():
            raise unscanned(token, "TK_INTEGER")
        return token

    def _in_range(self, token: Token, what: str, low: int, high: int) -> int:
        number = int(token.text)
        if not low <= number <= high:
            text = f"{what} {token.text} => {number} out of range [{low}..{high}]."
            self.problems.append(Problem(token.line, text))
        return number

    def _section(self, entry: Callable[[Token], None], words: str | None = None) -> None:
        """Entries between braces. Without ``words`` the file may end before the last brace, as with the real one."""
        self._mark("{")
        while True:
            token = self._next()
            if token.is_mark("}"):
                return
            if token is self._stream[-1]:
                if words is None:
                    return
                raise unexpected(token, words)
            entry(token)

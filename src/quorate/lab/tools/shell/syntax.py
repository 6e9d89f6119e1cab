"""The grammar of the shell: text into a tree."""

from __future__ import annotations

import re
from dataclasses import dataclass

from quorate.errors import QuorateError


class ShellSyntaxError(QuorateError):
    """A command line that this shell cannot read."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a word: text as it is, or the name of a variable whose value takes its place."""

    text: str
    quoted: bool
    variable: bool = False


@dataclass(frozen=True, slots=True)
class Word:
    """A word before its expansion."""

    pieces: tuple[Piece, ...]

    @property
    def bare(self) -> str | None:
        """The text of a word that is neither quoted nor expanded: only such can be a keyword."""
        if all(not piece.quoted and not piece.variable for piece in self.pieces):
            return "".join(piece.text for piece in self.pieces)
        return None


@dataclass(frozen=True, slots=True)
class Redirection:
    """``2>/dev/null`` and the like."""

    number: int
    operator: str
    place: Word


@dataclass(frozen=True, slots=True)
class Simple:
    """A command with its words."""

    assignments: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]
    redirections: tuple[Redirection, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Commands in braces or parentheses."""

    body: Sequence
    redirections: tuple[Redirection, ...]
    #: In parentheses: its own variables and open files.
    subshell: bool


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands whose output is the next one's input."""

    commands: tuple[Simple | Group, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class AndOr:
    """The first pipeline, and what follows it on success (``&&``) or failure (``||``)."""

    first: Pipeline
    rest: tuple[tuple[str, Pipeline], ...]
    background: bool


@dataclass(frozen=True, slots=True)
class Sequence:
    """Commands one after the other."""

    parts: tuple[AndOr, ...]


_OPERATOR = re.compile(r"&&|\|\||<>|>>|>&|<&|[;&|()<>\n]")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=")
_VARIABLE = re.compile(r"\$(\?|\$|[A-Za-z_]\w*|\{[A-Za-z_]\w*\})")

_Token = str | Word


def parse(text: str) -> Sequence:
    """The tree of a whole command line. Raises ShellSyntaxError."""
    reader = _Reader(_tokens(text))
    sequence = reader.sequence(until=())
    if reader.peek() is not None:
        raise ShellSyntaxError(f"syntax error: unexpected {reader.peek()!r} in {text!r}")
    return sequence


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    position = 0
    while position < len(text):
        if text[position] in " \t":
            position += 1
        elif text[position] == "#":
            position = (text + "\n").index("\n", position)
        elif match := _OPERATOR.match(text, position):
            found.append(match.group())
            position = match.end()
        else:
            word, position = _word(text, position)
            found.append(word)
            if word.bare is not None and word.bare.isdecimal() and text[position : position + 1] in ("<", ">"):
                match = _OPERATOR.match(text, position)
                assert match is not None
                found[-1] = word.bare + match.group()
                position = match.end()
    return found


def _word(text: str, position: int) -> tuple[Word, int]:
    pieces: list[Piece] = []
    while position < len(text) and text[position] not in " \t" and not _OPERATOR.match(text, position):
        character = text[position]
        if character == "'":
            end = _closing(text, "'", position)
            pieces.append(Piece(text[position + 1 : end], quoted=True))
            position = end + 1
        elif character == '"':
            end = _closing(text, '"', position)
            pieces += _expandable(text[position + 1 : end], quoted=True)
            position = end + 1
        elif character == "\\":
            pieces.append(Piece(text[position + 1 : position + 2], quoted=True))
            position += 2
        elif match := _VARIABLE.match(text, position):
            pieces.append(Piece(match.group(1).strip("{}"), quoted=False, variable=True))
            position = match.end()
        elif character == "`" or text.startswith("$(", position):
            raise ShellSyntaxError(f"this shell has no command substitution: {text[position:]!r}")
        else:
            pieces.append(Piece(character, quoted=False))
            position += 1
    return Word(tuple(pieces)), position


def _closing(text: str, quote: str, start: int) -> int:
    end = text.find(quote, start + 1)
    if end < 0:
        raise ShellSyntaxError(f"syntax error: unterminated quoted string {text[start:]!r}")
    return end


def _expandable(text: str, *, quoted: bool) -> list[Piece]:
    pieces, position = [], 0
    for match in _VARIABLE.finditer(text):
        pieces.append(Piece(text[position : match.start()], quoted))
        pieces.append(Piece(match.group(1).strip("{}"), quoted, variable=True))
        position = match.end()
    return [*pieces, Piece(text[position:], quoted)]


class _Reader:
    def __init__(self, stream: list[_Token]) -> None:
        self._stream = stream
        self._position = 0

    def peek(self) -> _Token | None:
        return self._stream[self._position] if self._position < len(self._stream) else None

    def _keyword(self) -> str | None:
        token = self.peek()
        return token.bare if isinstance(token, Word) else None

    def _take(self) -> _Token:
        token = self.peek()
        if token is None:
            raise ShellSyntaxError("syntax error: unexpected end of the command line")
        self._position += 1
        return token

    def sequence(self, until: tuple[str, ...]) -> Sequence:
        parts: list[AndOr] = []
        while (token := self.peek()) is not None and token not in until and self._keyword() not in until:
            if token in (";", "\n"):
                self._take()
                continue
            first = self._pipeline()
            rest: list[tuple[str, Pipeline]] = []
            while (operator := self.peek()) in ("&&", "||"):
                assert isinstance(operator, str)
                self._take()
                rest.append((operator, self._pipeline()))
            background = self.peek() == "&"
            if background:
                self._take()
            parts.append(AndOr(first, tuple(rest), background))
            following = self.peek()
            if not (background or following in (None, ";", "\n") or following in until or self._keyword() in until):
                raise ShellSyntaxError(f"syntax error: unexpected {following!r}")
        return Sequence(tuple(parts))

    def _pipeline(self) -> Pipeline:
        negated = self._keyword() == "!"
        if negated:
            self._take()
        commands = [self._command()]
        while self.peek() == "|":
            self._take()
            commands.append(self._command())
        return Pipeline(tuple(commands), negated)

    def _command(self) -> Simple | Group:
        opening = "(" if self.peek() == "(" else self._keyword()
        if opening not in ("(", "{"):
            return self._simple()
        self._take()
        closing = ")" if opening == "(" else "}"
        body = self.sequence(until=(closing,))
        if self.peek() is None:
            raise ShellSyntaxError(f"syntax error: {closing!r} is missing")
        self._take()
        redirections: list[Redirection] = []
        while (redirection := self._redirection()) is not None:
            redirections.append(redirection)
        return Group(body, tuple(redirections), subshell=opening == "(")

    def _simple(self) -> Simple:
        assignments: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirections: list[Redirection] = []
        while (token := self.peek()) is not None:
            redirection = self._redirection()
            if redirection is not None:
                redirections.append(redirection)
            elif isinstance(token, Word):
                self._take()
                head = token.pieces[0].text if token.pieces and not token.pieces[0].quoted else ""
                name = "".join(
                    piece.text if not piece.quoted and not piece.variable else "\0" for piece in token.pieces
                )
                match = _ASSIGNMENT.match(name) if head and not words else None
                if match:
                    assignments.append((match.group(1), Word(token.pieces[match.end() :])))
                else:
                    words.append(token)
            else:
                break
        if not (assignments or words or redirections):
            raise ShellSyntaxError(f"syntax error: unexpected {self.peek()!r}")
        return Simple(tuple(assignments), tuple(words), tuple(redirections))

    def _redirection(self) -> Redirection | None:
        token = self.peek()
        if not isinstance(token, str):
            return None
        digits = token.rstrip("<>&")
        operator = token[len(digits) :]
        if not operator or operator[0] not in "<>":
            return None
        self._take()
        place = self._take()
        if not isinstance(place, Word):
            raise ShellSyntaxError(f"syntax error: unexpected {place!r}")
        return Redirection(int(digits) if digits else (0 if operator[0] == "<" else 1), operator, place)

"""The grammar of the shell: words and operators into a tree."""

from __future__ import annotations

import re

from quorate.lab.tools.shell.lexer import Token, tokens
from quorate.lab.tools.shell.tree import (
    AndOr,
    Command,
    For,
    Group,
    If,
    Pipeline,
    Redirection,
    Sequence,
    ShellSyntaxError,
    Simple,
    While,
    Word,
)

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=")
_NAME = re.compile(r"[A-Za-z_]\w*")
#: Keywords that end something: a command cannot begin with one.
_CLOSING = frozenset({"then", "elif", "else", "fi", "do", "done", "}", ")"})


def parse(text: str) -> Sequence:
    """The tree of a whole command line. Raises ShellSyntaxError."""
    reader = _Reader(tokens(text))
    sequence = reader.sequence(until=())
    if reader.peek() is not None:
        raise ShellSyntaxError(f"syntax error: unexpected {reader.peek()!r} in {text!r}")
    return sequence


class _Reader:
    def __init__(self, stream: list[Token]) -> None:
        self._stream = stream
        self._position = 0

    def peek(self) -> Token | None:
        return self._stream[self._position] if self._position < len(self._stream) else None

    def _keyword(self) -> str | None:
        token = self.peek()
        return token.bare if isinstance(token, Word) else None

    def _take(self) -> Token:
        token = self.peek()
        if token is None:
            raise ShellSyntaxError("syntax error: unexpected end of the command line")
        self._position += 1
        return token

    def _skip_newlines(self) -> None:
        while self.peek() == "\n":
            self._take()

    # --- lists ---

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
                self._skip_newlines()
                rest.append((operator, self._pipeline()))
            background = self.peek() == "&"
            if background:
                self._take()
            parts.append(AndOr(first, tuple(rest), background))
            following = self.peek()
            if not (background or following in (None, ";", "\n") or following in until or self._keyword() in until):
                raise ShellSyntaxError(f"syntax error: unexpected {following!r}")
        return Sequence(tuple(parts))

    def _body(self, *until: str) -> Sequence:
        """A list that has something in it, and what ends it; the end is not taken."""
        found = self.sequence(until)
        if not found.parts or self.peek() is None:
            raise ShellSyntaxError(f"syntax error: {' or '.join(map(repr, until))} is missing, or nothing is before it")
        return found

    def _pipeline(self) -> Pipeline:
        negated = self._keyword() == "!"
        if negated:
            self._take()
        commands = [self._command()]
        while self.peek() == "|":
            self._take()
            self._skip_newlines()
            commands.append(self._command())
        return Pipeline(tuple(commands), negated)

    # --- commands ---

    def _command(self) -> Command:
        opening = "(" if self.peek() == "(" else self._keyword()
        match opening:
            case "(" | "{":
                self._take()
                body = self._body(")" if opening == "(" else "}")
                self._take()
                return Group(body, self._redirections(), subshell=opening == "(")
            case "for":
                return self._for()
            case "while" | "until":
                self._take()
                condition = self._body("do")
                return While(condition, self._do(), opening == "until", self._redirections())
            case "if":
                return self._if()
        if opening in _CLOSING:
            raise ShellSyntaxError(f"syntax error: unexpected {opening!r}")
        return self._simple()

    def _for(self) -> For:
        self._take()
        name = self._keyword()
        if name is None or not _NAME.fullmatch(name):
            raise ShellSyntaxError(f"syntax error: bad for loop variable {name!r}")
        self._take()
        self._skip_newlines()
        if self._keyword() != "in":
            raise ShellSyntaxError(f"syntax error: 'in' is missing after 'for {name}'")
        self._take()
        words: list[Word] = []
        while isinstance(token := self.peek(), Word):
            self._take()
            words.append(token)
        while self.peek() in (";", "\n"):
            self._take()
        return For(name, tuple(words), self._do(), self._redirections())

    def _do(self) -> Sequence:
        if self._keyword() != "do":
            raise ShellSyntaxError(f"syntax error: 'do' is missing before {self.peek()!r}")
        self._take()
        body = self._body("done")
        self._take()
        return body

    def _if(self) -> If:
        branches: list[tuple[Sequence, Sequence]] = []
        while self._keyword() in ("if", "elif"):
            self._take()
            condition = self._body("then")
            self._take()
            branches.append((condition, self._body("elif", "else", "fi")))
        otherwise = Sequence(())
        if self._keyword() == "else":
            self._take()
            otherwise = self._body("fi")
        self._take()
        return If(tuple(branches), otherwise, self._redirections())

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
                name = "".join(piece.text if piece.bare else "\0" for piece in token.pieces)
                match = _ASSIGNMENT.match(name) if not words else None
                if match:
                    assignments.append((match.group(1), Word(token.pieces[match.end() :])))
                else:
                    words.append(token)
            else:
                break
        if not (assignments or words or redirections):
            raise ShellSyntaxError(f"syntax error: unexpected {self.peek()!r}")
        return Simple(tuple(assignments), tuple(words), tuple(redirections))

    def _redirections(self) -> tuple[Redirection, ...]:
        found: list[Redirection] = []
        while (redirection := self._redirection()) is not None:
            found.append(redirection)
        return tuple(found)

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

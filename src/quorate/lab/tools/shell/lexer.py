"""Text into words and operators."""

from __future__ import annotations

import re
from dataclasses import dataclass

from quorate.lab.tools.shell.tree import Kind, Piece, ShellSyntaxError, Word

Token = str | Word

_OPERATOR = re.compile(r"&&|\|\||<<-|<<|<>|>>|>&|<&|[;&|()<>\n]")
_VARIABLE = re.compile(r"\$(\?|\$|!|[A-Za-z_]\w*|\{[A-Za-z_]\w*\})")
_ESCAPED_IN_QUOTES = '"\\$`'


@dataclass(frozen=True, slots=True)
class _Announced:
    """A here-document whose text follows the line."""

    token: int
    end: str
    literal: bool
    indented: bool


def tokens(text: str) -> list[Token]:
    """All tokens of a command line. Raises ShellSyntaxError."""
    return _Lexer(text).tokens()


class _Lexer:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._found: list[Token] = []
        self._announced: list[_Announced] = []

    def tokens(self) -> list[Token]:
        text = self._text
        while self._at < len(text):
            if text[self._at] in " \t":
                self._at += 1
            elif text.startswith("\\\n", self._at):
                self._at += 2
            elif text[self._at] == "#":
                self._at = (text + "\n").index("\n", self._at)
            elif match := _OPERATOR.match(text, self._at):
                self._operator(match.group())
            else:
                self._word_or_number()
        return self._found

    def _operator(self, operator: str, number: str = "") -> None:
        self._at += len(operator)
        self._found.append(number + operator.rstrip("-"))
        if operator in ("<<", "<<-"):
            self._announce(indented=operator == "<<-")
        elif operator == "\n":
            for announced in self._announced:
                self._found[announced.token] = self._here_document(announced)
            self._announced = []

    def _word_or_number(self) -> None:
        word = self._word()
        match = _OPERATOR.match(self._text, self._at)
        if match and match.group()[0] in "<>" and word.bare is not None and word.bare.isdecimal():
            self._operator(match.group(), word.bare)
        else:
            self._found.append(word)

    # --- here-documents ---

    def _announce(self, *, indented: bool) -> None:
        while self._text[self._at : self._at + 1] in (" ", "\t"):
            self._at += 1
        word = self._word()
        end = "".join(piece.text for piece in word.pieces)
        if not end:
            raise ShellSyntaxError("syntax error: a here-document has no end")
        literal = any(piece.quoted for piece in word.pieces)
        self._announced.append(_Announced(len(self._found), end, literal, indented))
        self._found.append(Word(()))

    def _here_document(self, announced: _Announced) -> Word:
        lines: list[str] = []
        while self._at < len(self._text):
            line, newline, _ = self._text[self._at :].partition("\n")
            self._at += len(line) + len(newline)
            line = line.lstrip("\t") if announced.indented else line
            if line == announced.end:
                break
            lines.append(f"{line}\n")
        body = "".join(lines)
        return Word((Piece(body, quoted=True),) if announced.literal else tuple(_Lexer(body)._quoted(None)))

    # --- words ---

    def _word(self) -> Word:
        pieces: list[Piece] = []
        text = self._text
        while self._at < len(text) and text[self._at] not in " \t" and not _OPERATOR.match(text, self._at):
            character = text[self._at]
            if character == "'":
                end = text.find("'", self._at + 1)
                if end < 0:
                    raise self._unterminated("quoted string")
                pieces.append(Piece(text[self._at + 1 : end], quoted=True))
                self._at = end + 1
            elif character == '"':
                self._at += 1
                pieces += self._quoted('"')
            elif character == "\\":
                pieces.append(Piece(text[self._at + 1 : self._at + 2], quoted=True))
                self._at += 2
            elif (expansion := self._expansion(quoted=False)) is not None:
                pieces.append(expansion)
            else:
                pieces.append(Piece(character, quoted=False))
                self._at += 1
        return Word(tuple(pieces))

    def _quoted(self, until: str | None) -> list[Piece]:
        """Up to a closing quote, or to the end: only ``$``, backquotes and some escapes mean something."""
        pieces: list[Piece] = [Piece("", quoted=True)]
        text = self._text
        while self._at < len(text):
            character = text[self._at]
            if character == until:
                self._at += 1
                return pieces
            if character == "\\" and text[self._at + 1 : self._at + 2] in tuple(_ESCAPED_IN_QUOTES):
                pieces.append(Piece(text[self._at + 1], quoted=True))
                self._at += 2
            elif (expansion := self._expansion(quoted=True)) is not None:
                pieces.append(expansion)
            else:
                pieces.append(Piece(character, quoted=True))
                self._at += 1
        if until is not None:
            raise self._unterminated("quoted string")
        return pieces

    def _expansion(self, *, quoted: bool) -> Piece | None:
        """A variable, ``$(command)``, a command in backquotes or ``$((expression))``, if one is here."""
        text = self._text
        if match := _VARIABLE.match(text, self._at):
            self._at = match.end()
            return Piece(match.group(1).strip("{}"), quoted, Kind.VARIABLE)
        if text.startswith("${", self._at):
            raise ShellSyntaxError(f"syntax error: bad substitution {text[self._at :]!r}")
        if text.startswith("$((", self._at):
            inner = self._enclosed(self._at + 2)
            if not inner.endswith(")"):
                raise self._unterminated("expression")
            return Piece(inner[1:-1], quoted, Kind.ARITHMETIC)
        if text.startswith("$(", self._at):
            return Piece(self._enclosed(self._at + 2), quoted, Kind.COMMAND)
        if text[self._at] == "`":
            end = text.find("`", self._at + 1)
            if end < 0:
                raise self._unterminated("backquotes")
            inner, self._at = text[self._at + 1 : end], end + 1
            return Piece(inner, quoted, Kind.COMMAND)
        return None

    def _enclosed(self, start: int) -> str:
        """The text from ``start`` to the parenthesis that closes it, which is passed."""
        depth, at, quote = 1, start, ""
        while at < len(self._text):
            character = self._text[at]
            if quote:
                quote = "" if character == quote else quote
            elif character in "'\"":
                quote = character
            elif character == "\\":
                at += 1
            else:
                depth += {"(": 1, ")": -1}.get(character, 0)
            at += 1
            if not depth:
                self._at = at
                return self._text[start : at - 1]
        raise self._unterminated("parenthesis")

    def _unterminated(self, what: str) -> ShellSyntaxError:
        return ShellSyntaxError(f"syntax error: unterminated {what} {self._text[self._at :]!r}")

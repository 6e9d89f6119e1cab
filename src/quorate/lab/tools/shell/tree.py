"""What a command line is, once read: commands, and words that are still to be expanded."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from quorate.errors import QuorateError


class ShellSyntaxError(QuorateError):
    """A command line that this shell cannot read."""


class Kind(Enum):
    """What takes the place of a piece of a word."""

    TEXT = "the text itself"
    VARIABLE = "the value of the variable of that name"
    COMMAND = "what the command says"
    ARITHMETIC = "the value of the expression"


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a word."""

    text: str
    quoted: bool
    kind: Kind = Kind.TEXT

    @property
    def bare(self) -> bool:
        """Whether it is text that means what it says, patterns and keywords included."""
        return not self.quoted and self.kind is Kind.TEXT


@dataclass(frozen=True, slots=True)
class Word:
    """A word before its expansion."""

    pieces: tuple[Piece, ...]

    @property
    def bare(self) -> str | None:
        """The text of a word that is neither quoted nor expanded: only such can be a keyword."""
        if all(piece.bare for piece in self.pieces):
            return "".join(piece.text for piece in self.pieces)
        return None


@dataclass(frozen=True, slots=True)
class Redirection:
    """``2>/dev/null`` and the like. The place of a here-document (``<<``) is its text."""

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
class For:
    """``for NAME in WORDS; do BODY; done``."""

    name: str
    words: tuple[Word, ...]
    body: Sequence
    redirections: tuple[Redirection, ...] = ()


@dataclass(frozen=True, slots=True)
class While:
    """``while CONDITION; do BODY; done``, or ``until``."""

    condition: Sequence
    body: Sequence
    until: bool
    redirections: tuple[Redirection, ...] = ()


@dataclass(frozen=True, slots=True)
class If:
    """Conditions with what follows from each, and what is done if none holds."""

    branches: tuple[tuple[Sequence, Sequence], ...]
    otherwise: Sequence
    redirections: tuple[Redirection, ...] = ()


Compound = Group | For | While | If
Command = Simple | Compound


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands whose output is the next one's input."""

    commands: tuple[Command, ...]
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

"""Runs the shell's tree on a host. Every external command is a process of its own, and waits in virtual time."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from dataclasses import dataclass, field

from quorate.lab.tools.process import Data, Descriptor, Nothing, Process, Program, Transcript
from quorate.lab.tools.shell import syntax

COMMAND_NOT_FOUND = 127


@dataclass
class Environment:
    """What a subshell gets a copy of."""

    variables: dict[str, str] = field(default_factory=dict)
    last_exit: int = 0


class _Leave(Exception):
    """``exit`` was called."""

    def __init__(self, exit_code: int) -> None:
        super().__init__()
        self.exit_code = exit_code


def run(process: Process, text: str) -> Program:
    """``sh -c text`` as the program of a process."""
    try:
        tree = syntax.parse(text)
    except syntax.ShellSyntaxError as error:
        process.err(f"sh: {error}\n")
        return 2
    return (yield from _shell(process, tree, Environment()))


def _shell(process: Process, tree: syntax.Sequence, environment: Environment) -> Program:
    try:
        return (yield from _Interpreter(process, environment).sequence(tree))
    except _Leave as leave:
        return leave.exit_code


class _Interpreter:
    def __init__(self, process: Process, environment: Environment) -> None:
        self._process = process
        self._environment = environment

    # --- lists ---

    def sequence(self, tree: syntax.Sequence) -> Program:
        for part in tree.parts:
            if part.background:
                self._in_background(part)
                self._environment.last_exit = 0
            else:
                yield from self._and_or(part)
        return self._environment.last_exit

    def _in_background(self, part: syntax.AndOr) -> None:
        foreground = syntax.Sequence((syntax.AndOr(part.first, part.rest, background=False),))
        child = self._fork({**self._process.descriptors, 0: Nothing()})
        child.start(_shell(child, foreground, self._copy()))

    def _and_or(self, part: syntax.AndOr) -> Program:
        yield from self._pipeline(part.first)
        for operator, pipeline in part.rest:
            if (self._environment.last_exit == 0) == (operator == "&&"):
                yield from self._pipeline(pipeline)
        return self._environment.last_exit

    def _pipeline(self, pipeline: syntax.Pipeline) -> Program:
        descriptors = self._process.descriptors
        for command in pipeline.commands[:-1]:
            piped = Transcript(terminal=False)
            yield from self._forked(command, {**descriptors, 1: piped.channel(1)})
            descriptors = {**descriptors, 0: Data(piped.text(1).encode())}
        last = pipeline.commands[-1]
        if len(pipeline.commands) > 1:
            exit_code = yield from self._forked(last, descriptors)
        else:
            exit_code = yield from self._command(last)
        self._environment.last_exit = int(exit_code == 0) if pipeline.negated else exit_code
        return self._environment.last_exit

    def _forked(self, command: syntax.Simple | syntax.Group, descriptors: dict[int, Descriptor]) -> Program:
        child = self._fork(descriptors)
        child.start(_Interpreter(child, self._copy())._guarded(command))
        yield child.exited()
        return _exit_code(child)

    def _guarded(self, command: syntax.Simple | syntax.Group) -> Program:
        try:
            return (yield from self._command(command))
        except _Leave as leave:
            return leave.exit_code

    # --- commands ---

    def _command(self, command: syntax.Simple | syntax.Group) -> Program:
        if isinstance(command, syntax.Simple):
            return (yield from self._simple(command))
        if command.subshell or command.redirections:
            child = self._fork(dict(self._process.descriptors))
            environment = self._copy() if command.subshell else self._environment
            if not _redirect(child, command.redirections, self._expand_one):
                child.abandon(1)
                return 1
            child.start(_shell(child, command.body, environment))
            yield child.exited()
            return _exit_code(child)
        return (yield from self.sequence(command.body))

    def _simple(self, command: syntax.Simple) -> Program:
        words = [text for word in command.words for text in self._expand(word)]
        for name, value in command.assignments:
            self._environment.variables[name] = self._expand_one(value)
        if not words:
            return 0
        if words[0] == "exec" and len(words) == 1:
            if not _redirect(self._process, command.redirections, self._expand_one):
                raise _Leave(1)  # a special builtin that fails ends the shell
            return 0
        if words[0] == "exit":
            raise _Leave(int(words[1]) if len(words) > 1 else self._environment.last_exit)
        child = self._process.host.fork(words[0].rpartition("/")[2], dict(self._process.descriptors))
        if not _redirect(child, command.redirections, self._expand_one):
            child.abandon(1)
            return 1
        child.start(self._process.host.program(child, words))
        yield child.exited()
        return _exit_code(child)

    def _fork(self, descriptors: dict[int, Descriptor]) -> Process:
        return self._process.host.fork("sh", descriptors)

    def _copy(self) -> Environment:
        return Environment(dict(self._environment.variables), self._environment.last_exit)

    # --- words ---

    def _expand_one(self, word: syntax.Word) -> str:
        return "".join(self._piece(piece) for piece in word.pieces)

    def _expand(self, word: syntax.Word) -> list[str]:
        text = self._expand_one(word)
        if not any(not piece.quoted and not piece.variable and piece.text in "*?[" for piece in word.pieces):
            return [text] if text or any(piece.quoted for piece in word.pieces) else []
        depth = text.count("/")
        paths = self._process.host.paths()
        return sorted(path for path in paths if path.count("/") == depth and fnmatch.fnmatchcase(path, text)) or [text]

    def _piece(self, piece: syntax.Piece) -> str:
        if not piece.variable:
            return piece.text
        if piece.text == "?":
            return str(self._environment.last_exit)
        return str(self._process.pid) if piece.text == "$" else self._environment.variables.get(piece.text, "")


def _exit_code(process: Process) -> int:
    assert process.exit_code is not None, "a wait for a process ends when it has"
    return process.exit_code


def _redirect(
    process: Process, redirections: tuple[syntax.Redirection, ...], expand: Callable[[syntax.Word], str]
) -> bool:
    for redirection in redirections:
        place = expand(redirection.place)
        if redirection.operator in (">&", "<&"):
            process.descriptors[redirection.number] = process.descriptors[int(place)]
            continue
        try:
            process.own(redirection.number, process.host.open(process, place, redirection.operator))
        except OSError as error:
            verb = "create" if redirection.operator.startswith(">") else "open"
            process.err(f"sh: can't {verb} {place}: {error.strerror}\n")
            return False
    return True

"""Runs the shell's tree on a host. Every external command is a process of its own, and waits in virtual time."""

from __future__ import annotations

import errno
import fnmatch
import os
from collections.abc import Generator
from dataclasses import dataclass, field

from quorate.lab.tools.process import Data, Descriptor, Nothing, Process, Program, Transcript, Wait
from quorate.lab.tools.shell import arithmetic, syntax, tree

_FAILED, _MISUSED = 1, 2
#: A loop that goes round so often without an end is one that waits for something that takes time, without waiting.
_MOST_ROUNDS = 10_000


@dataclass
class Environment:
    """What a subshell gets a copy of, save the processes that run in the background: those are its parent's."""

    variables: dict[str, str] = field(default_factory=dict)
    last_exit: int = 0
    background: dict[int, Process] = field(default_factory=dict)
    last_background: int = 0

    def copy(self) -> Environment:
        return Environment(dict(self.variables), self.last_exit, last_background=self.last_background)


class _Leave(Exception):
    """``exit`` was called."""

    def __init__(self, exit_code: int) -> None:
        super().__init__()
        self.exit_code = exit_code


class _Jump(Exception):
    """``break`` or ``continue`` was called."""

    def __init__(self, *, out: bool) -> None:
        super().__init__()
        self.out = out


def run(process: Process, text: str, environment: Environment | None = None) -> Program:
    """``sh -c text`` as the program of a process."""
    try:
        tree_ = syntax.parse(text)
    except tree.ShellSyntaxError as error:
        process.err(f"sh: {error}\n")
        return _MISUSED
    return (yield from _shell(process, tree_, environment or Environment()))


def _shell(process: Process, commands: tree.Sequence, environment: Environment) -> Program:
    interpreter = _Interpreter(process, environment)
    return (yield from interpreter.guarded(interpreter.sequence(commands)))


class _Interpreter:
    def __init__(self, process: Process, environment: Environment) -> None:
        self._process = process
        self._environment = environment
        self._substituted = 0
        """The exit code of the last command whose output took its place."""

    # --- lists ---

    def sequence(self, commands: tree.Sequence) -> Program:
        for part in commands.parts:
            if part.background:
                self._in_background(part)
                self._environment.last_exit = 0
            else:
                yield from self._and_or(part)
        return self._environment.last_exit

    def guarded(self, program: Program) -> Program:
        """A whole shell's work: where ``exit`` ends, and errors that end a shell."""
        try:
            return (yield from program)
        except _Leave as leave:
            return leave.exit_code
        except _Jump:
            return 0
        except tree.ShellSyntaxError as error:
            self._process.err(f"sh: {error}\n")
            return _MISUSED

    def _in_background(self, part: tree.AndOr) -> None:
        foreground = tree.Sequence((tree.AndOr(part.first, part.rest, background=False),))
        child = self._fork({**self._process.descriptors, 0: Nothing()})
        self._environment.background[child.pid] = child
        self._environment.last_background = child.pid
        child.start(_shell(child, foreground, self._environment.copy()))

    def _and_or(self, part: tree.AndOr) -> Program:
        yield from self._pipeline(part.first)
        for operator, pipeline in part.rest:
            if (self._environment.last_exit == 0) == (operator == "&&"):
                yield from self._pipeline(pipeline)
        return self._environment.last_exit

    def _pipeline(self, pipeline: tree.Pipeline) -> Program:
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

    def _forked(self, command: tree.Command, descriptors: dict[int, Descriptor]) -> Program:
        child = self._fork(descriptors)
        interpreter = _Interpreter(child, self._environment.copy())
        child.start(interpreter.guarded(interpreter._command(command)))
        yield child.exited()
        return _exit_code(child)

    # --- commands ---

    def _command(self, command: tree.Command) -> Program:
        if isinstance(command, tree.Simple):
            return (yield from self._simple(command))
        subshell = isinstance(command, tree.Group) and command.subshell
        if not subshell and not command.redirections:
            return (yield from self._compound(command))
        child = self._fork(dict(self._process.descriptors))
        if not (yield from self._redirect(child, command.redirections)):
            child.abandon(_FAILED)
            return _FAILED
        interpreter = _Interpreter(child, self._environment.copy() if subshell else self._environment)
        child.start(interpreter.guarded(interpreter._compound(command)))
        yield child.exited()
        return _exit_code(child)

    def _compound(self, command: tree.Compound) -> Program:
        match command:
            case tree.Group():
                return (yield from self.sequence(command.body))
            case tree.If():
                return (yield from self._if(command))
            case tree.For():
                return (yield from self._for(command))
            case tree.While():
                return (yield from self._while(command))

    def _if(self, command: tree.If) -> Program:
        for condition, body in command.branches:
            if (yield from self.sequence(condition)) == 0:
                return (yield from self.sequence(body))
        self._environment.last_exit = 0
        return (yield from self.sequence(command.otherwise))

    def _for(self, command: tree.For) -> Program:
        values: list[str] = []
        for word in command.words:
            values += yield from self._expand(word)
        exit_code = 0
        for value in values:
            self._environment.variables[command.name] = value
            try:
                exit_code = yield from self.sequence(command.body)
            except _Jump as jump:
                if jump.out:
                    break
        return exit_code

    def _while(self, command: tree.While) -> Program:
        exit_code = 0
        for _ in range(_MOST_ROUNDS):
            if ((yield from self.sequence(command.condition)) == 0) == command.until:
                return exit_code
            try:
                exit_code = yield from self.sequence(command.body)
            except _Jump as jump:
                if jump.out:
                    return 0
        self._process.err(f"sh: a loop went round {_MOST_ROUNDS} times\n")
        raise _Leave(_FAILED)

    def _simple(self, command: tree.Simple) -> Program:
        words: list[str] = []
        self._substituted = 0
        for word in command.words:
            words += yield from self._expand(word)
        for name, value in command.assignments:
            self._environment.variables[name] = yield from self._expand_one(value)
        if not words:
            return self._substituted
        match words[0]:
            case "exec" if len(words) == 1:
                if not (yield from self._redirect(self._process, command.redirections)):
                    raise _Leave(_FAILED)  # a special builtin that fails ends the shell
                return 0
            case "exit":
                raise _Leave(self._number(words[0], words[1]) if len(words) > 1 else self._environment.last_exit)
            case "break" | "continue":
                raise _Jump(out=words[0] == "break")
            case "wait":
                return (yield from self._wait(words[1:]))
        child = self._process.host.fork(words[0].rpartition("/")[2], dict(self._process.descriptors))
        if not (yield from self._redirect(child, command.redirections)):
            child.abandon(_FAILED)
            return _FAILED
        child.start(self._process.host.program(child, words))
        yield child.exited()
        return _exit_code(child)

    def _wait(self, pids: list[str]) -> Program:
        """``wait`` for everything in the background, or for some of it."""
        known = self._environment.background
        numbers = [self._number("wait", pid) for pid in pids]
        exit_code = 0
        for number in numbers or list(known):
            if number not in known:
                exit_code = 127
                continue
            child = known.pop(number)
            yield child.exited()
            exit_code = _exit_code(child) if pids else 0
        return exit_code

    def _number(self, command: str, text: str) -> int:
        if not text.isdecimal():
            self._process.err(f"sh: {command}: Illegal number: {text}\n")
            raise _Leave(_MISUSED)
        return int(text)

    def _fork(self, descriptors: dict[int, Descriptor]) -> Process:
        return self._process.host.fork("sh", descriptors)

    def _redirect(self, process: Process, redirections: tuple[tree.Redirection, ...]) -> Generator[Wait, None, bool]:
        for redirection in redirections:
            place = yield from self._expand_one(redirection.place)
            try:
                _open(process, redirection, place)
            except OSError as error:
                verb = "create" if redirection.operator.startswith(">") else "open"
                what = place if error.errno == errno.EBADF else f"can't {verb} {place}"
                process.err(f"sh: {what}: {error.strerror}\n")
                return False
        return True

    # --- words ---

    def _expand_one(self, word: tree.Word) -> Generator[Wait, None, str]:
        found = ""
        for piece in word.pieces:
            found += yield from self._piece(piece)
        return found

    def _expand(self, word: tree.Word) -> Generator[Wait, None, list[str]]:
        """The words that one becomes: what was put in without quotes is split where spaces are, and patterns match."""
        fields: list[str] = []
        current: str | None = None
        pattern = False
        for piece in word.pieces:
            value = yield from self._piece(piece)
            pattern |= piece.bare and piece.text in "*?["
            if piece.quoted or piece.kind is tree.Kind.TEXT:
                current = (current or "") + value
                continue
            *complete, last = value.split() or [""]
            if value[:1].isspace() and current is not None:
                fields.append(current)
                current = None
            for part in complete:
                fields.append((current or "") + part)
                current = None
            if last:
                current = (current or "") + last
            if value[-1:].isspace() and current is not None:
                fields.append(current)
                current = None
        fields += [] if current is None else [current]
        return [match for text in fields for match in self._matches(text)] if pattern else fields

    def _matches(self, text: str) -> list[str]:
        depth = text.count("/")
        paths = self._process.host.paths()
        return sorted(path for path in paths if path.count("/") == depth and fnmatch.fnmatchcase(path, text)) or [text]

    def _piece(self, piece: tree.Piece) -> Generator[Wait, None, str]:
        match piece.kind:
            case tree.Kind.TEXT:
                return piece.text
            case tree.Kind.VARIABLE:
                return self._variable(piece.text)
            case tree.Kind.ARITHMETIC:
                return str(arithmetic.evaluate(piece.text, self._environment.variables))
            case tree.Kind.COMMAND:
                said = Transcript(terminal=False)
                child = self._fork({**self._process.descriptors, 1: said.channel(1)})
                child.start(run(child, piece.text, self._environment.copy()))
                yield child.exited()
                self._substituted = _exit_code(child)
                return said.text(1).rstrip("\n")

    def _variable(self, name: str) -> str:
        special = {
            "?": self._environment.last_exit,
            "$": self._process.pid,
            "!": self._environment.last_background or "",
        }
        return str(special[name]) if name in special else self._environment.variables.get(name, "")


def _exit_code(process: Process) -> int:
    assert process.exit_code is not None, "a wait for a process ends when it has"
    return process.exit_code


def _open(process: Process, redirection: tree.Redirection, place: str) -> None:
    number, operator = redirection.number, redirection.operator
    if operator == "<<":
        process.descriptors[number] = Data(place.encode())
    elif operator in (">&", "<&"):
        if not place.isdecimal() or int(place) not in process.descriptors:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), place)
        process.descriptors[number] = process.descriptors[int(place)]
    else:
        process.own(number, process.host.open(process, place, operator))

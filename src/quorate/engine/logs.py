"""Log lines: JSON for machines, columns for people.

The message is constant and says what happened; what differs goes into key/values: ``controller``, ``kind``, ``name``,
``reconcile_id``. So a line can be counted, grouped and searched by its message.

To log never fails, whatever is to be shown and wherever it goes: whoever logs is in the middle of something that
matters more, and a full disk or a terminal that is gone must not end it.

Our own, because it is little, and every node's agent pays for what is imported here: the package that did this before
brought rich and its parsers along (docs/decisions/0019-what-an-agent-imports.md).
"""

from __future__ import annotations

import logging
import re
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, TextIO

import msgspec

from quorate.api.secret import Secret
from quorate.engine.clock import Clock, SystemClock

MASK = "***"

_SECRET_NAME = re.compile(r"secret|password|token|authorization|private_?key", re.IGNORECASE)
#: What a person's eye finds its way by: the width of the messages' column, and colours where there are any.
_COLUMN: Final = 32
_COLOURS: Final = {"debug": "\x1b[32m", "info": "\x1b[32m", "warning": "\x1b[33m", "error": "\x1b[31m"}
_BOLD, _FAINT, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"
#: Values that need no quotes in a line for people.
_WORD = re.compile(r"[^\s\"'=]+")


@dataclass(frozen=True, slots=True)
class Configuration:
    """How the lines of this process are written. ``stream`` None: standard error, whatever that is at the time."""

    json: bool = False
    level: int = logging.WARNING
    stream: TextIO | None = None
    clock: Clock = field(default_factory=SystemClock)


_configuration = Configuration()
_bound: ContextVar[Mapping[str, object]] = ContextVar("bound", default=MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Logger:
    """Of a module, with what is in all of its lines."""

    values: Mapping[str, object]

    def bind(self, **values: object) -> Logger:
        """The same, with these in every line."""
        return Logger({**self.values, **values})

    def debug(self, event: str, **values: object) -> None:
        """For whoever follows one decision."""
        self._write("debug", event, values)

    def info(self, event: str, **values: object) -> None:
        """What is worth knowing afterwards."""
        self._write("info", event, values)

    def warning(self, event: str, **values: object) -> None:
        """What should not be so, and is dealt with."""
        self._write("warning", event, values)

    def error(self, event: str, **values: object) -> None:
        """What somebody must look at; with ``exc_info`` an exception's traceback too."""
        self._write("error", event, values)

    def exception(self, event: str, **values: object) -> None:
        """An error, with the traceback of the exception that is being handled."""
        self._write("error", event, {"exc_info": sys.exception(), **values})

    def _write(self, level: str, event: str, values: Mapping[str, object]) -> None:
        now = _configuration
        if logging.getLevelNamesMapping()[level.upper()] < now.level:
            return
        line = {
            "time": now.clock.now().isoformat(timespec="milliseconds"),
            **self.values,
            **_bound.get(),
            **values,
            "event": event,
            "level": level,
        }
        raised = line.pop("exc_info", None)
        if isinstance(raised, BaseException):
            # Without the local variables of its frames: those hold secrets.
            line["exception"] = "".join(traceback.format_exception(raised)).rstrip("\n")
        with suppress(OSError, ValueError, AttributeError):  # it is full, closed, gone, or there is none
            stream: TextIO = now.stream if now.stream is not None else sys.stderr
            text = _rendered(line, json=now.json, colours=stream.isatty())
            # One write: lines of several threads must not run into each other.
            stream.write(f"{text}\n")
            stream.flush()


def get_logger(name: str) -> Logger:
    """The logger of a module."""
    return Logger({"module": name})


def configure(*, json: bool, level: str = "info", stream: TextIO | None = None, clock: Clock | None = None) -> None:
    """Set up logging for the process: ``json`` for machines, otherwise for a person at a terminal."""
    found = logging.getLevelNamesMapping()[level.upper()]
    use(Configuration(json, found, stream, clock if clock is not None else SystemClock()))


def configuration() -> Configuration:
    """How lines are written now; ``use`` takes it back to that."""
    return _configuration


def use(configuration: Configuration) -> None:
    """Write lines like this from now on, those of loggers that exist too."""
    global _configuration
    _configuration = configuration


def bind(**values: object) -> None:
    """Put these into every line that this task logs from now on, and every task that it starts."""
    _bound.set({**_bound.get(), **values})


def mask_secrets(line: Mapping[str, object]) -> dict[str, object]:
    """Hide whatever is named like a secret, or is one, however deep."""
    masked: dict[str, object] = _masked(line)
    return masked


def render_json(line: Mapping[str, object]) -> str:
    """One line of JSON; what JSON does not know is written as its repr."""
    return _encoder.encode({str(key): value for key, value in line.items()}).decode()


def _rendered(line: dict[str, object], *, json: bool, colours: bool) -> str:
    """The line, without its secrets; and without its values where one of them cannot be shown."""
    try:
        shown = mask_secrets(line)
        return render_json(shown) if json else _render_text(shown, colours)
    except Exception as error:
        plain = {key: str(line[key]) for key in ("time", "event", "level")}
        return _rendered({**plain, "not_shown": type(error).__name__}, json=json, colours=colours)


def _render_text(line: dict[str, object], colours: bool) -> str:
    def dressed(text: str, *codes: str) -> str:
        return f"{''.join(codes)}{text}{_PLAIN}" if colours and text else text

    time, level, event = (str(line.pop(key)) for key in ("time", "level", "event"))
    exception = line.pop("exception", "")
    rest = " ".join(f"{dressed(str(key), _FAINT)}={_quoted(value)}" for key, value in sorted(line.items()))
    head = f"{dressed(time, _FAINT)} [{dressed(level, _COLOURS[level], _BOLD)}{' ' * (9 - len(level))}]"
    return f"{head} {dressed(event.ljust(_COLUMN), _BOLD)} {rest}" + (f"\n{exception}" if exception else "")


def _quoted(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if _WORD.fullmatch(text) and text.isprintable() else repr(text) if isinstance(value, str) else text


def _show(value: object) -> str:
    # Not the wire's encoder: that one reveals secrets, which is its task.
    return MASK if isinstance(value, Secret) else repr(value)


_encoder = msgspec.json.Encoder(enc_hook=_show)


def _masked(value: Any) -> Any:
    if isinstance(value, Secret):
        return MASK
    if isinstance(value, Mapping):
        return {
            key: MASK if isinstance(key, str) and _SECRET_NAME.search(key) else _masked(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_masked(inner) for inner in value]
    if isinstance(value, str) and not value.isascii():
        # What was no UTF-8 where we read it (a path, say) is none here either.
        return value.encode(errors="backslashreplace").decode()
    return value

"""Log lines: JSON for machines, columns for people.

The message is constant and says what happened; what differs goes into key/values: ``controller``, ``kind``, ``name``,
``reconcile_id``. So a line can be counted, grouped and searched by its message.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping
from typing import Any, TextIO

import msgspec
import structlog

from quorate.api.secret import Secret
from quorate.engine.clock import Clock, SystemClock

MASK = "***"

_SECRET_NAME = re.compile(r"secret|password|token|authorization|private_?key", re.IGNORECASE)


def get_logger(name: str) -> structlog.typing.FilteringBoundLogger:
    """The logger of a module."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(module=name)
    return logger


def configure(*, json: bool, level: str = "info", stream: TextIO | None = None, clock: Clock | None = None) -> None:
    """Set up logging for the process: ``json`` for machines, otherwise for a person at a terminal."""
    stream = stream if stream is not None else sys.stderr
    clock = clock if clock is not None else SystemClock()

    def stamp(_logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        return {"time": clock.now().isoformat(timespec="milliseconds"), **event}

    # Not the default: with rich installed, that one shows the local variables of every frame, secrets included.
    renderer: Any = structlog.dev.ConsoleRenderer(
        colors=stream.isatty(), timestamp_key="time", exception_formatter=structlog.dev.plain_traceback
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            stamp,
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info if json else _keep,
            mask_secrets,
            render_json if json else renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )


def bind(**values: object) -> None:
    """Put these into every line that this task logs from now on, and every task that it starts."""
    structlog.contextvars.bind_contextvars(**values)


def mask_secrets(_logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Hide whatever is named like a secret, or is one, however deep."""
    masked: structlog.typing.EventDict = _masked(event)
    return masked


def render_json(_logger: object, _method: str, event: structlog.typing.EventDict) -> str:
    """One line of JSON; what JSON does not know is written as its repr."""
    return _encoder.encode({str(key): value for key, value in event.items()}).decode()


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
    return value


def _keep(_logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return event

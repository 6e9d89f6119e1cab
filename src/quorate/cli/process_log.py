"""The log of a command that runs as a process: for people on a terminal, JSON lines for machines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

LEVELS: Final = click.Choice(["debug", "info", "warning", "error"])
FORMATS: Final = click.Choice(["auto", "text", "json"])


def log_options(command: F) -> F:
    """``--log-level`` and ``--log-format``, where a configuration has their defaults."""
    return click.option("--log-level", type=LEVELS)(click.option("--log-format", type=FORMATS)(command))


def begin_log(level: str, format_: str = "auto") -> None:
    """From here on."""
    from quorate.engine import logs

    logs.configure(json=format_ == "json" or (format_ == "auto" and not sys.stderr.isatty()), level=level)

"""Errors as a person at a terminal needs them: one message, no traceback, and an exit code a script can use."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from quorate import errors

#: From the special to the general: the first that fits.
_EXIT_CODES: tuple[tuple[type[errors.QuorateError], int, str], ...] = (
    (errors.ConfigError, 3, "the configuration cannot be used"),
    (errors.StorageLocked, 4, "another process has the data directory open"),
    (errors.StorageDamaged, 5, "the data file is damaged; it was left as it is"),
    (errors.StorageFull, 6, "the disk is full"),
    (errors.CannotListen, 7, "the address or port cannot be listened on"),
    (errors.StoreUnreachable, 8, "no connection to the API server"),
    (errors.AnotherAgent, 9, "another agent works on this node"),
    (errors.StillUnderWay, 10, "not done in the time given; it goes on"),
    (errors.QuorateError, 1, "refused or failed; the message says why"),
)

#: Shown below ``quorate --help``. The \b keeps click from re-wrapping it.
EPILOG = "\b\nExit codes:\n  0  done\n  2  the command line is wrong\n" + "".join(
    f"  {code}  {meaning}\n" for _, code, meaning in sorted(_EXIT_CODES, key=lambda row: row[1])
)


def exit_code(error: errors.QuorateError) -> int:
    """The exit code of an error."""
    return next(code for kind, code, _ in _EXIT_CODES if isinstance(error, kind))


@contextmanager
def reported() -> Iterator[None]:
    """Turn our own errors into a message and an exit code; anything else is a bug and keeps its traceback."""
    try:
        yield
    except (errors.QuorateError, BaseExceptionGroup) as error:
        ours, others = _split(error)
        if others is not None:
            raise
        for one in ours:
            print(f"quorate: {one}", file=sys.stderr)
        sys.exit(exit_code(ours[0]))


def _split(error: BaseException) -> tuple[list[errors.QuorateError], BaseException | None]:
    """Our own errors in a group of them, and what is left: several tasks may fail at once."""
    if isinstance(error, errors.QuorateError):
        return [error], None
    assert isinstance(error, BaseExceptionGroup)
    found, others = error.split(errors.QuorateError)
    leaves = [leaf for one in found.exceptions for leaf in _split(one)[0]] if found is not None else []
    return leaves, others

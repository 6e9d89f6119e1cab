"""What the commands share: where the broker is, how much may be spent, how long, and how answers look."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from quorate.cli.maintenance import wire
from quorate.cli.output import output_option, print_documents, print_table

F = TypeVar("F", bound=Callable[..., Any])

MODES: Final = {
    "max": "MODE_MAX_AVAILABILITY",
    "keep": "MODE_KEEP_AVAILABLE",
    "force": "MODE_FORCE_RESTART",
}
#: Granted, or done.
GOOD_CODES: Final = frozenset({"OK", "ALLOW", "ALLOW_PARTIAL"})

_SECOND: Final = 1_000_000
_UNITS: Final = {"ms": 1_000, "s": _SECOND, "m": 60 * _SECOND, "h": 3600 * _SECOND, "d": 86_400 * _SECOND}
_SPAN: Final = re.compile(r"(\d+)(ms|s|m|h|d)")


class Span(click.ParamType[int]):
    """Such as 90s, 15m, 2h30m; microseconds in the end."""

    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        parts = _SPAN.findall(value)
        if not parts or "".join(number + unit for number, unit in parts) != value:
            self.fail(f"{value!r} is not a span of time such as 90s, 15m or 2h30m", param, ctx)
        return sum(int(number) * _UNITS[unit] for number, unit in parts)


SPAN: Final = Span()


def connected(command: F) -> F:
    """The options of every command that asks the broker; they arrive as ``where``."""
    from functools import wraps

    @wraps(command)
    def with_where(
        *,
        broker: str | None,
        data: str | None,
        token_file: Path | None,
        ca_file: Path | None,
        user: str | None,
        **given: Any,
    ) -> Any:
        from quorate.cli.maintenance.client import Where

        return command(where=Where(broker, data, token_file, ca_file, user), **given)

    options = (
        click.option("--broker", help="The broker's address, such as 127.0.0.1:8490; also QUORATE_BROKER."),
        click.option("--data", help="Or the data directory of a running `quorate up`."),
        click.option("--token-file", type=click.Path(path_type=Path), help="Also QUORATE_BROKER_TOKEN, the token."),
        click.option("--ca-file", type=click.Path(path_type=Path), help="Whom to believe that it is the broker."),
        click.option("--user", help="Who asks; default: whoever is logged in."),
    )
    decorated: Any = with_where
    for option in reversed(options):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


mode_option = click.option(
    "--mode",
    type=click.Choice(tuple(MODES)),
    default="max",
    show_default=True,
    help="max: at most one away in a group; keep: as many as it can do without; force: more, at a cost that is told.",
)
ignore_tenants_option = click.option("--ignore-tenants", is_flag=True, help="Tenants' limits do not count.")


def tenant_policy(ignore_tenants: bool) -> str:
    """As the broker spells it."""
    return "NONE" if ignore_tenants else "DEFAULT"


def actions(
    hosts: Sequence[str], devices: Sequence[str], services: Sequence[str], duration: int | None
) -> tuple[wire.Action, ...]:
    """Whole hosts, some of their services, or devices (of the one host that is named, if they are paths)."""
    if devices and services:
        raise click.UsageError("either --device or --service, not both")
    if devices:
        if len(hosts) > 1:
            raise click.UsageError("devices are of one host: name at most one")
        host = hosts[0] if hosts else ""
        return (wire.Action(type="REPLACE_DEVICES", host=host, devices=tuple(devices), duration=duration),)
    if not hosts:
        raise click.UsageError("name a host, or a device with --device")
    kind = "RESTART_SERVICES" if services else "SHUTDOWN_HOST"
    return tuple(wire.Action(type=kind, host=host, services=tuple(services), duration=duration) for host in hosts)


def moment(microseconds: int) -> str:
    """A moment for people, in UTC."""
    try:
        return f"{datetime.fromtimestamp(microseconds // _SECOND, UTC):%Y-%m-%d %H:%M:%S}Z"
    except (OverflowError, ValueError, OSError):
        return "never"


def now() -> int:
    """In microseconds, as far as this machine knows."""
    return time.time_ns() // 1000


def show(answer: wire.Message, output: str, lines: Callable[[], None]) -> None:
    """The answer as JSON, or by ``lines``; an answer that is a no ends the command with exit code 1."""
    import msgspec

    status: wire.Status = getattr(answer, "status", wire.Status(code="OK"))
    if output == "json":
        print_documents([msgspec.to_builtins(answer)], "json")
    else:
        lines()
        if status.code not in GOOD_CODES:
            click.echo(f"{status.code}: {status.reason}", err=True)
    if status.code not in GOOD_CODES:
        raise SystemExit(1)


def show_refusals(refused: Sequence[wire.Action], *, told: str = "") -> None:
    """Each action that is not granted, why (unless that is ``told`` anyway), and who is in the way."""
    for action in refused:
        issue = action.issue or wire.Issue()
        if not issue.message or not told.endswith(issue.message):
            click.echo(f"{action.subject}: {issue.message}")
        elif issue.blockers:
            click.echo(f"{action.subject}:")
        for blocker in issue.blockers:
            parts = [blocker.object, blocker.lock.lower().replace("_", " "), blocker.id]
            parts += [f"of {blocker.owner}"] * bool(blocker.owner)
            parts += [f"until {moment(blocker.until)}"] * bool(blocker.until)
            click.echo(f"    blocked by {' '.join(part for part in parts if part and part != 'no lock')}")


def show_permissions(permissions: Sequence[wire.Permission]) -> None:
    """A table."""
    rows = [
        (each.id, each.action.type, each.action.subject, moment(each.deadline) if each.deadline else "never")
        for each in permissions
    ]
    if rows:
        print_table(("PERMISSION", "ACTION", "WHAT", "BEGIN BEFORE"), rows)


json_or_text = output_option("text", "json")

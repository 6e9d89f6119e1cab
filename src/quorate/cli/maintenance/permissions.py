"""``permissions``, ``done``, ``extend``, ``give-back``: what was granted, and what becomes of it."""

from __future__ import annotations

import click

from quorate.cli.maintenance import wire
from quorate.cli.maintenance.client import Where, run
from quorate.cli.maintenance.options import (
    GOOD_CODES,
    SPAN,
    connected,
    json_or_text,
    now,
    show,
    show_permissions,
    show_refusals,
)

_ids = click.argument("ids", nargs=-1, required=True, metavar="PERMISSION...")
_dry_run = click.option("--dry-run", is_flag=True, help="Answer, and change nothing.")


@click.command()
@click.argument("ids", nargs=-1, metavar="[PERMISSION]...")
@json_or_text
@connected
def permissions(where: Where, ids: tuple[str, ...], output: str) -> None:
    """List the permissions that you hold, or those that are named."""
    answer = _manage(where, "GET" if ids else "LIST", ids)

    def lines() -> None:
        show_permissions(answer.permissions)
        for each in answer.permissions:
            if each.cost:
                click.echo(f"{each.id} was given by force, at this cost: {each.cost}")
        if not answer.permissions and answer.status.code == "OK":
            click.echo("no permission is in force")

    show(answer, output, lines)


@click.command()
@_ids
@_dry_run
@json_or_text
@connected
def done(where: Where, ids: tuple[str, ...], dry_run: bool, output: str) -> None:
    """Say that permitted work is done: others may go."""
    show(_manage(where, "DONE", ids, dry_run=dry_run), output, lambda: None)


@click.command("give-back")
@_ids
@_dry_run
@json_or_text
@connected
def give_back(where: Where, ids: tuple[str, ...], dry_run: bool, output: str) -> None:
    """Give permissions back. A host that is down keeps its lock until it is up."""
    show(_manage(where, "REJECT", ids, dry_run=dry_run), output, lambda: None)


@click.command()
@_ids
@click.option("--for", "span", type=SPAN, required=True, help="From now; may also be shorter than before.")
@_dry_run
@json_or_text
@connected
def extend(where: Where, ids: tuple[str, ...], span: int, dry_run: bool, output: str) -> None:
    """Change when permissions end."""
    answer = _manage(where, "EXTEND", ids, deadline=now() + span, dry_run=dry_run)

    def lines() -> None:
        if answer.status.code in GOOD_CODES:
            show_permissions(answer.permissions)
        else:
            show_refusals([each.action for each in answer.permissions], told=answer.status.reason)

    show(answer, output, lines)


def _manage(
    where: Where, command: str, ids: tuple[str, ...], *, deadline: int | None = None, dry_run: bool = False
) -> wire.Permissions:
    asked = wire.Command(user=where.who(), command=command, permissions=ids, deadline=deadline, dry_run=dry_run)
    return run(where, lambda client: client.ask("managepermissionrequest", asked, wire.Permissions))

"""``notify``, ``notifications``, ``cancel``: work that is not asked for but told."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from quorate.cli.maintenance import wire
from quorate.cli.maintenance.client import Where, run
from quorate.cli.maintenance.options import SPAN, actions, connected, json_or_text, moment, now, show
from quorate.cli.output import print_table


@click.command()
@click.argument("hosts", nargs=-1)
@click.option("--device", "devices", multiple=True, help="A drive or replica instead.")
@click.option("--at", "at", type=click.DateTime(("%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")), help="UTC; default: now.")
@click.option("--for", "duration", type=SPAN, required=True, help="How long.")
@click.option("--reason", default="", help="For those who ask why.")
@json_or_text
@connected
def notify(
    where: Where,
    hosts: tuple[str, ...],
    devices: tuple[str, ...],
    at: datetime | None,
    duration: int,
    reason: str,
    output: str,
) -> None:
    """Tell the broker of work that will happen: it weighs in what is permitted meanwhile."""
    begins = now() if at is None else int(at.replace(tzinfo=UTC).timestamp()) * 1_000_000
    asked = wire.Announcement(
        user=where.who(), actions=actions(hosts, devices, (), duration), time=begins, reason=reason
    )
    answer = run(where, lambda client: client.ask("notification", asked, wire.Announced))
    show(answer, output, lambda: click.echo(answer.notification_id) if answer.notification_id else None)


@click.command()
@click.argument("notification_id", required=False)
@json_or_text
@connected
def notifications(where: Where, notification_id: str | None, output: str) -> None:
    """List your notifications, or show one."""
    answer = _manage(where, "GET" if notification_id else "LIST", notification_id or "")

    def lines() -> None:
        rows = [
            (each.notification_id, moment(each.time), ", ".join(action.subject for action in each.actions), each.reason)
            for each in answer.notifications
        ]
        if rows:
            print_table(("NOTIFICATION", "BEGINS", "WHAT", "REASON"), rows)
        elif answer.status.code == "OK":
            click.echo("nothing is announced")

    show(answer, output, lines)


@click.command()
@click.argument("notification_id")
@click.option("--dry-run", is_flag=True, help="Answer, and change nothing.")
@json_or_text
@connected
def cancel(where: Where, notification_id: str, dry_run: bool, output: str) -> None:
    """Take a notification back."""
    show(_manage(where, "REJECT", notification_id, dry_run=dry_run), output, lambda: None)


def _manage(where: Where, command: str, notification_id: str, *, dry_run: bool = False) -> wire.Notifications:
    asked = wire.Command(user=where.who(), command=command, notification_id=notification_id, dry_run=dry_run)
    return run(where, lambda client: client.ask("managenotificationrequest", asked, wire.Notifications))

"""``request``, ``check``, ``requests``, ``withdraw``: asking for permission, and about what was asked before."""

from __future__ import annotations

import click

from quorate.cli.maintenance import wire
from quorate.cli.maintenance.client import Client, Where, run
from quorate.cli.maintenance.options import (
    GOOD_CODES,
    MODES,
    SPAN,
    actions,
    connected,
    ignore_tenants_option,
    json_or_text,
    mode_option,
    moment,
    now,
    show,
    show_permissions,
    show_refusals,
    tenant_policy,
)
from quorate.cli.output import print_table


@click.command()
@click.argument("hosts", nargs=-1)
@click.option("--device", "devices", multiple=True, help="A drive or replica instead: pdisk-1-2, a path on the host.")
@click.option("--service", "services", multiple=True, help="Only restart this service of the hosts.")
@click.option("--for", "duration", type=SPAN, help="How long each will be away; default: the broker's.")
@click.option("--partial", is_flag=True, help="Some are better than none.")
@click.option("--schedule", is_flag=True, help="Keep what cannot be granted now, and its place in the queue.")
@click.option("--wait", is_flag=True, help="With --schedule: wait until all is granted.")
@click.option("--priority", type=click.IntRange(-100, 100), default=0, help="Lower goes first.")
@click.option("--reason", default="", help="For those who ask why.")
@click.option("--dry-run", is_flag=True, help="Answer, and change nothing.")
@mode_option
@ignore_tenants_option
@json_or_text
@connected
def request(
    where: Where,
    hosts: tuple[str, ...],
    devices: tuple[str, ...],
    services: tuple[str, ...],
    duration: int | None,
    partial: bool,
    schedule: bool,
    wait: bool,
    priority: int,
    reason: str,
    dry_run: bool,
    mode: str,
    ignore_tenants: bool,
    output: str,
) -> None:
    """Ask whether hosts, services or devices may be taken down now.

    Exit code 0: granted, all or (with --partial) some. 1: not now, or not at all.
    """
    asked = wire.PermissionRequest(
        user=where.who(),
        actions=actions(hosts, devices, services, duration),
        partial_permission_allowed=partial,
        schedule=schedule or wait,
        dry_run=dry_run,
        reason=reason,
        tenant_policy=tenant_policy(ignore_tenants),
        availability_mode=MODES[mode],
        priority=priority,
    )

    async def ask(client: Client) -> wire.PermissionResponse:
        answer = await client.ask("permissionrequest", asked, wire.PermissionResponse)
        return await _until_all(client, asked.user, answer, output) if wait and not dry_run else answer

    _show(run(where, ask), output)


@click.command()
@click.argument("request_id")
@click.option("--mode", type=click.Choice(tuple(MODES)), help="Instead of the request's own.")
@click.option("--wait", is_flag=True, help="Wait until all of it is granted.")
@click.option("--dry-run", is_flag=True, help="Answer, and change nothing.")
@json_or_text
@connected
def check(where: Where, request_id: str, mode: str | None, wait: bool, dry_run: bool, output: str) -> None:
    """Ask for what is left of a stored request."""
    asked = wire.CheckRequest(
        user=where.who(), request_id=request_id, dry_run=dry_run, availability_mode=MODES[mode] if mode else None
    )

    async def ask(client: Client) -> wire.PermissionResponse:
        answer = await client.ask("checkrequest", asked, wire.PermissionResponse)
        return await _until_all(client, asked.user, answer, output) if wait and not dry_run else answer

    _show(run(where, ask), output)


@click.command()
@click.argument("request_id", required=False)
@json_or_text
@connected
def requests(where: Where, request_id: str | None, output: str) -> None:
    """List your stored requests, or show one with what it waits for."""
    command = wire.Command(user=where.who(), command="GET" if request_id else "LIST", request_id=request_id or "")
    answer = run(where, lambda client: client.ask("managerequestrequest", command, wire.Requests))

    def lines() -> None:
        rows = [
            (each.request_id, str(each.position), str(each.priority), str(len(each.actions)), each.reason)
            for each in answer.requests
        ]
        if rows:
            print_table(("REQUEST", "POSITION", "PRIORITY", "LEFT", "REASON"), rows)
        elif answer.status.code == "OK":
            click.echo("no request is stored")
        if request_id:
            for each in answer.requests:
                show_refusals(each.actions)

    show(answer, output, lines)


@click.command()
@click.argument("request_id")
@click.option("--dry-run", is_flag=True, help="Answer, and change nothing.")
@json_or_text
@connected
def withdraw(where: Where, request_id: str, dry_run: bool, output: str) -> None:
    """Withdraw a stored request. What it was granted stays granted."""
    command = wire.Command(user=where.who(), command="REJECT", request_id=request_id, dry_run=dry_run)
    answer = run(where, lambda client: client.ask("managerequestrequest", command, wire.Requests))
    show(answer, output, lambda: None)


async def _until_all(
    client: Client, user: str, answer: wire.PermissionResponse, output: str
) -> wire.PermissionResponse:
    """Ask again whenever the answer may have changed, collecting what is granted, until nothing is left."""
    from quorate.cli.maintenance.waiting import next_time

    granted = list(answer.permissions)
    request_id = answer.request_id
    while request_id and answer.status.code in ("ALLOW_PARTIAL", "DISALLOW_TEMP", "ERROR_TEMP"):
        if output == "text":
            click.echo(f"{request_id}: {len(answer.refused)} left, {answer.status.reason or 'waiting'}", err=True)
        await next_time(client, user, request_id, answer.deadline)
        asked = wire.CheckRequest(user=user, request_id=request_id)
        answer = await client.ask("checkrequest", asked, wire.PermissionResponse)
        granted += answer.permissions
    return wire.PermissionResponse(
        status=answer.status,
        request_id=answer.request_id,
        permissions=tuple(granted),
        deadline=answer.deadline,
        refused=answer.refused,
    )


def _show(answer: wire.PermissionResponse, output: str) -> None:
    def lines() -> None:
        show_permissions(answer.permissions)
        if answer.permissions and answer.status.reason and answer.status.code in GOOD_CODES:
            click.echo(f"note: {answer.status.reason}", err=True)
        show_refusals(answer.refused)
        if answer.request_id:
            click.echo(f"stored as {answer.request_id}; `quorate maintenance check {answer.request_id}` asks again")
        if answer.deadline > now():
            click.echo(f"the answer can change at {moment(answer.deadline)} at the earliest, or when something changes")

    show(answer, output, lines)

"""``request``, ``check``, ``requests``, ``withdraw``: asking for permission, and about what was asked before."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Final

import click
import msgspec

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
from quorate.cli.maintenance.waiting import either, next_time, stopped_by_signals
from quorate.cli.output import print_documents, print_table
from quorate.errors import QuorateError, StoreUnreachable

#: As a shell has it, of a command that was stopped from the keyboard.
INTERRUPTED: Final = 130


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

    Exit code 0: granted, all or (with --partial) some. 1: not now, or not at all. 130: stopped while it waited
    (Ctrl-C): what waits is withdrawn, what was granted is held.
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

    async def ask(client: Client) -> Awaited:
        if not wait or dry_run:
            return Awaited(await client.ask("permissionrequest", asked, wire.PermissionResponse))
        stop = stopped_by_signals("it may be stored all the same: `quorate maintenance requests` shows it")
        answer = await client.ask("permissionrequest", asked, wire.PermissionResponse)
        found = await _until_all(client, asked.user, answer, output, stop)
        if stop.is_set() and found.answer.request_id:
            return await _withdrawn(client, asked.user, found)
        return found

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

    async def ask(client: Client) -> Awaited:
        if not wait or dry_run:
            return Awaited(await client.ask("checkrequest", asked, wire.PermissionResponse))
        stop = stopped_by_signals(f"{request_id} stays stored: {_ends(request_id)} ends it")
        answer = await client.ask("checkrequest", asked, wire.PermissionResponse)
        found = await _until_all(client, asked.user, answer, output, stop)
        if stop.is_set() and found.answer.request_id:
            return replace(found, stays=True)
        return found

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


@dataclass(frozen=True, slots=True)
class Awaited:
    """The last answer, with all that was granted; and what became of a request whose owner stopped waiting."""

    answer: wire.PermissionResponse
    withdrawn: str = ""
    #: It was there before, or cannot be withdrawn now: it keeps its place, and blocks whoever comes later.
    stays: bool = False


async def _until_all(
    client: Client, user: str, answer: wire.PermissionResponse, output: str, stop: asyncio.Event
) -> Awaited:
    """Ask again whenever the answer may have changed, collecting what is granted, until nothing is left or stopped."""
    granted = list(answer.permissions)
    request_id, said = answer.request_id, ""
    while request_id and answer.status.code in ("ALLOW_PARTIAL", "DISALLOW_TEMP", "ERROR_TEMP") and not stop.is_set():
        line = f"{request_id}: {len(answer.refused)} left, {answer.status.reason or 'waiting'}"
        if output == "text" and line != said:
            click.echo(line, err=True)
        said = line
        await either(next_time(client, user, request_id, answer.deadline), stop)
        if stop.is_set():
            break
        asked = wire.CheckRequest(user=user, request_id=request_id)
        try:
            answer = await client.ask("checkrequest", asked, wire.PermissionResponse)
        except StoreUnreachable as error:
            answer = wire.PermissionResponse(status=wire.Status(code="ERROR_TEMP", reason=str(error)))
        granted += answer.permissions
    return Awaited(
        wire.PermissionResponse(
            status=answer.status,
            # Who cannot answer says nothing of it: it is stored as it was.
            request_id=request_id if answer.status.code == "ERROR_TEMP" else answer.request_id,
            permissions=tuple(granted),
            deadline=answer.deadline,
            refused=answer.refused,
        )
    )


async def _withdrawn(client: Client, user: str, found: Awaited) -> Awaited:
    """Nobody waits for the rest any more: it must not stand in others' way."""
    request_id = found.answer.request_id
    command = wire.Command(user=user, command="REJECT", request_id=request_id)
    try:
        answer = await client.ask("managerequestrequest", command, wire.Requests)
    except QuorateError:
        return replace(found, stays=True)
    gone = answer.status.code in ("OK", "WRONG_REQUEST")
    left = msgspec.structs.replace(found.answer, request_id="") if gone else found.answer
    return replace(found, answer=left, withdrawn=request_id if gone else "", stays=not gone)


def _show(found: Awaited, output: str) -> None:
    answer = found.answer
    request_id = answer.request_id
    stopped = bool(found.withdrawn) or found.stays

    def lines() -> None:
        show_permissions(answer.permissions)
        if answer.permissions and answer.status.reason and answer.status.code in GOOD_CODES:
            click.echo(f"note: {answer.status.reason}", err=True)
        if stopped:
            _tell_what_stays(found)
            return
        show_refusals(answer.refused, told=answer.status.reason)
        if request_id:
            click.echo(f"stored as {request_id}; `quorate maintenance check {request_id}` asks again")
        if answer.deadline > now():
            click.echo(f"the answer can change at {moment(answer.deadline)} at the earliest, or when something changes")

    if not stopped:
        show(answer, output, lines)
        return
    if output == "json":
        withdrawn = {"Withdrawn": found.withdrawn} if found.withdrawn else {}
        print_documents([{**msgspec.to_builtins(answer), **withdrawn}], "json")
    else:
        lines()
    raise SystemExit(INTERRUPTED)


def _tell_what_stays(found: Awaited) -> None:
    """To whoever stopped waiting."""
    request_id, held = found.answer.request_id, " ".join(permission.id for permission in found.answer.permissions)
    if found.withdrawn:
        click.echo(f"{found.withdrawn} is withdrawn: nothing of it waits any more", err=True)
    else:
        click.echo(f"{request_id} stays stored, and others wait behind it: {_ends(request_id)} ends it", err=True)
    if held:
        click.echo(f"what was granted is still held: `quorate maintenance done {held}` ends it", err=True)


def _ends(request_id: str) -> str:
    return f"`quorate maintenance withdraw {request_id}`"

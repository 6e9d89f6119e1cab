"""``rolling-restart``: the command around a run: what it does to a host, how it shows, what a signal does."""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quorate.cli.maintenance import wire
from quorate.cli.maintenance.client import Where, connect
from quorate.cli.maintenance.journal import Header, Journal
from quorate.cli.maintenance.options import (
    SPAN,
    connected,
    ignore_tenants_option,
    json_or_text,
    mode_option,
    now,
    tenant_policy,
)
from quorate.errors import ConfigError

if TYPE_CHECKING:
    from quorate.cli.maintenance.rolling import Outcome, Progress

#: The exit code of a command that took too long.
TIMED_OUT = 124


@click.command("rolling-restart")
@click.argument("hosts", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every host of the cluster.")
@click.option("--run", "command", help="What to do with a host: a shell command, {host} stands for its name.")
@click.option("--service", "services", multiple=True, help="Only this service is restarted, not the host.")
@click.option("--for", "duration", type=SPAN, help="How long a host will be away; default: the broker's.")
@click.option("--timeout", type=SPAN, help="A command that takes longer is killed, and its host has failed.")
@click.option("--max-in-flight", type=click.IntRange(0), default=0, help="Hosts at once; 0: as many as are permitted.")
@click.option("--keep-going", is_flag=True, help="Go on with others after a failure.")
@click.option("--journal", type=click.Path(path_type=Path), help="Where to remember how far it is.")
@click.option("--resume", type=click.Path(path_type=Path), help="Go on with the run of this journal.")
@click.option("--take-over", metavar="RUN", help="Go on with what is left of a run that died with its journal.")
@mode_option
@ignore_tenants_option
@json_or_text
@connected
def rolling_restart(
    where: Where,
    hosts: tuple[str, ...],
    everything: bool,
    command: str | None,
    services: tuple[str, ...],
    duration: int | None,
    timeout: int | None,
    max_in_flight: int,
    keep_going: bool,
    journal: Path | None,
    resume: Path | None,
    take_over: str | None,
    mode: str,
    ignore_tenants: bool,
    output: str,
) -> None:
    """Restart hosts, as many at once as the broker permits, until all are done.

    Each host's command must end when the host is back and well: then the broker is told, and others may go. After a
    failure nothing new is begun; the failed host keeps its permission, because it may be down. SIGINT and SIGTERM let
    what runs finish, and withdraw what waits; a second one leaves at once. In all cases --resume goes on. Hosts that
    another run has to do with are refused, with its name.

    -o json prints lines of JSON, one for each event, the last with "event": "over"; what commands print goes to stderr.
    """
    if resume is not None:
        if hosts or everything or command or take_over:
            raise click.UsageError("--resume goes on with the hosts and the command of its journal")
        kept = Journal.resume(resume)
    else:
        if command is None:
            raise click.UsageError("what is to be done with a host? Say it with --run")
        if take_over is not None and (hosts or everything):
            raise click.UsageError("--take-over goes on with the hosts that are left of that run")
        if take_over is None and bool(hosts) == everything:
            raise click.UsageError("name hosts, or --all")
        # Unique on every machine: by its name the broker knows what is ours.
        identity = take_over or f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}-{secrets.token_hex(3)}"
        header = Header(
            run=identity,
            user=where.who(),
            hosts=tuple(dict.fromkeys(hosts)) or asyncio.run(_hosts(where, take_over)),
            command=command,
            services=services,
            mode=mode,
            tenant_policy=tenant_policy(ignore_tenants),
            duration=duration,
        )
        kept = Journal.begin(journal or Path(f"rolling-restart-{identity}.jsonl"), header)
    try:
        outcome = asyncio.run(_run(where, kept, max_in_flight, keep_going, timeout, output))
    finally:
        kept.close()
    _tell(outcome, kept, output)


async def _hosts(where: Where, run: str | None) -> tuple[str, ...]:
    """What the broker still has of a run; or every host of the cluster."""
    async with connect(where) as client:
        if run is None:
            answer = await client.ask("clusterstaterequest", None, wire.ClusterState)
            return tuple(dict.fromkeys(host.name for host in answer.state.hosts))
        command = wire.Command(user=where.who(), command="LIST")
        held = await client.ask("managepermissionrequest", command, wire.Permissions)
        stored = await client.ask("managerequestrequest", command, wire.Requests)
    found = [permission.action.host for permission in held.permissions if permission.run == run]
    found += [action.host for request in stored.requests if request.run == run for action in request.actions]
    if not found:
        raise ConfigError(f"the broker has nothing of a run {run} of {where.who()}: it is over, or was another user's")
    return tuple(dict.fromkeys(found))


async def _run(
    where: Where, journal: Journal, at_once: int, keep_going: bool, timeout: int | None, output: str
) -> Outcome:
    from quorate.cli.maintenance.rolling import Rolling
    from quorate.cli.maintenance.waiting import next_time

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None

    def signalled() -> None:
        if stop.is_set():
            task.cancel()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, signalled)
    async with connect(where) as client:
        with _shown(journal, output) as progress:
            rolling = Rolling(
                journal=journal,
                broker=client,
                work=lambda host: _work(journal.header.command, host, timeout, output),
                next_time=lambda request_id, deadline: next_time(client, journal.header.user, request_id, deadline),
                now=now,
                progress=progress,
                at_once=at_once,
                keep_going=keep_going,
                stop=stop,
            )
            try:
                return await rolling.run()
            except asyncio.CancelledError:
                return rolling.outcome()


async def _work(command: str, host: str, timeout: int | None, output: str) -> int:
    """The command for one host, in a session of its own: a terminal's Ctrl-C is for us, not for it.

    What it prints is not ours: where our output is for a program, it goes to stderr.
    """
    process = await asyncio.create_subprocess_shell(
        command.replace("{host}", shlex.quote(host)),
        env={**os.environ, "QUORATE_HOST": host},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=sys.stderr if output == "json" else None,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(timeout / 1_000_000 if timeout else None):
            return await process.wait()
    except TimeoutError:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        return TIMED_OUT


@contextmanager
def _shown(journal: Journal, output: str) -> Iterator[Progress]:
    from quorate.cli.maintenance.progress import Bar, JsonLines

    if output == "json":
        yield JsonLines()
        return
    header = journal.header
    with Bar(len(header.hosts), sum(journal.finished(host) for host in header.hosts)) as bar:
        yield bar


def _tell(outcome: Outcome, journal: Journal, output: str) -> None:
    if output == "json":
        from quorate.cli.maintenance.progress import JsonLines

        JsonLines().over(
            run=journal.header.run,
            finished=outcome.finished,
            failed=list(outcome.failed),
            left=outcome.left,
            message=outcome.message,
            held=dict(outcome.held),
            running=list(outcome.running),
            withdrawn=outcome.withdrawn,
            stored=outcome.stored,
            journal=str(journal.path),
        )
    elif outcome.complete:
        click.echo(f"all {outcome.finished} hosts are done")
    else:
        _tell_what_is_left(outcome, journal)
    if not outcome.complete:
        raise SystemExit(1)


def _tell_what_is_left(outcome: Outcome, journal: Journal) -> None:
    click.echo(f"{outcome.finished} hosts are done, {outcome.left} are not. {outcome.message}".rstrip(), err=True)
    if outcome.withdrawn:
        click.echo(f"{outcome.withdrawn}, the request for what is left, is withdrawn: it blocks nobody", err=True)
    if outcome.stored:
        ends = f"`quorate maintenance withdraw {outcome.stored} --user {journal.header.user}`"
        click.echo(f"{outcome.stored} stays stored, and others wait behind it: {ends} ends it", err=True)
    for host, permission in outcome.held.items():
        if journal.finished(host):
            why = "is done and keeps its permission, because the broker could not be told"
        elif host in outcome.failed:
            why = "failed and keeps its permission, because it may be down"
        elif host in outcome.running:
            why = "keeps its permission, and its command still runs"
        else:
            why = "keeps its permission, and was not begun"
        well = f"quorate maintenance done {permission} --user {journal.header.user}"
        click.echo(f"{host} {why}: {permission}. When it is well: {well}", err=True)
    click.echo(f"go on with: quorate maintenance rolling-restart --resume {journal.path}", err=True)

"""``rolling-restart``: the command around a run: what it does to a host, how it shows, what a signal does."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
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
    mode: str,
    ignore_tenants: bool,
    output: str,
) -> None:
    """Restart hosts, as many at once as the broker permits, until all are done.

    Each host's command must end when the host is back and well: then the broker is told, and others may go. After a
    failure nothing new is begun; the failed host keeps its permission, because it may be down. SIGINT and SIGTERM let
    what runs finish. In both cases --resume goes on.
    """
    if resume is not None:
        if hosts or everything or command:
            raise click.UsageError("--resume goes on with the hosts and the command of its journal")
        kept = Journal.resume(resume)
    else:
        if command is None:
            raise click.UsageError("what is to be done with a host? Say it with --run")
        if bool(hosts) == everything:
            raise click.UsageError("name hosts, or --all")
        identity = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"
        header = Header(
            run=identity,
            user=where.who(),
            hosts=hosts or asyncio.run(_every_host(where)),
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


async def _every_host(where: Where) -> tuple[str, ...]:
    async with connect(where) as client:
        answer = await client.ask("clusterstaterequest", None, wire.ClusterState)
    return tuple(dict.fromkeys(host.name for host in answer.state.hosts))


async def _run(
    where: Where, journal: Journal, at_once: int, keep_going: bool, timeout: int | None, output: str
) -> Outcome:
    from quorate.cli.maintenance.rolling import Rolling
    from quorate.cli.maintenance.waiting import next_time

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with connect(where) as client:
        with _shown(journal, output) as progress:
            return await Rolling(
                journal=journal,
                broker=client,
                work=lambda host: _work(journal.header.command, host, timeout),
                next_time=lambda request_id, deadline: next_time(client, journal.header.user, request_id, deadline),
                now=now,
                progress=progress,
                at_once=at_once,
                keep_going=keep_going,
                stop=stop,
            ).run()


async def _work(command: str, host: str, timeout: int | None) -> int:
    """The command for one host, in a session of its own: a terminal's Ctrl-C is for us, not for it."""
    process = await asyncio.create_subprocess_shell(
        command.replace("{host}", shlex.quote(host)),
        env={**os.environ, "QUORATE_HOST": host},
        stdin=asyncio.subprocess.DEVNULL,
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
        from quorate.cli.output import print_documents

        print_documents(
            [
                {
                    "finished": outcome.finished,
                    "failed": list(outcome.failed),
                    "left": outcome.left,
                    "message": outcome.message,
                    "journal": str(journal.path),
                }
            ],
            "json",
        )
    elif not outcome.left:
        click.echo(f"all {outcome.finished} hosts are done")
    if not outcome.left:
        return
    click.echo(f"{outcome.finished} hosts are done, {outcome.left} are not. {outcome.message}".rstrip(), err=True)
    for host in outcome.failed:
        click.echo(f"{host} failed and keeps its permission, because it may be down", err=True)
    click.echo(f"go on with: quorate maintenance rolling-restart --resume {journal.path}", err=True)
    raise SystemExit(1)

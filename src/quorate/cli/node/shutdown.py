"""``quorate node shutdown``: what the node's own unit runs when the machine powers off or boots again."""

from __future__ import annotations

import subprocess
import sys

import click


@click.command()
@click.option("--deadline", type=float, default=20.0, show_default=True, help="Seconds for all of it.")
@click.option("--if-stopping", is_flag=True, help="Do nothing unless systemd is shutting this machine down.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--state-dir", hidden=True, default="/var/lib/quorate", help="Of the agent, which must not run.")
def shutdown(deadline: float, if_stopping: bool, dry_run: bool, yes: bool, state_dir: str) -> None:
    """Take all DRBD devices of this machine down in order, without the API.

    A primary whose I/O is suspended is failed first: a machine with dirty pages on such a device never ends by itself.
    Then file systems on DRBD devices are unmounted, primaries made secondary, and every resource is taken down, so that
    its peers see it leave. What does not end in time is left as it is, and told of.

    quorate-shutdown.service runs it once everything that uses volumes has stopped and while the network is still there.
    By hand, it is for a machine that you are about to power off, and asks first: whoever uses a volume there gets
    errors. An agent that runs still brings everything up again within seconds: stop it before.
    """
    import asyncio

    if if_stopping:
        if not _is_stopping():
            click.echo("this machine is not shutting down: its DRBD devices are left alone")
            return
    elif not dry_run:
        _warn_of_agent(state_dir)
        if not yes:
            click.echo("Every DRBD device of this machine is taken away now, also from those that use it.")
            click.confirm("Is this machine about to be powered off?", abort=True)
    if not asyncio.run(_shut_down(deadline, dry_run)):
        sys.exit(1)


async def _shut_down(deadline: float, dry_run: bool) -> bool:
    import json

    from quorate.agent.linux import LinuxMachine
    from quorate.agent.shutdown import plan, shut_down

    machine = LinuxMachine()
    try:
        if not dry_run:
            return await shut_down(machine, lambda line: click.echo(f"quorate: {line}"), deadline=deadline)
        status = await machine.run("drbdsetup", "status", "--json", silence=deadline)
        mountinfo = (await machine.read_file("/proc/self/mountinfo")).decode(errors="surrogateescape")
        for leave in plan(json.loads(status.stdout or "[]"), mountinfo):
            for command in leave.commands:
                click.echo(" ".join(command.argv))
        return True
    finally:
        await machine.close()


def _warn_of_agent(state_dir: str) -> None:
    from pathlib import Path

    from quorate.agent.lock import look

    _, holder = look(Path(state_dir))
    if holder:
        click.echo(
            f"The agent runs (process {holder}), and brings up again what is taken down. Stop it before (systemctl stop"
            " quorate-agent), or power off at once after this.",
            err=True,
        )


def _is_stopping() -> bool:
    """Whether systemd is on its way down; it answers by its exit code and in a word."""
    asked = ["systemctl", "is-system-running"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=5)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.stdout.strip() == "stopping"

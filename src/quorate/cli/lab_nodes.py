"""``quorate lab nodes``: simulated nodes on a real API server."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from quorate.cli.process_log import LEVELS, begin_log


@click.command()
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Default: KUBECONFIG, the pod, ~/.kube/config.")
@click.option("--context", "context_name", help="The kubeconfig's context to use.")
@click.option("--nodes", type=int, default=3, show_default=True, help="How many.")
@click.option("--zones", type=int, default=3, show_default=True, help="How many zones they stand in.")
@click.option("--drives", type=int, default=2, show_default=True, help="How many drives each of them has.")
@click.option("--prefix", default="node", show_default=True, help="How their names begin.")
@click.option(
    "--credentials",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A directory with NODE.crt and NODE.key, or a token in NODE; a node without uses the kubeconfig's.",
)
@click.option("--log-level", type=LEVELS, default="info")
def nodes(
    kubeconfig: Path | None,
    context_name: str | None,
    nodes: int,
    zones: int,
    drives: int,
    prefix: str,
    credentials: Path | None,
    log_level: str,
) -> None:
    """Attach simulated nodes with their agents to an API server.

    Registers core Nodes and a volume group for every drive, then runs the agents until it is stopped. The hardware is
    in memory: when the command ends the nodes are down, and when it starts again their drives are empty.
    """
    import asyncio

    from quorate.lab.layout import Layout

    begin_log(log_level)
    layout = Layout(nodes, zones, drives, prefix)
    asyncio.run(_run(layout, kubeconfig, context_name, credentials))


async def _run(layout: object, kubeconfig: Path | None, context_name: str | None, credentials: Path | None) -> None:
    import asyncio
    import random
    import signal

    from quorate.engine.clock import SystemClock
    from quorate.engine.kubernetes import load_connection
    from quorate.lab.attached import attached
    from quorate.lab.layout import Layout

    assert isinstance(layout, Layout)
    clock = SystemClock()
    connection = load_connection(
        environ=os.environ, clock=clock, kubeconfig=kubeconfig, context=context_name, terminal=sys.stdin.isatty()
    )
    stop = asyncio.Event()
    for signal_ in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signal_, stop.set)
    chance = random.SystemRandom()
    async with attached(layout, connection, clock=clock, random=chance, credentials=credentials) as cluster:
        click.echo(f"{len(cluster.nodes)} simulated nodes are attached to {connection.server}")
        await stop.wait()

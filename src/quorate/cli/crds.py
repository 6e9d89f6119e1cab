"""``quorate crds``: the CustomResourceDefinitions, printed or installed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from quorate.cli.output import output_option, print_documents


@click.group(invoke_without_command=True)
@output_option("yaml", "json")
@click.pass_context
def crds(context: click.Context, output: str) -> None:
    """Print the CustomResourceDefinitions of every kind."""
    if context.invoked_subcommand is not None:
        return
    from quorate.api.crd import all_definitions

    print_documents(all_definitions(), output)


@crds.command()
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Default: KUBECONFIG, the pod, ~/.kube/config.")
@click.option("--context", "context_name", help="The kubeconfig's context to use.")
@click.option("--dry-run", is_flag=True, help="Ask the server, change nothing.")
def apply(kubeconfig: Path | None, context_name: str | None, dry_run: bool) -> None:
    """Install or update the definitions in a cluster; refuses to touch one that is not ours."""
    import asyncio

    asyncio.run(_apply(kubeconfig, context_name, dry_run))


async def _apply(kubeconfig: Path | None, context_name: str | None, dry_run: bool) -> None:
    from quorate.api.crd import all_definitions
    from quorate.cli.install import install
    from quorate.engine.clock import SystemClock
    from quorate.engine.kubernetes import load_connection
    from quorate.engine.kubernetes.transport import Transport

    clock = SystemClock()
    connection = load_connection(
        environ=os.environ, clock=clock, kubeconfig=kubeconfig, context=context_name, terminal=sys.stdin.isatty()
    )
    transport = Transport(connection, clock=clock)
    try:
        outcomes = await install(transport, all_definitions(), clock=clock, dry_run=dry_run)
    finally:
        await transport.close()
    for outcome in outcomes:
        click.echo(f"{outcome.name} {outcome.result}{' (dry run)' if dry_run else ''}")

"""``quorate explain``: why a volume or a replica is as it is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from quorate.cli.output import output_option, print_documents

if TYPE_CHECKING:
    from quorate.explain.listing import Listing

F = TypeVar("F", bound=Callable[..., Any])


def _where(command: F) -> F:
    options = (
        click.option("--data", help="The data directory of a running `quorate up`."),
        click.option("--kubeconfig", type=click.Path(path_type=Path), help="Or the kubeconfig of its API server."),
        click.option("--context", "context_name", help="The kubeconfig's context to use."),
        output_option("text", "json"),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group()
def explain() -> None:
    """Tell why something is as it is.

    Without --data and --kubeconfig it asks the API server of KUBECONFIG, of the pod, or of ~/.kube/config.
    """


@explain.command()
@click.argument("name")
@_where
def volume(name: str, data: str | None, kubeconfig: Path | None, context_name: str | None, output: str) -> None:
    """Tell why each replica of a volume is where it is, what waits for whom, and what if a node went down now."""
    from datetime import UTC, datetime

    from quorate.errors import NotFound
    from quorate.explain.story import tell
    from quorate.explain.text import volume_lines

    story = tell(_listing(data, kubeconfig, context_name), name, datetime.now(UTC))
    if story is None:
        raise NotFound(f"there is no volume {name}, and nothing that is left of one")
    _show(story, volume_lines, output)


@explain.command()
@click.argument("name")
@_where
def replica(name: str, data: str | None, kubeconfig: Path | None, context_name: str | None, output: str) -> None:
    """Tell why a replica is where it is, and what is wrong with it."""
    from quorate.errors import NotFound
    from quorate.explain.story import tell_replica
    from quorate.explain.text import replica_lines

    story = tell_replica(_listing(data, kubeconfig, context_name), name)
    if story is None:
        raise NotFound(f"there is no replica {name}")
    _show(story, replica_lines, output)


def _show(story: Any, lines: Callable[[Any], Any], output: str) -> None:
    if output == "json":
        import msgspec

        print_documents([msgspec.to_builtins(story)], "json")
        return
    for line in lines(story):
        click.echo(line)


def _listing(data: str | None, kubeconfig: Path | None, context_name: str | None) -> Listing:
    import asyncio

    if kubeconfig is None and data is not None:
        from quorate.config import load

        kubeconfig = Path(load(None, os.environ, {"data": data}).config.data).expanduser() / "kubeconfig"
    return asyncio.run(_fetch(kubeconfig, context_name))


async def _fetch(kubeconfig: Path | None, context_name: str | None) -> Listing:
    import random
    import sys

    from quorate.engine.clock import SystemClock
    from quorate.engine.kubernetes import KubernetesStore, load_connection
    from quorate.explain.listing import fetch

    clock = SystemClock()
    connection = load_connection(
        environ=os.environ, clock=clock, kubeconfig=kubeconfig, context=context_name, terminal=sys.stdin.isatty()
    )
    store = KubernetesStore(connection, clock=clock, random=random.SystemRandom())
    try:
        return await fetch(store, clock.now())
    finally:
        await store.close()

"""``quorate explain``: why a volume or a replica is as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from quorate.cli.output import output_option, print_documents
from quorate.cli.reaching import Where, reaching

if TYPE_CHECKING:
    from quorate.explain.listing import Listing


@click.group()
def explain() -> None:
    """Tell why something is as it is.

    Without --data and --kubeconfig it asks the API server of KUBECONFIG, of the pod, or of ~/.kube/config.
    """


@explain.command()
@click.argument("name")
@reaching
@output_option("text", "json")
def volume(where: Where, name: str, output: str) -> None:
    """Tell why each replica of a volume is where it is, what waits for whom, and what if a node went down now."""
    from datetime import UTC, datetime

    from quorate.errors import NotFound
    from quorate.explain.story import tell
    from quorate.explain.text import volume_lines

    story = tell(_listing(where), name, datetime.now(UTC))
    if story is None:
        raise NotFound(f"there is no volume {name}, and nothing that is left of one")
    _show(story, volume_lines, output)


@explain.command()
@click.argument("name")
@reaching
@output_option("text", "json")
def replica(where: Where, name: str, output: str) -> None:
    """Tell why a replica is where it is, and what is wrong with it."""
    from quorate.errors import NotFound
    from quorate.explain.story import tell_replica
    from quorate.explain.text import replica_lines

    story = tell_replica(_listing(where), name)
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


def _listing(where: Where) -> Listing:
    from datetime import UTC, datetime

    from quorate.explain.listing import fetch

    return where.ask(lambda store: fetch(store, datetime.now(UTC)))

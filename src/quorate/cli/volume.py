"""``quorate volume``: what a person has to say about a volume, because nobody else can know it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from quorate.cli.output import output_option, print_documents
from quorate.cli.reaching import Where, reaching

if TYPE_CHECKING:
    from quorate.engine.store import Store


@click.group()
def volume() -> None:
    """Say which side of a volume is kept, where no order of steps is safe without a person's word.

    Without --data and --kubeconfig the API server of KUBECONFIG, of the pod, or of ~/.kube/config is asked.
    """


@volume.command()
@click.argument("name")
@click.argument("node")
@click.option("--accept-data-loss", is_flag=True, help="Do it: what only the other copy has is lost.")
@output_option("text", "json")
@reaching
def keep(where: Where, name: str, node: str, accept_data_loss: bool, output: str) -> None:
    """Keep the copy of a volume on NODE, and give up the one that stands in its way.

    For two copies that do not see one another (Divided), and for the last copy with a vote that has lost its disk or
    its node when another one is up to date. The other copy goes down before anything changes, or must be off already;
    its data are discarded, and a new one is made.
    """
    found = where.ask(lambda store: keep_copy(store, name, node, accept_data_loss))
    if output == "json":
        print_documents([found], "json")
    else:
        click.echo(found["message"])
    if not accept_data_loss:
        raise SystemExit(1)


async def keep_copy(store: Store, name: str, node: str, accepted: bool) -> dict[str, Any]:
    """Look at which copy has to be given up, and say so to the volume if that is accepted."""
    from datetime import UTC, datetime

    from quorate.api.annotation_keys import ACCEPT_DATA_LOSS, FORCE_REMOVE
    from quorate.api.meta import NodeName
    from quorate.api.storage import ReplicatedVolume
    from quorate.errors import NotFound, QuorateError
    from quorate.explain.listing import fetch
    from quorate.volumes.observe import observe
    from quorate.volumes.transitions.proposals import in_favour_of
    from quorate.volumes.waits import Wait

    view = observe(await fetch(store, datetime.now(UTC)), name)
    if view is None or view.rv is None:
        raise NotFound(f"there is no volume {name}")
    lost = in_favour_of(view, NodeName(node))
    if isinstance(lost, Wait):
        raise QuorateError(lost.message)
    users = [lost.node_name] if lost.attached else []
    told = f"the copy on {node} is kept, and {lost.name} on {lost.node_name} is given up"
    if not accepted:
        told = f"{told}: what only that one has is lost. Say so with --accept-data-loss"
    elif users:
        told = f"{told} once it is detached there"
    if accepted:
        said = {FORCE_REMOVE: lost.name, ACCEPT_DATA_LOSS: "true"}
        await store.patch(ReplicatedVolume, name, patch={"metadata": {"annotations": said}})
    return {"volume": name, "kept": node, "givenUp": lost.name, "accepted": accepted, "message": told}

"""``quorate orphan``: what is left on nodes and belongs to no object, and its removal, which only a person decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from quorate.cli.output import output_option, print_documents, print_table
from quorate.cli.reaching import Where, reaching

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quorate.api.longhorn import Node
    from quorate.api.longhorn.node import Orphan
    from quorate.engine.store import Store

#: Seconds between two looks while a removal is followed.
INTERVAL = 1.0


@click.group()
def orphan() -> None:
    """Show what is left on nodes without an object, and remove it.

    An orphan is a logical volume or a DRBD resource of Quorate's that belongs to no object: its drive was out while its
    replica left, its node's object was deleted, or the store was restored from an older copy. It is never removed by
    itself, and no volume of its name is formed while it holds data.
    Without --data and --kubeconfig the API server of KUBECONFIG, of the pod, or of ~/.kube/config is asked.
    """


@orphan.command(name="list")
@reaching
@output_option("table", "json", "yaml")
def list_(where: Where, output: str) -> None:
    """List the orphans of the cluster."""
    from quorate.api.codec import to_builtins

    found = [(node.name, each) for node in where.ask(_nodes) for each in node.status.orphans]
    if output != "table":
        print_documents([[{"node": node, **to_builtins(each)} for node, each in found]], output)
        return
    print_table(["NODE", "NAME", "TYPE", "VOLUME", "SIZE", "DATA", "MESSAGE"], [_row(*each) for each in found])


@orphan.command()
@click.argument("name", metavar="NODE/NAME")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until it is no orphan any more.")
@click.option("--timeout", type=float, default=60.0, show_default=True, help="Seconds to wait at most.")
@reaching
def remove(where: Where, name: str, yes: bool, wait: bool, timeout: float) -> None:
    """Remove an orphan, with all that is on it: node-1/vg0/replica-web-0-1a2b3c4d, or node-1/web for a resource.

    What is on a logical volume cannot be brought back. The node's agent removes it, unless it is in use or an object
    of it is there by then.
    """
    from quorate.errors import QuorateError

    node, found, consequence = where.ask(lambda store: _found(store, name))
    click.echo(consequence)
    if not yes:
        click.confirm(f"Remove {node.name}/{found.name}?", abort=True)
    left = where.ask(lambda store: _removed(store, node.name, found, timeout if wait else None))
    if left is None:
        click.echo(f"{node.name}/{found.name} is no orphan any more." if wait else f"{node.name} has been told.")
        return
    why = left.message or "its agent has not done it yet"
    raise QuorateError(
        f"{node.name}/{found.name} is still there after {timeout:g} s: {why}. It is removed as soon as that is over;"
        f" to take it back: kubectl -n quorate-system annotate nodes.longhorn.io {node.name} quorate.io/remove-orphans-"
    )


async def _nodes(store: Store) -> tuple[Node, ...]:
    from quorate.api.longhorn import Node
    from quorate.api.names import NAMESPACE

    return tuple(sorted((await store.list(Node, namespace=NAMESPACE)).items, key=lambda node: node.name))


async def _found(store: Store, name: str) -> tuple[Node, Orphan, str]:
    """The orphan of that name, and what its removal means. Refused if any object claims it, whatever its label."""
    from quorate.api.names import owner_of_logical_volume
    from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup, ReplicatedVolume, ReplicatedVolumeReplica
    from quorate.api.storage.drbd import ReplicaType
    from quorate.errors import NotFound, QuorateError

    node_name, _, wanted = name.partition("/")
    nodes = [node for node in await _nodes(store) if node.name == node_name]
    found = [each for node in nodes for each in node.status.orphans if wanted in (each.name, each.id)]
    if not found:
        raise NotFound(f"there is no orphan {name}: quorate orphan list has all that are known")
    replicas = [
        each
        for each in (await store.list(ReplicatedVolumeReplica)).items
        if found[0].volume_name and each.spec.replicated_volume_name == found[0].volume_name
    ]
    groups = {each.name: each.spec for each in (await store.list(LVMVolumeGroup)).items}
    pieces = (await store.list(LVMLogicalVolume)).items
    claims = [
        f"LVMLogicalVolume {each.name}"
        for each in pieces
        if (group := groups.get(each.spec.lvm_volume_group_name)) is not None
        and group.local.node_name == node_name
        and f"{group.actual_vg_name_on_the_node}/{each.spec.actual_lv_name_on_the_node}" == found[0].name
    ]
    if "/" not in found[0].name:
        claims += [f"ReplicatedVolumeReplica {each.name}" for each in replicas if each.spec.node_name == node_name]
    if claims:
        raise QuorateError(f"{name} is not removed: {', '.join(claims)} is its object. See its label quorate.io/node")
    copies = [each for each in replicas if each.spec.type is ReplicaType.DISKFUL]
    owners = {owner_of_logical_volume(each.name) for each in pieces}
    lacking = [each.name for each in copies if each.spec.node_name == node_name and each.name not in owners]
    if lacking and found[0].holds_data:
        raise QuorateError(
            f"{name} is not removed: it may be the disk of {', '.join(lacking)}, which has a disk on {node_name} and no"
            f" LVMLogicalVolume. Bring that object back, or delete the replica first if its volume has another copy"
        )
    exists = any(each.name == found[0].volume_name for each in (await store.list(ReplicatedVolume)).items)
    elsewhere = [each.name for each in copies if each.spec.node_name != node_name]
    return nodes[0], found[0], _consequence(name, found[0], exists, bool(replicas), elsewhere)


def _consequence(name: str, found: Orphan, exists: bool, is_formed: bool, copies: Iterable[str]) -> str:
    """What is lost, for whoever is to decide. ``copies``: on other nodes; what is on this one may be this very one."""
    others = ", ".join(sorted(copies))
    if "/" not in found.name:
        return f"{name}: the DRBD resource is taken down. What is on its disk stays, as an orphan of its own."
    if not found.holds_data:
        return f"{name}: {_size(found)}. DRBD has never had it: it holds no data of a volume."
    if not found.volume_name:
        return f"{name}: {_size(found)} of a volume that cannot be told. WHAT IS ON IT IS LOST FOR GOOD."
    if not exists:
        return (
            f"{name}: {_size(found)} of volume {found.volume_name}, which does not exist. It may be the last copy of"
            " its data. WHAT IS ON IT IS LOST FOR GOOD."
        )
    if others:
        return f"{name}: an old copy of volume {found.volume_name}, which lives on in {others}. It is lost for good."
    if is_formed:
        return (
            f"{name}: {_size(found)} of volume {found.volume_name}, which has no copy on another node. It may be the"
            " last of its data. WHAT IS ON IT IS LOST FOR GOOD."
        )
    return (
        f"{name}: {_size(found)} of an earlier volume {found.volume_name}; the volume of that name has no copies, and"
        " is formed EMPTY once nothing is left of the earlier one. WHAT IS ON IT IS LOST FOR GOOD."
    )


async def _removed(store: Store, node: str, found: Orphan, patience: float | None) -> Orphan | None:
    """Say so, beside what was said before, and wait; returns what is left of it."""
    import asyncio
    import time

    from quorate.api.annotation_keys import REMOVE_ORPHANS
    from quorate.api.longhorn import Node
    from quorate.api.names import NAMESPACE
    from quorate.errors import Conflict

    while True:
        known = (await store.get(Node, node, NAMESPACE)).metadata
        said = [word for word in known.annotations.get(REMOVE_ORPHANS, "").split(",") if word]
        asked = {REMOVE_ORPHANS: ",".join(dict.fromkeys([*said, found.id]))}
        patch = {"metadata": {"annotations": asked}}
        try:
            # With the version: of two who ask at the same time neither may overwrite the other's word.
            await store.patch(Node, node, NAMESPACE, patch=patch, resource_version=known.resource_version)
        except Conflict:
            continue
        break
    if patience is None:
        return None
    end = time.monotonic() + patience
    while True:
        orphans = (await store.get(Node, node, NAMESPACE)).status.orphans
        left = next((each for each in orphans if each.id == found.id), None)
        if left is None or time.monotonic() > end:
            return left
        await asyncio.sleep(INTERVAL)


def _row(node: str, each: Orphan) -> list[str]:
    data = "yes" if each.holds_data else "no"
    return [node, each.name, str(each.type), each.volume_name, _size(each), data, each.message[:100]]


def _size(each: Orphan) -> str:
    return f"{each.size / (1 << 30):.1f} GiB"

"""From the model to a problem of numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from quorate.api.maintenance.action import AvailabilityMode, TenantPolicy
from quorate.api.maintenance.broker_config import Limits
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.model.counters import NodeCounter
from quorate.maintenance.nouns import NodeInfo
from quorate.maintenance.planner.problem import UNLIMITED, Problem
from quorate.maintenance.rules.limits import allowed_nodes


def problem(model: ClusterModel, hosts: Sequence[str], mode: AvailabilityMode, policy: TenantPolicy) -> Problem:
    """What stands between these hosts, each of which might go alone. A grant takes one part of a group, in any mode."""
    index = {node.id: number for number, host in enumerate(hosts) for node in model.nodes_of(host)}
    nodes = [model.nodes_of(host) for host in hosts]
    most = max(map(len, nodes), default=1)
    tenants = tuple(tuple({node.tenant for node in of_host} - {""}) for of_host in nodes)
    limited = policy is TenantPolicy.DEFAULT
    return Problem(
        len(hosts),
        _groups(model, index),
        at_once=_room(model.settings.cluster_limits, model.cluster, most),
        tenants=tenants if limited and any(tenants) else (),
        of_tenant_at_once={
            tenant: _room(model.settings.tenant_limits, counter, most)
            for tenant in {each for of_host in tenants for each in of_host}
            if limited and (counter := model.counter_of(tenant)) is not None
        },
        rings=_rings(model, nodes),
        rings_at_once=_rings_at_once(model, mode),
        partitions=_partitions(model, nodes),
    )


def _groups(model: ClusterModel, index: dict[int, int]) -> tuple[tuple[int, ...], ...]:
    """Each group's hosts, where there are two or more; equal ones once."""
    found: dict[tuple[int, ...], None] = {}
    for group in model.groups():
        hosts = tuple(sorted({index[part.node] for part in group.vdisks if part.node in index}))
        if len(hosts) > 1:
            found[hosts] = None
    return tuple(found)


def _room(limits: Limits, counter: NodeCounter, most: int) -> int:
    """How many hosts more may go; a host counts as the largest does."""
    allowed = allowed_nodes(limits, counter.size)
    if allowed is None:
        return UNLIMITED
    away = sum(len(nodes) for _, nodes in counter.standings())
    return max((allowed - away) // most, 1)


def _rings(model: ClusterModel, nodes: Sequence[Sequence[NodeInfo]]) -> tuple[frozenset[int], ...]:
    if model.rings is None:
        return ()
    of_node: dict[int, set[int]] = {}
    for number, ring in enumerate(model.rings.rings):
        if not ring.disabled:
            for node in ring.nodes:
                of_node.setdefault(node, set()).add(number)
    return tuple(frozenset().union(*(of_node.get(node.id, ()) for node in of_host)) for of_host in nodes)


def _rings_at_once(model: ClusterModel, mode: AvailabilityMode) -> int:
    if model.rings is None or mode is AvailabilityMode.FORCE_RESTART:
        return UNLIMITED
    if mode is AvailabilityMode.MAX_AVAILABILITY:
        return 1
    disabled = sum(ring.disabled for ring in model.rings.rings)
    return max((model.rings.to_select - 1) // 2 - disabled, 1)


def _partitions(model: ClusterModel, nodes: Sequence[Sequence[NodeInfo]]) -> tuple[tuple[str, ...], ...]:
    """By rack, room and data centre, and by the place that most of a host's parts have in their groups."""
    levels: tuple[tuple[str, ...], ...] = (
        tuple("/".join((each[0].data_center, each[0].room, each[0].rack)) for each in nodes),
        tuple("/".join((each[0].data_center, each[0].room)) for each in nodes),
        tuple(each[0].data_center for each in nodes),
        tuple(_place_in_groups(model, each) for each in nodes),
    )
    return tuple(words for words in dict.fromkeys(levels) if 1 < len(set(words)) < len(words))


def _place_in_groups(model: ClusterModel, of_host: Sequence[NodeInfo]) -> str:
    places = Counter((part.id.realm, part.id.domain) for node in of_host for part in model.vdisks_of(node.id))
    return str(min(places, key=lambda place: (-places[place], place))) if places else ""

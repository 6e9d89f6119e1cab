"""Whether a storage class makes sense, and whether its pool has the nodes and zones that its volumes need.

Both are the same question to the zone rule, asked of different nodes: of as many as anybody could want in each zone
that the class names, and of those that the pool lists. A node counts while it is listed, ready or not: what comes and
goes is for placement, with a reason per volume.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.api.scalars import MAX_MEMBERS
from quorate.api.storage.configuration import Configuration, Topology
from quorate.api.storage.rsc import ReplicatedStorageClassSpec
from quorate.api.storage.rsp import EligibleNode, ReplicatedStoragePoolSpec
from quorate.placement.layout import LEVELS, layout_of
from quorate.placement.topology import Rule, Spread, Vacancies


def configuration_of(spec: ReplicatedStorageClassSpec) -> Configuration:
    """What a volume of this class copies. Two spellings of one topology are one (M7)."""
    layout = LEVELS[spec.replication]
    return Configuration(
        replicated_storage_pool_name=spec.storage_pool,
        replication=spec.replication,
        topology=Topology.IGNORED if spec.topology.ignores_zones else spec.topology,
        volume_access=spec.volume_access,
        failures_to_tolerate=layout.failures_to_tolerate,
        guaranteed_minimum_data_redundancy=layout.data_redundancy,
        zones=tuple(sorted(spec.zones)),
    )


def contradiction(configuration: Configuration, pool: ReplicatedStoragePoolSpec | None) -> str | None:
    """What no node could ever mend; None: nothing."""
    layout, topology = layout_of(configuration), configuration.topology
    if layout.members == 1 and not topology.ignores_zones:
        return f"spec.topology is {topology}: a single copy has none, it must be Ignored"
    zones = configuration.zones
    if pool is not None and pool.zones and (outside := sorted(set(zones) - set(pool.zones))):
        return f"spec.zones has {', '.join(outside)}: the pool has only {', '.join(sorted(pool.zones))}"
    zones = zones or (tuple(pool.zones) if pool is not None else ())
    if zones and not _possible(configuration, dict.fromkeys(zones, Vacancies(either=MAX_MEMBERS))):
        return f"{layout} with topology {topology} needs more zones than {', '.join(sorted(zones))}"
    return None


def shortage(configuration: Configuration, nodes: Iterable[EligibleNode]) -> str | None:
    """What the pool's nodes lack for one volume of the class; None: nothing."""
    layout, topology = layout_of(configuration), configuration.topology
    counts: dict[str, list[int]] = {}
    for node in nodes:
        if configuration.zones and node.zone_name not in configuration.zones:
            continue
        count = counts.setdefault(node.zone_name, [0, 0])
        count[0] += bool(node.lvm_volume_groups)
        count[1] += not node.lvm_volume_groups
    where = dict(counts)
    if not topology.ignores_zones:
        where.pop("", None)
    if _possible(configuration, {zone: Vacancies(0, *count) for zone, count in where.items()}):
        return None
    needs = f"{layout} needs {layout.diskful} {'nodes' if layout.diskful > 1 else 'node'} with a volume group"
    if layout.tie_breakers:
        needs += " and one more"
    if topology is Topology.ZONAL:
        needs += " in one zone"
    elif topology is Topology.TRANS_ZONAL:
        needs += ", spread over zones"
    return f"{needs}; the pool has {_listed(counts, topology)}"


def _possible(configuration: Configuration, vacancies: dict[str, Vacancies]) -> bool:
    layout = layout_of(configuration)
    rule = Rule(configuration.topology, layout)
    return rule.completable(Spread(), vacancies, layout.diskful, bool(layout.tie_breakers))


def _listed(counts: dict[str, list[int]], topology: Topology) -> str:
    if not counts:
        return "none"
    if topology.ignores_zones:
        return _nodes(*map(sum, zip(*counts.values(), strict=True)))
    return ", ".join(f"{_nodes(*count)} in {zone or 'no zone'}" for zone, count in sorted(counts.items()))


def _nodes(with_group: int, bare: int) -> str:
    return f"{with_group} and {bare} bare" if bare else str(with_group)

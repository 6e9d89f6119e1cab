"""The broker's rules on a cluster of 5,000 nodes, 50,000 drives and 200,000 replicas.

``python -m bench.maintenance_rules`` builds the cluster twice, a fifth of the size and whole: half of the replicas in
block-4-2 groups, half in volumes of three, both spread at random over nodes. It prints what a question costs and how
that grows, beside walking over all nodes once, which is what a broker without counters does for its limits. All times
are CPU time.
"""

from __future__ import annotations

import gc
import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import process_time

from bench.harness import Report, resident_bytes
from quorate.api.maintenance.action import ActionType, AvailabilityMode, HostState, StatusCode, TenantPolicy
from quorate.api.maintenance.broker_config import BrokerConfigSpec
from quorate.api.struct import replace as changed
from quorate.maintenance.entries import PermissionEntry, RequestEntry
from quorate.maintenance.evaluation import Grant
from quorate.maintenance.messages import Action
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.moments import SECOND, later
from quorate.maintenance.nouns import (
    DriveId,
    DriveInfo,
    GroupInfo,
    MemberFacts,
    NodeInfo,
    Species,
    VDiskId,
    VDiskInfo,
    VolumeFacts,
)
from quorate.maintenance.rules import evaluate

NODES, DRIVES, REPLICAS_PER_NODE = 5000, 10, 40
ACTIONS = 1000
NOW = 1_800_000_000 * SECOND
REPEATS = 200


@dataclass(frozen=True, slots=True)
class Built:
    model: ClusterModel
    seconds: float
    memory: int


def build(nodes: int) -> Built:
    """A cluster of so many nodes."""
    gc.collect()
    before, begun = resident_bytes(), process_time()
    chance = random.Random(7)
    model = ClusterModel(BrokerConfigSpec())
    for node in range(1, nodes + 1):
        model.put_node(NodeInfo(id=node, host=f"host-{node}", tenant=f"tenant-{node % 20}"))
        for drive in range(1, DRIVES + 1):
            model.put_drive(DriveInfo(id=DriveId(node, drive), path=f"/dev/nvme{drive}n1"))
    replicas = nodes * REPLICAS_PER_NODE
    blocks, volumes = replicas // 2 // 8, replicas // 2 // 3
    for group in range(blocks):
        model.put_group(GroupInfo(id=group, species=Species.BLOCK_4_2, vdisks=_parts(chance, group, nodes, 8)))
    for group in range(blocks, blocks + volumes):
        parts = _parts(chance, group, nodes, 3)
        model.put_group(GroupInfo(id=group, species=None, volume=_facts(group, parts, nodes), vdisks=parts))
    seconds = process_time() - begun
    gc.collect()
    return Built(model, seconds, resident_bytes() - before)


def _parts(chance: random.Random, group: int, nodes: int, number: int) -> tuple[VDiskInfo, ...]:
    return tuple(
        VDiskInfo(id=VDiskId(group, 1, 0, domain, 0), node=node, drives=(DriveId(node, chance.randint(1, DRIVES)),))
        for domain, node in enumerate(chance.sample(range(1, nodes + 1), number))
    )


def _facts(group: int, parts: tuple[VDiskInfo, ...], nodes: int) -> VolumeFacts:
    members = tuple(
        MemberFacts(vdisk=part.id, node=part.node, voter=True, up_to_date=True, connected=True) for part in parts
    )
    return VolumeFacts(
        name=f"volume-{group}",
        members=members,
        attached_on=frozenset({group % nodes + 1}),
        quorum=2,
        quorum_minimum_redundancy=2,
        copies_kept=2,
        failures_to_tolerate=1,
    )


def request(hosts: list[int], *, order: int = 1, partial: bool = True) -> RequestEntry:
    """To shut hosts down for five minutes each."""
    shut_down = ActionType.SHUTDOWN_HOST
    return RequestEntry(
        id=f"bench-r-{order}",
        order=order,
        owner="bench",
        actions=tuple(Action(type=shut_down, host=f"host-{host}", duration=300 * SECOND) for host in hosts),
        partial_permission_allowed=partial,
        reason="",
        duration=None,
        tenant_policy=TenantPolicy.DEFAULT,
        availability_mode=AvailabilityMode.MAX_AVAILABILITY,
        priority=0,
        stored_at=NOW,
        renewed_at=NOW,
        last_deadline=NOW,
    )


def milliseconds(work: Callable[[int], object], repeats: int = REPEATS) -> tuple[float, float]:
    """Median and 99th percentile of a call."""
    times = []
    for turn in range(repeats):
        begun = process_time()
        work(turn)
        times.append((process_time() - begun) * 1000)
    return statistics.median(times), statistics.quantiles(times, n=100)[98] if repeats > 1 else times[0]


def checks(model: ClusterModel, nodes: int, *, busy: bool) -> tuple[float, float]:
    """One host at a time, all over the cluster."""
    hosts = random.Random(11).sample(range(1, nodes + 1), REPEATS)
    return milliseconds(lambda turn: evaluate(model, request([hosts[turn]], order=9 if busy else 1), NOW))


def state_changes(model: ClusterModel) -> tuple[float, float]:
    """A node goes down and comes back."""
    infos = [info for info in model.nodes() if info.id <= REPEATS]

    def change(turn: int) -> None:
        model.put_node(replace(infos[turn], state=HostState.DOWN, surely_down=True))
        model.put_node(infos[turn])

    both, slowest = milliseconds(change)
    return both / 2, slowest / 2


def walk(model: ClusterModel) -> tuple[float, float]:
    """The baseline: look at every node once."""
    return milliseconds(lambda _: sum(info.state is not HostState.UP for info in model.nodes()), 20)


def run() -> Report:
    """The figures."""
    size = f"{NODES:,} nodes, {NODES * DRIVES:,} drives, {NODES * REPLICAS_PER_NODE:,} replicas"
    report = Report(f"The broker's rules ({size})")
    small, whole = build(NODES // 5), build(NODES)
    model = whole.model
    report.add("building the model", f"{whole.seconds:.1f} s, {whole.memory / 1e6:,.0f} MB", "-")
    walked, _ = walk(model)
    report.add("baseline: one look at every node", f"{walked:.3f} ms", "-")
    one, slowest = checks(model, NODES, busy=False)
    fifth, _ = checks(small.model, NODES // 5, busy=False)
    report.add("one SHUTDOWN_HOST check, p50 / p99", f"{one:.3f} / {slowest:.3f} ms", "under 1 ms", slowest < 1)
    report.add("the same at a fifth of the size", f"{fifth:.3f} ms", "growth under 1.5x", one < fifth * 1.5)
    change, slowest = state_changes(model)
    report.add("a node's state change, p50 / p99", f"{change:.3f} / {slowest:.3f} ms", "under 1 ms", slowest < 1)
    wide = request(random.Random(3).sample(range(1, NODES + 1), ACTIONS))
    partial, _ = milliseconds(lambda _: evaluate(model, wide, NOW), 9)
    answer = evaluate(model, wide, NOW)
    granted = f"{len(answer.grants)} granted, {len(answer.refusals)} refused"
    report.add(f"{ACTIONS:,} actions, partial", f"{partial:.0f} ms ({granted})", "under 300 ms", partial < 300)
    for number, grant in enumerate(answer.grants, 1):
        model.hold(permission(number, grant))
    left = changed(wide, actions=answer.left)
    queued, _ = milliseconds(lambda _: model.queue(left, blocking=True), 9)
    report.add(f"queueing the other {len(left.actions):,}", f"{queued:.1f} ms", "-")
    again, _ = milliseconds(lambda _: evaluate(model, left, NOW), 9)
    code = evaluate(model, left, NOW).code
    report.add("asking again about them", f"{again:.0f} ms ({code})", "under 300 ms", again < 300)
    behind, slowest = checks(model, NODES, busy=True)
    figures = f"{behind:.3f} / {slowest:.3f} ms"
    report.add("one check behind them in the queue, p50 / p99", figures, "under 1 ms", slowest < 1)
    assert answer.code is StatusCode.ALLOW_PARTIAL
    return report


def permission(number: int, grant: Grant) -> PermissionEntry:
    """What is granted now."""
    deadline = later(NOW, grant.permission_duration)
    identity = f"bench-p-{number}"
    return PermissionEntry(
        id=identity, order=number, owner="bench", action=grant.action, deadline=deadline, granted_at=NOW
    )


if __name__ == "__main__":
    run()

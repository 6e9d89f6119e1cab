"""The guard of a second primary, which DRBD does not protect from the first.

When only the link between the two is cut, both go on writing (recordings two_primaries_2dtb_link_cut,
two_primaries_3d_disconnect).

So the younger one yields: when any of its links to a member that counts goes, it cuts the others too, loses quorum and
suspends. One that joins or leaves is hidden: it holds up no quorum, so that its link may come and go. This is a
controller of its own, which writes nothing and looks for itself: the cut that it acts upon may well have cut this node
off the API, or the work on the resource may hang, or all of the node be busy: its work is urgent, and needs no file. It
stays cut off until its config no longer says that it yields; then the usual ``adjust`` connects it again and the kernel
demotes it by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from random import Random

from quorate.agent.backoff import Patience
from quorate.agent.memory import Outcome
from quorate.agent.node import Node
from quorate.agent.replica.here import REPLICAS_BY_VOLUME, replicas_here, volume_key
from quorate.agent.replica.kernel import all_counted_connected, is_primary
from quorate.agent.replica.verdict import FINE, Verdict
from quorate.agent.steps import KERNEL, Look, Run, kernel_of
from quorate.api.storage.drbd import Connection, ConnectionState, DrbdConfig, DrbdStatus
from quorate.api.storage.rvr import ReplicatedVolumeReplica
from quorate.engine import Controller, Key, Plan, Reader, Watch

PATIENCE = Patience(first=0.5, longest=5.0)
CUT = "cut"


@dataclass(frozen=True, slots=True)
class Guarded:
    """What the guard sees."""

    resource: str
    config: DrbdConfig
    current: bool
    status: DrbdStatus | None
    looked: Outcome | None = None
    cut: Outcome | None = None


def guard_work(resource: str) -> str:
    """The name under which the guard acts: not behind other work on the resource."""
    return f"guard/{resource}"


def must_yield(config: DrbdConfig, status: DrbdStatus | None) -> bool:
    """Whether this member is the younger primary and one of its links that count is gone."""
    return config.yields and status is not None and is_primary(status) and not all_counted_connected(config, status)


def decide(view: Guarded, now: datetime) -> Verdict:
    """Look, and if a link is gone cut the others."""
    if not view.config.yields:
        return FINE
    if not view.current:
        failed = view.looked is not None and not view.looked.succeeded
        wait = PATIENCE.left(view.looked, "", now) if failed else 0.0
        return Verdict(steps=() if wait > 0 else (Look(KERNEL, view.resource),), again=wait or None)
    if view.status is None or not must_yield(view.config, view.status):
        return FINE
    left = [link for link in view.status.connections if link.connection_state != ConnectionState.STAND_ALONE]
    if not left:
        return FINE
    wait = PATIENCE.left(view.cut, "", now)
    return Verdict(steps=() if wait > 0 else tuple(cut(view.resource, link) for link in left), again=wait or None)


def cut(resource: str, link: Connection) -> Run:
    """One link. Whatever comes of it, the others are cut too; what is left is seen by the next look."""
    argv = ("drbdsetup", "disconnect", resource, str(link.peer_node_id), "--force")
    return Run(argv, CUT, accept=tuple(range(256)), changes=(kernel_of(resource),))


def guard(node: Node) -> Controller[Guarded]:
    """The controller. It writes nothing: the API may be out of reach."""
    #: The volumes whose replica here must yield: few, and only these are looked at when something happens.
    guarded: set[str] = set()

    def observe(reader: Reader, key: Key) -> Guarded | None:
        found = replicas_here(node, reader, key.name)
        if not found or not found[0].status.drbd.config.yields:
            guarded.discard(key.name)
            return None
        guarded.add(key.name)
        memory, work, sighting = node.memory, guard_work(key.name), node.memory.resource(key.name)
        return Guarded(
            resource=key.name,
            config=found[0].status.drbd.config,
            current=sighting.current,
            status=sighting.value,
            looked=memory.last(work, "look"),
            cut=memory.last(work, CUT),
        )

    def act(view: Guarded, now: datetime, _: Random) -> Plan:
        verdict = decide(view, now)
        if not verdict.steps:
            return Plan(requeue_after=verdict.again)
        work, key = guard_work(view.resource), Key("", view.resource)
        effect = node.work(work, verdict.steps, node.volumes, key, urgent=True)
        return Plan(effects=(effect,), requeue_after=verdict.again)

    return Controller(
        name="dual-primary-guard",
        watches=(Watch(ReplicatedVolumeReplica, volume_key, when=_may_yield),),
        observe=observe,
        decide=act,
        indexes=(REPLICAS_BY_VOLUME,),
        signals=(node.volumes.only(lambda key: key.name in guarded),),
    )


def _may_yield(before: ReplicatedVolumeReplica | None, after: ReplicatedVolumeReplica | None) -> bool:
    """One that comes or goes may change which of two counts."""
    return before is None or after is None or before.status.drbd.config.yields or after.status.drbd.config.yields

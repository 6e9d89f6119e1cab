"""Phase 1, Preconfigure: replicas with a place, space, a logical volume and an address.

In 002's order: create what is missing (only when nothing is being deleted), delete what is too much, misplaced or
foreign, wait until deleted ones are gone, wait for places (no timeout, M10), wait until everybody is preconfigured,
then the safety checks. What passes them all is told of one another in phase 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from random import Random

from quorate.api.meta import Bytes
from quorate.api.scalars import ReplicaName
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.llv import LogicalVolumePhase
from quorate.drbd.metadata import lower_size
from quorate.engine import Create, Write
from quorate.placement.layout import Layout, layout_of
from quorate.volumes import places
from quorate.volumes.places import Places
from quorate.volumes.view import ReplicaView, VolumeView
from quorate.volumes.volume import leftovers
from quorate.volumes.volume.formation.connectivity import introduce
from quorate.volumes.volume.formation.members import addresses
from quorate.volumes.volume.formation.steps import elapsed, left_behind, restart_clock, waiting
from quorate.volumes.volume.outcome import Outcome
from quorate.volumes.volume.replicas import deletions, free_ids, new_replica
from quorate.volumes.waits import Blocker, Wait, grouped, ids


def preconfigure(view: VolumeView, now: datetime, random: Random) -> Outcome:
    """``reconcileFormationPhasePreconfigure``."""
    layout, limit = layout_of(view.configuration), timeout(view)
    deleting = [replica for replica in view.replicas if replica.replica.deleting]
    misplaced = [each for each in view.replicas if not each.replica.deleting and _may_be_replaced(view, each)]
    kept = _kept([each for each in view.replicas if each not in deleting and each not in misplaced], layout)
    unwanted = [replica for replica in view.replicas if replica not in kept]
    cleared: tuple[Write, ...] = (*deletions(unwanted), *leftovers.clear(view))
    if unwanted:
        return waiting(view, now, _cleanup(unwanted), limit, cleared)
    if missing := _missing(view, kept, layout):
        return Outcome(view.volume.status, writes=(*cleared, *missing))
    found = places.find_places(view)
    if homeless := [replica for replica in kept if not replica.scheduled]:
        if found.settled and elapsed(view, now) > limit / 2:
            # It has waited for places; what follows is given its whole time.
            return restart_clock(view, now)
        wait = _for_places(kept, homeless, found)
        return waiting(view, now, wait, writes=(*cleared, *places.writes(view, found)))
    if left := left_behind(view):
        return waiting(view, now, left, writes=cleared)
    unfit = _unready(kept) or safety(view, kept)
    if unfit is not None:
        return waiting(view, now, unfit, limit, cleared)
    if view.volume.status.drbd.config.device_minor is None:
        return waiting(view, now, Wait("WaitingForDeviceMinor", "the volume has no device minor yet"), writes=cleared)
    return introduce(view, kept, now, random)


def timeout(view: VolumeView) -> float:
    """Seconds for the phase; zeroing a thick volume takes as long as writing it."""
    times = view.config.timeouts
    zeroed = [piece for piece in view.pieces if piece.spec.zeroed]
    size = max((int(piece.spec.size) for piece in zeroed), default=0)
    return times.preconfigure.seconds + size / times.bootstrap_bytes_per_second


def is_misplaced(view: VolumeView, replica: ReplicaView) -> bool:
    """Not where the pool allows it: the node, or its disk, is not listed (SatisfyEligibleNodes is False)."""
    return replica.node_name is not None and view.rsp is not None and not view.offers(replica.replica)


def _may_be_replaced(view: VolumeView, replica: ReplicaView) -> bool:
    """Misplaced; but what is on the disk of a machine that is off, nobody knows, and only its agent could remove it."""
    asleep = replica.node is not None and not replica.node.fresh and not replica.node.gone
    return is_misplaced(view, replica) and not (asleep and replica.volumes)


def _kept(replicas: Sequence[ReplicaView], layout: Layout) -> tuple[ReplicaView, ...]:
    """As many of each type as the layout has; of more than that, the ones that have come furthest."""
    kept: list[ReplicaView] = []
    for replica_type, count in ((ReplicaType.DISKFUL, layout.diskful), (ReplicaType.TIE_BREAKER, layout.tie_breakers)):
        alike = [replica for replica in replicas if replica.type is replica_type]
        alike.sort(key=lambda each: (not each.scheduled, not _is_preconfigured(each), each.id))
        kept += alike[:count]
    return tuple(sorted(kept, key=lambda each: each.id))


def _missing(view: VolumeView, kept: Sequence[ReplicaView], layout: Layout) -> list[Create]:
    diskful = sum(replica.diskful for replica in kept)
    types = [ReplicaType.DISKFUL] * (layout.diskful - diskful)
    types += [ReplicaType.TIE_BREAKER] * (layout.tie_breakers - (len(kept) - diskful))
    return [
        Create(new_replica(view.volume, number, replica_type))
        for number, replica_type in zip(free_ids(view), types, strict=False)
    ]


# Waits.


def _cleanup(unwanted: Sequence[ReplicaView]) -> Wait:
    """Says also whose node is down: only its agent can let go."""
    down = [replica for replica in unwanted if replica.node is not None and not replica.fresh]
    told = "" if not down else "; not in touch: " + ", ".join(f"{each.name} on {each.node_name}" for each in down)
    return Wait(
        "WaitingForReplicaCleanup",
        f"replicas are being deleted {ids(replica.name for replica in unwanted)}{told}",
        tuple(Blocker.of(replica.replica) for replica in unwanted),
    )


def _for_places(kept: Sequence[ReplicaView], homeless: Sequence[ReplicaView], found: Places) -> Wait:
    """``computeFormationPreconfigureWaitMessage``: groups that are not empty, and why places failed, in full."""
    failed = [replica.name for replica in homeless if replica.name in found.refusals]
    pending = [replica.name for replica in homeless if replica.name not in failed]
    preparing = [replica.name for replica in kept if replica.scheduled and not _is_preconfigured(replica)]
    message = grouped((("pending scheduling", pending), ("scheduling failed", failed), ("preconfiguring", preparing)))
    said = dict.fromkeys(found.refusals[name].message for name in failed)
    reason = next((found.refusals[name].reason.code for name in failed), "WaitingForReservation")
    return Wait(
        reason,
        "; ".join((message, *said)),
        tuple(Blocker.of(replica.replica) for replica in homeless),
    )


def _unready(kept: Sequence[ReplicaView]) -> Wait | None:
    waits = [replica for replica in kept if not _is_preconfigured(replica)]
    if not waits:
        return None
    message = grouped((("preconfiguring", [replica.name for replica in waits]),))
    lacking = "; ".join(f"{replica.name}: {_lacks(replica)}" for replica in waits)
    return Wait("Preconfiguring", f"{message}: {lacking}", tuple(Blocker.of(replica.replica) for replica in waits))


def _is_preconfigured(replica: ReplicaView) -> bool:
    return replica.scheduled and not _lacks(replica)


def _lacks(replica: ReplicaView) -> str:
    """What a replica still has to have before it can be a member; "" if nothing."""
    status, volume = replica.replica.status, replica.logical_volume
    if replica.diskful:
        if volume is None:
            return "no logical volume"
        if volume.status.phase is not LogicalVolumePhase.CREATED:
            said = volume.status.message or (volume.status.phase or "not looked at yet")
            return f"logical volume {volume.name}: {said}"
    if status.drbd.config.address is None:
        error = status.drbd.errors.last_config_error
        return f"no address{f': {error.output}' if error is not None else ''}"
    pending = status.datamesh_pending_transition
    if pending is None or pending.member is not True:
        return "has not asked to join"
    return ""


def safety(view: VolumeView, kept: Sequence[ReplicaView]) -> Wait | None:
    """The four checks before anybody is told of anybody, in 002's order."""
    unaddressed = [each.name for each in kept if not set(view.datamesh.system_network_names) <= set(addresses(each))]
    if unaddressed:
        networks = ", ".join(view.datamesh.system_network_names)
        return _unsafe("AddressesMissing", f"no address in every one of the networks {networks}", unaddressed)
    elsewhere = [replica.name for replica in kept if is_misplaced(view, replica) or view.rsp is None]
    if elsewhere:
        return _unsafe("NodesNotEligible", "on a node that is not eligible", elsewhere)
    otherwise = [replica.name for replica in kept if not _asks_for_what_it_is(replica)]
    if otherwise:
        return _unsafe("SpecMismatch", "asks for something other than its spec", otherwise)
    small = [replica.name for replica in kept if not _is_large_enough(view, replica)]
    if small:
        return _unsafe("BackingVolumeTooSmall", "logical volume is too small, or its size is not known", small)
    return None


def _unsafe(reason: str, words: str, names: Sequence[ReplicaName]) -> Wait:
    blockers = tuple(Blocker("ReplicatedVolumeReplica", name) for name in names)
    return Wait(reason, f"{words} {ids(names)}", blockers)


def _asks_for_what_it_is(replica: ReplicaView) -> bool:
    spec, pending = replica.replica.spec, replica.replica.status.datamesh_pending_transition
    return (
        pending is not None
        and pending.type is spec.type
        and pending.lvm_volume_group_name == (spec.lvm_volume_group_name or "")
        and pending.lvm_volume_group_thin_pool_name == (spec.lvm_volume_group_thin_pool_name or "")
    )


def _is_large_enough(view: VolumeView, replica: ReplicaView) -> bool:
    """A size that is not known is not sufficient (M11)."""
    if not replica.diskful:
        return True
    volume, size = replica.logical_volume, view.datamesh.size
    if volume is None or volume.status.actual_size is None or size is None:
        return False
    return int(volume.status.actual_size) >= lower_size(Bytes(int(size)), view.config.drbd.max_peers)

"""The controller of LVMLogicalVolumes: each key is one, and one look at LVM serves them all.

| seen                                                    | decided in                                |
|---------------------------------------------------------|-------------------------------------------|
| the object is being deleted                             | ``removing``                              |
| nothing of that name, or something with ``quorate.new`` | ``creating``                              |
| something without that tag that is not known as ours    | here: ``LVExists``. Never wiped, or used  |
| one that an object before had, of the same replica      | here: that one was lost. It is taken over |
| a volume of ours                                        | ``growing``                               |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from random import Random

from quorate.agent.lvm import commands
from quorate.agent.lvm.attempts import attempt
from quorate.agent.lvm.creating import LOOK_FOR_SPACE, not_there, unfinished
from quorate.agent.lvm.failures import shortened
from quorate.agent.lvm.growing import kept
from quorate.agent.lvm.heavy import HeavyWork
from quorate.agent.lvm.looker import Done, Looker
from quorate.agent.lvm.piece import Decision, Piece, Work, failed, heavy_work, until_volumes_change
from quorate.agent.lvm.removing import removed
from quorate.agent.lvm.seen import NEW, is_owner_tag, owner_tag, spare_name
from quorate.agent.lvm.settling import making
from quorate.agent.node import Node, volume_work
from quorate.agent.replica.kernel import all_established
from quorate.api import finalizers, names
from quorate.api.baremetal import Drive
from quorate.api.cluster_config import ClusterConfig, DrbdSettings
from quorate.api.conditions.lvm import LogicalVolumeFailure as Failure
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup, ReplicatedVolumeReplica
from quorate.api.storage.drbd import Device, DiskState, DrbdStatus, ReplicaDrbd
from quorate.api.storage.llv import LVMLogicalVolumeStatus
from quorate.api.storage.rvr import ReplicatedVolumeReplicaStatus
from quorate.api.struct import replace
from quorate.engine import (
    Controller,
    Key,
    PatchStatus,
    Plan,
    Reader,
    ReleaseFinalizer,
    Watch,
    Write,
    key_of,
    no_keys,
)

#: LLV = replica's name, ``-``, eight characters of its disk's hash.
_SUFFIX_LENGTH = 9


def judge(piece: Piece, now: datetime) -> Decision:
    """What is to be reported of one logical volume, and done. Pure."""
    if why := piece.unusable_name:
        status = failed(piece.status, Failure.UNUSABLE_NAME.code, f"{why}.")
        return Decision(status, release=piece.llv.deleting and piece.llv.metadata.finalizers == (finalizers.AGENT,))
    if piece.llv.deleting:
        return removed(piece, now)
    if piece.spec.source is not None and piece.source is None and not piece.was_created:
        message = f"{piece.spec.source.path} is not a path beneath {piece.image_directory}, where images are."
        return Decision(failed(piece.status, Failure.SOURCE_REFUSED.code, message))
    if piece.lvg is None:
        message = f"There is no LVMVolumeGroup {piece.spec.lvm_volume_group_name} on this node."
        status = failed(piece.status, Failure.VOLUME_GROUP_NOT_FOUND.code, message)
        return Decision(status, retry_after=LOOK_FOR_SPACE)
    if piece.volumes is None:
        return Decision(piece.status, look_at_volumes=True)
    volume = piece.volume
    if volume is None and piece.volumes.incomplete:
        return until_volumes_change(piece, _unseen(piece.status, piece.volumes.incomplete), now, LOOK_FOR_SPACE)
    if volume is None:
        return not_there(piece, now)
    if NEW in volume.tags and not piece.was_created:
        return unfinished(piece, volume, now)
    if not piece.owns(volume):
        message = f"{volume.path} is there already, was not made for this object, and is left as it is."
        return Decision(failed(piece.status, Failure.LV_EXISTS.code, message))
    if others := [tag for tag in sorted(volume.tags) if is_owner_tag(tag) and tag != owner_tag(piece.llv.metadata.uid)]:
        taken = commands.retag(volume.group, volume.name, add=(owner_tag(piece.llv.metadata.uid),), remove=others)
        return attempt(piece, piece.status, piece.light(taken), now)
    if NEW in volume.tags:
        # It was Created: the tag came back by somebody's mistake, and must not let anybody wipe it.
        untrue = commands.retag(volume.group, volume.name, remove=(NEW,))
        return attempt(piece, piece.status, piece.light(untrue), now, still_usable=True)
    if not volume.active:
        return attempt(piece, piece.status, piece.light(commands.activate(volume)), now)
    return kept(piece, volume, now)


def _unseen(status: LVMLogicalVolumeStatus, why: str) -> LVMLogicalVolumeStatus:
    """What is known of it stays; that nobody can see it now is said."""
    return replace(status, reason=Failure.COMMAND_FAILED.code, message=shortened(f"LVM could not be looked at: {why}"))


class LogicalVolumes:
    """Observes and decides for one node."""

    def __init__(self, node: Node, looker: Looker, groups_key: Key) -> None:
        self._node = node
        self._looker = looker
        self._groups_key = groups_key
        self._heavy = HeavyWork(node.hands)

    def controller(self) -> Controller[Piece]:
        """What the manager runs."""
        return Controller(
            name="lvm-logical-volumes",
            watches=(
                Watch(LVMLogicalVolume),
                Watch(LVMVolumeGroup, no_keys),
                Watch(ReplicatedVolumeReplica, _of_replica, when=_concerns_its_disk),
                Watch(Drive, self._every_volume, when=_moved),
                Watch(ClusterConfig, no_keys),
            ),
            observe=self.observe,
            decide=self.decide,
            signals=(self._node.disks.only(lambda key: key != self._groups_key),),
        )

    def observe(self, reader: Reader, key: Key) -> Piece | None:
        """Gather what matters for one logical volume."""
        llv = reader.get(LVMLogicalVolume, key.name)
        if llv is None:
            self._forget(key)
            return None
        lvg = reader.get(LVMVolumeGroup, llv.spec.lvm_volume_group_name)
        replica, config = _replica(reader, llv), reader.get(ClusterConfig, names.CLUSTER)
        shown, current = (None, False) if replica is None else self._shown(replica)
        device = shown.devices[0] if shown is not None and shown.devices else None
        places = () if lvg is None else _places(llv, lvg)
        piece = Piece(
            llv=llv,
            lvg=lvg,
            replica=replica,
            attached=device is not None and _is_attached(device),
            kernel_current=current,
            device_size=None if device is None else device.size * 1024,
            at_rest=replica is not None and shown is not None and all_established(replica.status.drbd.config, shown),
            max_peers=DrbdSettings().max_peers if config is None else config.spec.drbd.max_peers,
            drives=reader.list(Drive),
            image_directory=self._node.settings.image_directory,
            # Without its LVMVolumeGroup nothing but a tag says where it is: on any volume.
            volumes=self._looker.current_volumes if lvg is None else self._looker.volumes_of(llv.metadata.uid, places),
            groups=self._looker.known_groups,
            free_current=lvg is not None and self._looker.free_is_known(lvg.spec.actual_vg_name_on_the_node),
            volumes_at=self._looker.volumes_at,
            groups_at=self._looker.groups_at,
            pauses=self._looker.pauses(),
            troubles=self._looker.troubles(),
            outcomes={
                **self._node.memory.outcomes(volume_work(llv.name)),
                **self._node.memory.outcomes(heavy_work(llv.name)),
            },
        )
        for place in places:
            self._looker.followers[place] = key
        return piece

    def decide(self, piece: Piece, now: datetime, _: Random) -> Plan:
        """Turn the judgement into writes and effects."""
        decision, llv = judge(piece, now), piece.llv
        writes: list[Write] = []
        if decision.backing_size_ahead is not None and piece.replica is not None:
            writes.append(_written_ahead(piece.replica, decision.backing_size_ahead))
        if decision.release and self._node.hands.busy(volume_work(llv.name)):
            # What was seen to be gone may be on its way.
            return Plan(effects=(partial(self._start, Work(volume_work(llv.name), ()), self._done(key_of(llv))),))
        if decision.release:
            writes.append(ReleaseFinalizer(llv, finalizers.AGENT, after=()))
            return Plan(writes=tuple(writes))
        status = _with_troubles(piece, decision)
        patience = making(piece, status, now)
        return Plan(
            writes=tuple(writes),
            status=PatchStatus(llv, replace(llv, status=status)) if patience is None else None,
            requeue_after=_sooner(decision, piece.pauses, patience),
            effects=tuple(self._effects(piece, decision)),
        )

    def _effects(self, piece: Piece, decision: Decision) -> Iterable[Callable[[], None]]:
        key, signal = key_of(piece.llv), self._node.disks
        if decision.look_at_volumes and not piece.pauses[0]:
            yield partial(self._looker.ask_for_volumes, signal, key)
        if decision.look_at_groups and not piece.pauses[1]:
            yield partial(self._looker.ask_for_groups, signal, key)
        if decision.work is not None:
            yield partial(self._start, decision.work, self._done(key))

    def _done(self, key: Key) -> Done:
        return Done(self._looker, self._node.disks, (key,))

    def _start(self, work: Work, done: Done) -> None:
        if work.heavy:
            self._heavy.start(work, done)
        else:
            self._node.hands.start(work.name, work.steps, done, beside=work.beside)

    def _shown(self, replica: ReplicatedVolumeReplica) -> tuple[DrbdStatus | None, bool]:
        """The replica's resource, as the kernel last showed it, and whether that still holds."""
        sighting = self._node.memory.kernel.get(replica.spec.replicated_volume_name)
        return (None, False) if sighting is None else (sighting.value, sighting.current)

    def _every_volume(self, _: Drive) -> Iterable[Key]:
        return tuple(self._looker.followers.values())

    def _forget(self, key: Key) -> None:
        """An object that is gone leaves nothing behind in memory."""
        for work in (volume_work(key.name), heavy_work(key.name)):
            self._node.memory.forget(work)
        for place in [place for place, follower in self._looker.followers.items() if follower == key]:
            del self._looker.followers[place]


def _sooner(decision: Decision, pauses: tuple[float, float], patience: float | None) -> float | None:
    """When to look again: at what was decided or not told yet, or when a look that failed may be made once more."""
    asked = (decision.look_at_volumes, decision.look_at_groups)
    waits = [pause for pause, wanted in zip(pauses, asked, strict=True) if wanted and pause]
    return min((*waits, *(each for each in (decision.retry_after, patience) if each is not None)), default=None)


def _places(llv: LVMLogicalVolume, lvg: LVMVolumeGroup) -> tuple[str, str]:
    """Where its volume is, and the extents that it is to grow by."""
    group = lvg.spec.actual_vg_name_on_the_node
    return f"{group}/{llv.spec.actual_lv_name_on_the_node}", f"{group}/{spare_name(llv.metadata.uid)}"


def _replica(reader: Reader, llv: LVMLogicalVolume) -> ReplicatedVolumeReplica | None:
    """The replica that a logical volume is for, found by their names."""
    replica = reader.get(ReplicatedVolumeReplica, llv.name[:-_SUFFIX_LENGTH])
    return replica if replica is not None and key_of(llv) in _of_replica(replica) else None


def _of_replica(replica: ReplicatedVolumeReplica) -> tuple[Key, ...]:
    group, pool = replica.spec.lvm_volume_group_name, replica.spec.lvm_volume_group_thin_pool_name
    found = {*_named(replica.status)}
    if group is not None:
        found.add(names.logical_volume(replica.name, group, pool or ""))
    return tuple(Key("", name) for name in sorted(found) if name)


def _concerns_its_disk(before: ReplicatedVolumeReplica | None, after: ReplicatedVolumeReplica | None) -> bool:
    """Whether something changes that is looked at here: which disk it has, what was made of it, how the kernel has it.

    The kernel's own word is in memory; that the replica's part has reported something else says that it changed.
    """
    if before is None or after is None or before.spec != after.spec:
        return True
    old, new = before.status, after.status
    if _named(old) != _named(new) and _of_replica(before) != _of_replica(after):
        return True
    if _made(old.drbd) != _made(new.drbd):
        return True
    return _disks(old.drbd.status) != _disks(new.drbd.status)


def _named(status: ReplicatedVolumeReplicaStatus) -> tuple[str, str]:
    """The disks that it names. Usually they are the one that its name and its group lead to."""
    return status.lvm_logical_volume_name, status.drbd.actual.metadata_created


def _made(drbd: ReplicaDrbd) -> tuple[object, ...]:
    return drbd.actual.backing_size, bool(drbd.config.datamesh_revision), drbd.config.size


def _disks(reported: DrbdStatus | None) -> list[tuple[bool, int]]:
    return [(_is_attached(device), device.size) for device in reported.devices] if reported is not None else []


def _is_attached(device: Device) -> bool:
    return device.disk_state not in ("", DiskState.DISKLESS)


def _moved(before: Drive | None, after: Drive | None) -> bool:
    """Whether another drive may be behind a path now."""
    if before is None or after is None:
        return True
    return (before.spec.path, before.status.presence) != (after.spec.path, after.status.presence)


def _with_troubles(piece: Piece, decision: Decision) -> LVMLogicalVolumeStatus:
    """The status, with why nobody can see what it depends on."""
    asked = (decision.look_at_volumes and piece.volumes is None, decision.look_at_groups and piece.groups is None)
    why = next((why for why, needed in zip(piece.troubles, asked, strict=True) if needed and why), "")
    return _unseen(decision.status, why) if why else decision.status


def _written_ahead(replica: ReplicatedVolumeReplica, size: int) -> PatchStatus:
    drbd = replica.status.drbd
    actual = replace(drbd.actual, backing_size=Quantity.of_bytes(size))
    status = replace(replica.status, drbd=replace(drbd, actual=actual))
    return PatchStatus(replica, replace(replica, status=status))

"""The controller of LVMVolumeGroups: one key for all of a node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random
from typing import Final

from quorate.agent.backoff import wait_before_retry
from quorate.agent.lvm.drives import as_seen, drive_behind
from quorate.agent.lvm.groups import GroupView, judge, not_seen, places_of, unmanaged
from quorate.agent.lvm.looker import Done, Looker
from quorate.agent.lvm.piece import NEVER, group_work
from quorate.agent.lvm.seen import SeenVolume, SeenVolumes
from quorate.agent.lvm.settling import counting
from quorate.agent.node import DRIVES_LOOK, Node
from quorate.agent.steps import DRIVES, Look, Run
from quorate.api import names
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import Presence
from quorate.api.cluster_config import ClusterConfig, DiskSettings
from quorate.api.meta import Resource
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup
from quorate.api.struct import replace
from quorate.engine import NOTHING, Controller, Key, PatchStatus, Plan, Reader, Watch, Write

#: Seconds until groups that have rested are looked at again, when the last look is only judged now.
AFTER_JUDGING: Final = 0.01


@dataclass(frozen=True, slots=True)
class GroupsView:
    """All volume groups of the node; no views while nobody has looked."""

    views: tuple[GroupView, ...] = ()
    look_at_volumes: bool = False
    look_at_groups: bool = False
    #: Seconds before either may be looked at again: above zero after looks that failed, and while groups rest.
    pauses: tuple[float, float] = (0.0, 0.0)
    #: Groups about which nothing can be said, and why.
    unseen: tuple[LVMVolumeGroup, ...] = ()
    why: str = ""
    low_water_percent: int = DiskSettings().low_water_percent
    #: When the groups were looked at, and in how many seconds to look again: since then something was done to volumes.
    looked_at: datetime = NEVER
    look_again: float | None = None
    #: Drives, and what is on each in groups that no LVMVolumeGroup stands for; None: that is in doubt.
    drives: tuple[tuple[Drive, tuple[str, ...] | None], ...] = ()
    #: Whether the drives were looked at since the groups were.
    drives_current: bool = True


class VolumeGroups:
    """Observes and decides for one node."""

    def __init__(self, node: Node, looker: Looker, key: Key) -> None:
        self._node = node
        self._looker = looker
        self._key = key
        #: By group: since when its free bytes have been other than told.
        self._untold: dict[str, datetime] = {}
        #: When the look was at which they were last judged.
        self._judged = NEVER

    def controller(self) -> Controller[GroupsView]:
        """What the manager runs."""
        return Controller(
            name="lvm-volume-groups",
            watches=(
                Watch(LVMVolumeGroup, self._all),
                Watch(Drive, self._all, when=_is_other_drive),
                Watch(LVMLogicalVolume, self._all, when=_is_gone),
                Watch(ClusterConfig, self._all, when=_is_other_policy),
            ),
            observe=self.observe,
            decide=self.decide,
            signals=(self._node.disks.only(lambda key: key == self._key),),
            workers=1,
        )

    def observe(self, reader: Reader, _: Key) -> GroupsView | None:
        """Gather every group of the node."""
        groups, objects = reader.list(LVMVolumeGroup), reader.list(Drive)
        if not groups and not any(_may_hold_volumes(drive) for drive in objects):
            return None
        looker = self._looker
        volumes, seen = looker.known_volumes, looker.known_groups
        doubts = (looker.current_volumes is None, looker.current_groups is None)
        rest = looker.groups_rest()
        # While volumes come and go there is always one in doubt. So each look at groups is judged, once.
        if volumes is None or seen is None or (any(doubts) and looker.groups_at == self._judged):
            why = " ".join(filter(None, looker.troubles()))
            for_volumes, for_groups = looker.pauses()
            return GroupsView((), *doubts, (max(for_volumes, rest), max(for_groups, rest)), groups, why)
        drives, memory = objects, self._node.memory
        if memory.drives.value is not None:
            drives = as_seen(drives, {found.name: found.spec for found in memory.drives.value})
        unknown = unmanaged(volumes, groups, reader.list(LVMLogicalVolume))
        config = reader.get(ClusterConfig, names.CLUSTER)
        disks = DiskSettings() if config is None else config.spec.disks
        views = tuple(
            GroupView(
                lvg,
                drives,
                volumes,
                seen,
                memory.outcomes(_work(lvg)),
                self._untold.get(lvg.name),
                memory.drives.current,
                tuple(volume for volume in unknown if volume.group == lvg.spec.actual_vg_name_on_the_node),
                disks.replacements_join,
                tuple(
                    other.spec.device_selector
                    for other in groups
                    if other is not lvg and other.spec.device_selector is not None
                ),
            )
            for lvg in groups
        )
        known = {lvg.spec.actual_vg_name_on_the_node for lvg in groups}
        strange = tuple(volume for volume in unknown if volume.group not in known)
        return GroupsView(
            views,
            low_water_percent=disks.low_water_percent,
            looked_at=looker.groups_at,
            look_again=(rest or AFTER_JUDGING) if any(doubts) else None,
            drives=tuple(_on_drives(objects, drives, volumes, strange, for_sure=memory.drives.current)),
            drives_current=memory.drives.current,
        )

    def decide(self, view: GroupsView, now: datetime, _: Random) -> Plan:
        """Report every group, and do what is asked for."""
        if view.look_at_volumes or view.look_at_groups:
            return self._look(view)
        if not view.views and not view.drives:
            return NOTHING
        writes: list[Write] = [
            PatchStatus(drive, replace(drive, status=replace(drive.status, unmanaged_volumes=found)))
            for drive, found in view.drives
            if found is not None
        ]
        effects: list[Callable[[], None]] = []
        waits: list[float | None] = [view.look_again]
        decisions = [(each, judge(each, now)) for each in view.views]
        in_doubt = not view.drives_current and any(found is None for _, found in view.drives)
        if in_doubt or any(decision.look_at_drives for _, decision in decisions):
            waits.append(self._look_at_drives(effects, now))
        elif view.looked_at != self._judged:
            effects.append(partial(setattr, self, "_judged", view.looked_at))
        for each, decision in decisions:
            lvg = each.lvg
            patience = counting(lvg.status, decision.status, each.untold_since, view.low_water_percent, now)
            waits += [decision.retry_after, patience]
            if patience is None:
                writes.append(PatchStatus(lvg, replace(lvg, status=decision.status)))
            if (patience is None) != (each.untold_since is None):
                effects.append(partial(self._note, lvg.name, None if patience is None else now))
            if decision.steps:
                effects.append(partial(self._start, _work(lvg), decision.steps))
        again = min((wait for wait in waits if wait is not None), default=None)
        return Plan(writes=tuple(writes), effects=tuple(effects), requeue_after=again)

    def _look_at_drives(self, effects: list[Callable[[], None]], now: datetime) -> float | None:
        """Have the drives looked at, or say in how many seconds that may be tried again."""
        look = Look(DRIVES)
        pause = wait_before_retry(self._node.memory.last(DRIVES_LOOK, look.purpose), now)
        if pause:
            return pause
        effects.append(self._node.work(DRIVES_LOOK, (look,), self._node.disks, self._key))
        return None

    def _note(self, name: str, since: datetime | None) -> None:
        if since is None:
            self._untold.pop(name, None)
        else:
            self._untold[name] = since

    def _look(self, view: GroupsView) -> Plan:
        asked = (
            (view.look_at_volumes, view.pauses[0], self._looker.ask_for_volumes),
            (view.look_at_groups, view.pauses[1], self._looker.ask_for_groups),
        )
        unseen = view.unseen if view.why else ()
        return Plan(
            writes=tuple(PatchStatus(lvg, replace(lvg, status=not_seen(lvg, view.why))) for lvg in unseen),
            effects=tuple(
                partial(ask, self._node.disks, self._key) for wanted, pause, ask in asked if wanted and not pause
            ),
            requeue_after=min((pause for wanted, pause, _ in asked if wanted and pause), default=None),
        )

    def _start(self, work: str, steps: tuple[Run, ...]) -> None:
        self._node.hands.start(work, steps, Done(self._looker, self._node.disks, (self._key,), on_groups=True))

    def _all(self, _: Resource) -> Iterable[Key]:
        return (self._key,)


def _work(lvg: LVMVolumeGroup) -> str:
    return group_work(lvg.spec.actual_vg_name_on_the_node)


def _on_drives(
    objects: tuple[Drive, ...],
    seen: tuple[Drive, ...],
    volumes: SeenVolumes,
    strange: tuple[SeenVolume, ...],
    *,
    for_sure: bool,
) -> Iterator[tuple[Drive, tuple[str, ...] | None]]:
    """What to say of each drive that is there; of one that is away, what was known of it stays.

    A drive that is pulled is missed by LVM first: what is not seen any more is gone only if the drive was seen since
    (``for_sure``), and LVM told everything.
    """
    on: dict[str, list[SeenVolume]] = {}
    for volume in strange:
        for name in {drive_behind(path, seen) for path in volumes.devices_of(volume)}:
            on.setdefault(name, []).append(volume)
    there = {drive.name for drive in seen if drive.status.presence is Presence.ONLINE}
    for drive in objects:
        if drive.name not in there or drive.deleting:
            continue
        missed = any(volumes.get(place) is None for place in drive.status.unmanaged_volumes)
        doubt = missed and (volumes.incomplete or not for_sure)
        yield drive, None if doubt else places_of(on.get(drive.name, ()))


def _may_hold_volumes(drive: Drive) -> bool:
    """Whether LVM is worth a look for it, where nobody asks for volume groups."""
    return bool(drive.status.unmanaged_volumes) or not (drive.spec.is_clean or drive.spec.is_system)


def _is_gone(_: LVMLogicalVolume | None, after: LVMLogicalVolume | None) -> bool:
    return after is None


def _is_other_policy(before: ClusterConfig | None, after: ClusterConfig | None) -> bool:
    joined, join = ((DiskSettings() if each is None else each.spec.disks).replacements_join for each in (before, after))
    return joined != join


def _is_other_drive(before: Drive | None, after: Drive | None) -> bool:
    if before is None or after is None:
        return True
    return before.spec != after.spec or _of_interest(before) != _of_interest(after)


def _of_interest(drive: Drive) -> tuple[object, ...]:
    status = drive.status
    return status.presence, status.operational_status, status.detachment, status.replaces

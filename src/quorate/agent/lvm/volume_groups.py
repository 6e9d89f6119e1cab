"""The controller of LVMVolumeGroups: one key for all of a node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random

from quorate.agent.lvm.groups import GroupView, judge, not_seen
from quorate.agent.lvm.looker import Done, Looker
from quorate.agent.lvm.piece import group_work
from quorate.agent.node import Node
from quorate.agent.steps import Run
from quorate.api.baremetal import Drive
from quorate.api.meta import Resource
from quorate.api.storage import LVMVolumeGroup
from quorate.api.struct import replace
from quorate.engine import NOTHING, Controller, Key, PatchStatus, Plan, Reader, Watch


@dataclass(frozen=True, slots=True)
class GroupsView:
    """All volume groups of the node; no views while nobody has looked."""

    views: tuple[GroupView, ...] = ()
    look_at_volumes: bool = False
    look_at_groups: bool = False
    #: Seconds before either may be looked at again: above zero after looks that failed.
    pauses: tuple[float, float] = (0.0, 0.0)
    #: Groups about which nothing can be said, and why.
    unseen: tuple[LVMVolumeGroup, ...] = ()
    why: str = ""


class VolumeGroups:
    """Observes and decides for one node."""

    def __init__(self, node: Node, looker: Looker, key: Key) -> None:
        self._node = node
        self._looker = looker
        self._key = key

    def controller(self) -> Controller[GroupsView]:
        """What the manager runs."""
        return Controller(
            name="lvm-volume-groups",
            watches=(Watch(LVMVolumeGroup, self._all), Watch(Drive, self._all, when=_is_other_drive)),
            observe=self.observe,
            decide=self.decide,
            signals=(self._node.disks,),
            workers=1,
        )

    def observe(self, reader: Reader, key: Key) -> GroupsView | None:
        """Gather every group of the node."""
        groups = reader.list(LVMVolumeGroup)
        if key != self._key or not groups:
            return None
        volumes, seen = self._looker.current_volumes, self._looker.current_groups
        if volumes is None or seen is None:
            why = " ".join(filter(None, self._looker.troubles()))
            return GroupsView((), volumes is None, seen is None, self._looker.pauses(), groups, why)
        drives, memory = reader.list(Drive), self._node.memory
        return GroupsView(
            tuple(
                GroupView(lvg, drives, volumes, seen, memory.outcomes(_work(lvg))) for lvg in groups if not lvg.deleting
            )
        )

    def decide(self, view: GroupsView, now: datetime, _: Random) -> Plan:
        """Report every group, and do what is asked for."""
        if view.look_at_volumes or view.look_at_groups:
            return self._look(view)
        if not view.views:
            return NOTHING
        decisions = [(each.lvg, judge(each, now)) for each in view.views]
        retries = [decision.retry_after for _, decision in decisions if decision.retry_after is not None]
        return Plan(
            writes=tuple(PatchStatus(lvg, replace(lvg, status=decision.status)) for lvg, decision in decisions),
            effects=tuple(
                partial(self._start, _work(lvg), decision.steps) for lvg, decision in decisions if decision.steps
            ),
            requeue_after=min(retries, default=None),
        )

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
        self._node.hands.start(work, steps, Done(self._looker, self._node.disks, (self._key,)))

    def _all(self, _: Resource) -> Iterable[Key]:
        return (self._key,)


def _work(lvg: LVMVolumeGroup) -> str:
    return group_work(lvg.spec.actual_vg_name_on_the_node)


def _is_other_drive(before: Drive | None, after: Drive | None) -> bool:
    if before is None or after is None:
        return True
    return before.spec != after.spec or before.status.presence != after.status.presence

"""The controller of drives that are to be pulled: one key for all of a node. ``detaching`` decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random
from typing import Final

from quorate.agent.lvm.detaching import Case, DetachDecision, detached, returned
from quorate.agent.lvm.looker import Done, Looker
from quorate.agent.lvm.piece import group_work
from quorate.agent.node import Node
from quorate.agent.steps import Run
from quorate.api.baremetal import Drive
from quorate.api.meta import Resource
from quorate.api.storage import LVMVolumeGroup
from quorate.api.struct import replace
from quorate.engine import Controller, Key, PatchStatus, Plan, Reader, Watch, Write, no_keys

KEY: Final = Key("", "lvm/detachments")


@dataclass(frozen=True, slots=True)
class DetachmentsView:
    """Every drive that is to be pulled, or was; no cases while nobody has looked."""

    cases: tuple[Case, ...] = ()
    look_at_volumes: bool = False
    look_at_groups: bool = False
    #: Seconds before either may be looked at again: above zero after looks that failed.
    pauses: tuple[float, float] = (0.0, 0.0)


class Detachments:
    """Observes and decides for one node."""

    def __init__(self, node: Node, looker: Looker, groups_key: Key) -> None:
        self._node = node
        self._looker = looker
        self._groups_key = groups_key

    def controller(self) -> Controller[DetachmentsView]:
        """What the manager runs."""
        return Controller(
            name="lvm-detachments",
            watches=(Watch(Drive, _the_key), Watch(LVMVolumeGroup, no_keys)),
            observe=self.observe,
            decide=self.decide,
            signals=(self._node.disks.only(lambda key: key == KEY),),
            workers=1,
        )

    def observe(self, reader: Reader, key: Key) -> DetachmentsView | None:
        """Gather the drives that somebody asks for, with what LVM was last seen to be."""
        drives = reader.list(Drive)
        meant = [drive for drive in drives if drive.status.detach or drive.status.detachment is not None]
        if key != KEY or not meant:
            return None
        volumes, groups = self._looker.current_volumes, self._looker.current_groups
        if volumes is None or groups is None:
            return DetachmentsView((), volumes is None, groups is None, self._looker.pauses())
        lvgs, memory = reader.list(LVMVolumeGroup), self._node.memory
        return DetachmentsView(
            tuple(Case(drive, drives, lvgs, volumes, groups, memory.outcomes(_work(drive))) for drive in meant)
        )

    def decide(self, view: DetachmentsView, now: datetime, _: Random) -> Plan:
        """Report every one, and do what is next for it."""
        if view.look_at_volumes or view.look_at_groups:
            return self._look(view)
        writes: list[Write] = []
        effects: list[Callable[[], None]] = []
        waits: list[float] = []
        for case in view.cases:
            drive = case.drive
            found: DetachDecision = (detached if drive.status.detach else returned)(case, now)
            if found.detachment != drive.status.detachment:
                status = replace(drive.status, detachment=found.detachment)
                writes.append(PatchStatus(drive, replace(drive, status=status)))
            if found.steps:
                effects.append(partial(self._start, drive, found.steps))
            elif found.detachment is None:
                effects.append(partial(self._node.memory.forget, _work(drive)))
            if found.retry_after is not None:
                waits.append(found.retry_after)
        return Plan(writes=tuple(writes), effects=tuple(effects), requeue_after=min(waits, default=None))

    def _look(self, view: DetachmentsView) -> Plan:
        asked = (
            (view.look_at_volumes, view.pauses[0], self._looker.ask_for_volumes),
            (view.look_at_groups, view.pauses[1], self._looker.ask_for_groups),
        )
        return Plan(
            effects=tuple(partial(ask, self._node.disks, KEY) for wanted, pause, ask in asked if wanted and not pause),
            requeue_after=min((pause for wanted, pause, _ in asked if wanted and pause), default=None),
        )

    def _start(self, drive: Drive, steps: tuple[Run, ...]) -> None:
        beside = tuple(group_work(group) for group in _groups_in(steps))
        done = Done(self._looker, self._node.disks, (KEY, self._groups_key))
        self._node.hands.start(_work(drive), steps, done, beside=beside)


def _groups_in(steps: tuple[Run, ...]) -> Iterable[str]:
    """The groups that commands name: nobody else changes them meanwhile."""
    for step in steps:
        if step.argv[0] in ("vgremove", "vgreduce"):
            yield step.about.partition(" ")[0]


def _work(drive: Drive) -> str:
    return f"detach/{drive.name}"


def _the_key(_: Resource) -> Iterable[Key]:
    return (KEY,)

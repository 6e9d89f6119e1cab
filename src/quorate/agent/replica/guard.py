"""The guard of a second primary, which DRBD does not protect from the first.

When only the link between the two is cut, both go on writing (recordings two_primaries_2dtb_link_cut,
two_primaries_3d_disconnect).

So the younger one yields: when any of its links to a member that counts goes, it cuts the others too, loses quorum and
suspends. The guard needs no API, which the same cut may have taken away, or which this agent has not even heard yet: it
goes by its ``duty``, looks for itself, and begins before anything else does. Nor does it wait for anybody: the work on
the resource may hang, or all of the node be busy, so its own is urgent. The member stays cut off until its config no
longer says that it yields; then the usual ``adjust`` connects it again and the kernel demotes it by itself.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn

from quorate.agent.memory import Outcome
from quorate.agent.node import Node, Wake
from quorate.agent.replica.duty import PATIENCE, Duty, recall
from quorate.agent.replica.kernel import is_primary
from quorate.agent.replica.verdict import FINE, Verdict
from quorate.agent.steps import KERNEL, Look, Run, kernel_of
from quorate.api.storage.drbd import Connection, ConnectionState, DrbdStatus
from quorate.engine import Key

CUT = "cut"


@dataclass(frozen=True, slots=True)
class Guarded:
    """What the guard sees."""

    resource: str
    duty: Duty
    current: bool
    status: DrbdStatus | None
    looked: Outcome | None = None
    cut: Outcome | None = None


def guard_work(resource: str) -> str:
    """The name under which the guard acts: not behind other work on the resource."""
    return f"guard/{resource}"


def must_yield(duty: Duty | None, status: DrbdStatus | None) -> bool:
    """Whether this member is the younger primary and one of its links that count is gone."""
    return duty is not None and status is not None and is_primary(status) and duty.is_broken_by(status)


def decide(view: Guarded, now: datetime) -> Verdict:
    """Look, and if a link is gone cut the others."""
    if not view.current:
        failed = view.looked is not None and not view.looked.succeeded
        wait = PATIENCE.left(view.looked, "", now) if failed else 0.0
        return Verdict(steps=() if wait > 0 else (Look(KERNEL, view.resource),), again=wait or None)
    if view.status is None or not must_yield(view.duty, view.status):
        return FINE
    left = [link for link in view.status.connections if link.connection_state != ConnectionState.STAND_ALONE]
    if not left:
        return FINE
    wait = PATIENCE.left(view.cut, "", now)
    return Verdict(steps=() if wait > 0 else tuple(cut(view.resource, link) for link in left), again=wait or None)


def cut(resource: str, link: Connection) -> Run:
    """One link. Whatever comes of it, the others are cut too; what is left is seen by the next look."""
    argv = ("drbdsetup", "disconnect", resource, str(link.peer_node_id), "--force")
    return Run(argv, CUT, accept=tuple(range(256)), changes=(kernel_of(resource),), despite_marks=True)


class Guard:
    """Watches every resource here that has a duty: few, and only these are looked at when something happens."""

    def __init__(self, node: Node) -> None:
        self._node = node
        #: Resources to which something has happened, in that order.
        self._due: dict[str, None] = {}
        self._woken = asyncio.Event()

    async def keep(self) -> NoReturn:
        """Guard for as long as the agent lives."""
        duties = self._node.memory.duties
        unsubscribe = self._node.volumes.only(lambda key: key.name in duties).subscribe(self._wake)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(recall(self._node), name="recall of duties")
                while True:
                    await self._woken.wait()
                    self._woken.clear()
                    due, self._due = self._due, {}
                    for resource in due:
                        self.act(resource)
        finally:
            unsubscribe()

    def act(self, resource: str) -> None:
        """Do what is due about one resource."""
        duty = self._node.memory.duties.get(resource)
        if duty is None:
            return
        key = Key("", resource)
        verdict = decide(self._view(resource, duty), self._node.clock.now())
        if verdict.steps:
            done = Wake(self._node.volumes, key)
            self._node.hands.start(guard_work(resource), verdict.steps, done, urgent=True)
        if verdict.again is not None:
            asyncio.get_running_loop().call_later(verdict.again, self._wake, key)

    def _view(self, resource: str, duty: Duty) -> Guarded:
        memory, work, sighting = self._node.memory, guard_work(resource), self._node.memory.resource(resource)
        return Guarded(
            resource=resource,
            duty=duty,
            current=sighting.current,
            status=sighting.value,
            looked=memory.last(work, "look"),
            cut=memory.last(work, CUT),
        )

    def _wake(self, key: Key) -> None:
        self._due[key.name] = None
        self._woken.set()

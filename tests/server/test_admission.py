"""Who asks the maintenance broker by an object asks in their own name, unless they are an admin."""

from __future__ import annotations

import pytest

from quorate.api import all_kinds
from quorate.api.core import Node
from quorate.api.duration import Duration
from quorate.api.maintenance import Notification, Permission, PermissionRequest
from quorate.api.maintenance.action import Action, ActionType
from quorate.api.maintenance.notification import NotificationSpec
from quorate.api.maintenance.permission import PermissionSpec
from quorate.api.maintenance.permission_request import PermissionRequestSpec
from quorate.api.meta import ObjectMeta, Resource
from quorate.engine.embedded import Attempt, EmbeddedStore, Record
from quorate.engine.simulation import Simulation, run
from quorate.errors import Forbidden
from quorate.server.kubernetes.admission import admission_of
from quorate.server.kubernetes.callers import ADMIN, LOOPBACK, Caller, agent

EVERYBODY = ("system:authenticated",)
ALICE, BOB = Caller("alice", EVERYBODY), Caller("bob", EVERYBODY)
ACTION = Action(type=ActionType.SHUTDOWN_HOST, host="n", duration=Duration("1m"))


def records() -> list[Record]:
    """A request, a notification and a permission of alice's."""
    found: list[Record] = []

    async def main(sim: Simulation) -> None:
        store = await EmbeddedStore.open(None, kinds=all_kinds(), clock=sim.clock, random=sim.random("s"), inline=True)
        metadata = ObjectMeta(name="x")
        objects: tuple[Resource, ...] = (
            PermissionRequest(metadata=metadata, spec=PermissionRequestSpec(user="alice", actions=(ACTION,))),
            Notification(
                metadata=metadata, spec=NotificationSpec(user="alice", actions=(ACTION,), time=sim.clock.now())
            ),
            Permission(metadata=metadata, spec=PermissionSpec(user="alice", action=ACTION)),
        )
        for obj in objects:
            await store.create(obj)
            found.extend(store.read_page(obj.KIND).records)
        await store.create(Node(metadata=metadata))
        found.extend(store.read_page(Node.KIND).records)
        await store.close()

    run(main, seed=1)
    return found


@pytest.mark.parametrize("deleting", [False, True])
def test_nobody_speaks_for_another_and_admins_for_everybody(deleting: bool) -> None:
    def attempt(record: Record) -> Attempt:
        return Attempt(record, None if deleting else record)

    *hers, node = records()
    for record in hers:
        for allowed in (ALICE, ADMIN, LOOPBACK, Caller("root", ("quorate:admins",))):
            admission_of(allowed)(attempt(record))
        with pytest.raises(Forbidden, match=r"spec\.user is alice, and you are bob: everybody asks"):
            admission_of(BOB)(attempt(record))
        with pytest.raises(Forbidden, match=r"the agent of node n1 (deletes nothing|may write nothing of this kind)"):
            admission_of(agent("n1"))(attempt(record))
    admission_of(BOB)(attempt(node))

"""PermissionRequests, Permissions and Notifications of a live cluster, as people see and use them with kubectl."""

from __future__ import annotations

from datetime import timedelta

from quorate.api import conditions, finalizers, labels
from quorate.api.annotation_keys import MARKER
from quorate.api.baremetal import Drive
from quorate.api.conditions.maintenance import Accepted, Applied, Granted
from quorate.api.core import Node
from quorate.api.duration import Duration
from quorate.api.maintenance import (
    BrokerConfig,
    Downtime,
    LogRecord,
    Notification,
    Permission,
    PermissionRequest,
    WalleTask,
)
from quorate.api.maintenance.action import Action, ActionType, Marker, StatusCode
from quorate.api.maintenance.broker_config import BrokerConfigSpec
from quorate.api.maintenance.notification import NotificationSpec
from quorate.api.maintenance.permission_request import PermissionRequestSpec
from quorate.api.meta import ObjectMeta
from quorate.engine.simulation import Simulation, run
from quorate.maintenance import messages
from quorate.maintenance.messages import (
    Caller,
    ManagePermission,
    MarkedItems,
    PermissionCommand,
    SetMarker,
    WalleCreateTask,
)
from tests.maintenance.live.laboratory import ALICE, KEEP, SHUTDOWN, BrokerLab, broker_lab

ADMIN = Caller(name="root", admin=True)


async def done(lab: BrokerLab, *permissions: str) -> None:
    asked = ManagePermission(command=PermissionCommand.DONE, user="alice", permissions=permissions)
    answer = await lab.broker_of.broker.manage_permission(asked, ALICE)
    assert answer.status.code is StatusCode.OK, answer


def test_an_applied_request_is_answered_gets_its_permission_and_gives_it_back_when_deleted() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim) as lab:
            await lab.apply("restart", "node-1")
            request = await lab.until_code("restart", "ALLOW")
            assert request.status.permissions == ("alice-p-1",)
            assert request.status.id == ""
            assert request.status.position is None
            assert conditions.is_true(request.status.conditions, Granted)
            assert finalizers.BROKER in request.metadata.finalizers
            await lab.sleep(1)
            permission = await lab.store.get(Permission, "p-1")
            assert permission.spec.user == "alice"
            assert permission.spec.action.host == "node-1"
            assert permission.status.id == "alice-p-1"
            assert permission.status.deadline is not None
            assert permission.status.deadline - sim.clock.now() > timedelta(minutes=9)
            assert [host.name for host in permission.status.hosts] == ["node-1"]
            await lab.store.delete(PermissionRequest, "restart")
            await lab.until_no_object(PermissionRequest, "restart")
            await lab.until_no_object(Permission, "p-1")
            assert lab.broker_of.broker.ledger.permissions == ()

    run(main, seed=1)


def test_a_second_request_waits_with_its_place_and_its_blocker_and_is_granted_when_its_turn_comes() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim) as lab:
            await lab.apply("first", "node-1")
            await lab.until_code("first", "ALLOW")
            await lab.apply("second", "node-2", user="bob")
            waiting = await lab.until_code("second", "DISALLOW_TEMP")
            await lab.apply("third", "node-3", user="carol")
            assert waiting.status.id.startswith("bob-r-")
            assert waiting.status.position == 1
            [refused] = waiting.status.refused
            assert refused.action.host == "node-2"
            [blocker] = refused.issue.blockers
            assert (blocker.object, blocker.id, blocker.owner) == ("node-1", "alice-p-1", "alice")
            assert blocker.until is not None
            assert (await lab.until_code("third", "DISALLOW_TEMP")).status.position == 2
            await done(lab, "alice-p-1")
            granted = await lab.until_code("second", "ALLOW")
            assert granted.status.permissions == ("bob-p-2",)
            assert granted.status.position is None
            assert (await lab.store.get(PermissionRequest, "third")).status.position == 1
            assert (await lab.store.get(PermissionRequest, "first")).status.permissions == ()

    run(main, seed=1)


def test_deleting_a_permission_says_that_the_work_is_done() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim) as lab:
            await lab.apply("restart", "node-1")
            await lab.until_code("restart", "ALLOW")
            await lab.sleep(1)
            await lab.store.delete(Permission, "p-1")
            await lab.until_no_object(Permission, "p-1")
            assert lab.broker_of.broker.ledger.permissions == ()
            await lab.sleep(1)
            request = await lab.store.get(PermissionRequest, "restart")
            assert request.status.permissions == ()
            assert request.status.code == "ALLOW"

    run(main, seed=1)


def test_a_changed_mode_asks_again_in_that_mode() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim) as lab:
            await lab.apply("first", "node-1")
            await lab.until_code("first", "ALLOW")
            await lab.apply("second", "node-2")
            await lab.until_code("second", "DISALLOW_TEMP")
            await lab.store.patch(
                PermissionRequest, "second", patch={"spec": {"availabilityMode": "MODE_FORCE_RESTART"}}
            )
            await lab.sleep(2)
            request = await lab.store.get(PermissionRequest, "second")
            assert request.status.observed_generation == request.metadata.generation
            stored = lab.broker_of.broker.ledger.requests
            assert [entry.availability_mode for entry in stored] == ["MODE_FORCE_RESTART"]

    run(main, seed=1)


def test_nothing_is_forgotten_doubled_or_written_again_by_a_restart() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim) as lab:
            await lab.apply("first", "node-1")
            await lab.until_code("first", "ALLOW")
            await lab.apply("second", "node-2")
            await lab.until_code("second", "DISALLOW_TEMP")
            await lab.sleep(5)
            ledger = lab.broker_of.broker.ledger
            before = {
                (type(obj).__name__, obj.name): obj
                for cls in (PermissionRequest, Permission, BrokerConfig, Node, Drive)
                for obj in (await lab.store.list(cls)).items
            }
            numbers = {node.name: node.metadata.annotations for node in (await lab.store.list(Node)).items}
            lab.kill()
            await lab.sleep(1)
            lab.start()
            await lab.until_serving()
            await lab.sleep(20)
            after = lab.broker_of.broker.ledger
            assert (after.permissions, after.counters) == (ledger.permissions, ledger.counters)
            assert [entry.id for entry in after.requests] == [entry.id for entry in ledger.requests]
            assert after.epoch == ledger.epoch + 1
            for (kind, name), obj in before.items():
                found = await lab.store.get(type(obj), name)
                if kind != "Node":  # its agent beats
                    assert found.metadata.resource_version == obj.metadata.resource_version, (kind, name)
            assert numbers == {node.name: node.metadata.annotations for node in (await lab.store.list(Node)).items}

    run(main, seed=1)


def test_whoever_changes_a_projection_sees_it_put_right() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim) as lab:
            await lab.apply("restart", "node-1")
            await lab.until_code("restart", "ALLOW")
            await lab.sleep(1)
            true = await lab.store.get(Permission, "p-1")
            await lab.store.patch(Permission, "p-1", patch={"spec": {"user": "mallory", "reason": "because"}})
            await lab.store.patch_status(Permission, "p-1", patch={"deadline": None, "id": "x-p-9"})
            made_up = Permission(metadata=ObjectMeta(name="p-77"), spec=true.spec)
            await lab.store.create(made_up)
            await lab.until_no_object(Permission, "p-77")
            await lab.sleep(1)
            found = await lab.store.get(Permission, "p-1")
            assert (found.spec, found.status) == (true.spec, true.status)
            assert [entry.id for entry in lab.broker_of.broker.ledger.permissions] == ["alice-p-1"]
            # Also one whose object was taken away by force.
            await lab.store.patch(Permission, "p-1", patch={"metadata": {"finalizers": None}})
            await lab.store.delete(Permission, "p-1")
            await lab.sleep(2)
            again = await lab.store.get(Permission, "p-1")
            assert again.status == true.status
            assert again.metadata.uid != true.metadata.uid

    run(main, seed=1)


def test_what_is_asked_over_another_interface_is_shown_and_can_be_withdrawn() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim) as lab:
            assert (await lab.ask("node-1")).status.code == "ALLOW"
            answer = await lab.ask("node-2", schedule=True)
            assert answer.request_id == "alice-r-1"
            await lab.sleep(1)
            shown = await lab.store.get(PermissionRequest, "r-1")
            assert labels.PROJECTION in shown.metadata.labels
            assert shown.status.code == "DISALLOW_TEMP"
            assert shown.status.position == 1
            assert shown.status.refused[0].issue.blockers[0].owner == "alice"
            await lab.store.delete(PermissionRequest, "r-1")
            await lab.until_no_object(PermissionRequest, "r-1")
            assert lab.broker_of.broker.ledger.requests == ()
            assert await lab.permissions() == ["p-1"]

    run(main, seed=1)


def test_announced_work_counts_until_it_is_over_or_withdrawn() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim) as lab:
            action = Action(type=SHUTDOWN, host="node-1", duration=Duration("10m"))
            spec = NotificationSpec(user="alice", actions=(action,), time=sim.clock.now(), reason="new cables")
            await lab.store.create(Notification(metadata=ObjectMeta(name="cables"), spec=spec))
            nonsense = NotificationSpec(
                user="alice", actions=(Action(type=SHUTDOWN, host="x", duration=Duration("1m")),), time=sim.clock.now()
            )
            await lab.store.create(Notification(metadata=ObjectMeta(name="nonsense"), spec=nonsense))
            await lab.sleep(2)
            noted = await lab.store.get(Notification, "cables")
            assert noted.status.id == "alice-n-1"
            assert conditions.is_true(noted.status.conditions, Accepted)
            refused = conditions.find((await lab.store.get(Notification, "nonsense")).status.conditions, Accepted)
            assert refused is not None
            assert (refused.status, refused.reason) == ("False", "NoSuchHost")
            assert (await lab.ask("node-1", dry_run=True)).status.code == "DISALLOW_TEMP"
            await lab.store.delete(Notification, "cables")
            await lab.until_no_object(Notification, "cables")
            assert (await lab.ask("node-1", dry_run=True)).status.code == "ALLOW"
            again = NotificationSpec(user="alice", actions=(action,), time=sim.clock.now())
            await lab.store.create(Notification(metadata=ObjectMeta(name="again"), spec=again))
            await lab.sleep(700)
            over = conditions.find((await lab.store.get(Notification, "again")).status.conditions, Accepted)
            assert over is not None
            assert over.reason == "Over"

    run(main, seed=1)


def test_markers_tasks_log_and_configuration_have_their_objects() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim) as lab:
            broker = lab.broker_of.broker
            config = await lab.store.get(BrokerConfig, "broker")
            assert conditions.is_true(config.status.conditions, Applied)
            await lab.sleep(2)
            node = await lab.store.get(Node, "node-1")
            number = node.metadata.annotations["maintenance.quorate.io/id"]
            drives = [drive for drive in (await lab.store.list(Drive)).items if drive.spec.node_id == "node-1"]
            device = f"pdisk-{number}-{drives[0].metadata.annotations['maintenance.quorate.io/id']}"
            marked = SetMarker(marker=Marker.DISK_FAULTY, items=MarkedItems(drives=(device,), nodes=(int(number),)))
            assert (await broker.set_marker(marked, ADMIN)).status.code == "OK"
            task = messages.WalleTask(id="Task 1!", action="reboot", type="manual", issuer="robot", hosts=("node-2",))
            assert (await broker.walle_create(WalleCreateTask(task=task), ADMIN)).status.code == "ALLOW"
            await lab.sleep(3)
            assert (await lab.store.get(Drive, drives[0].name)).metadata.annotations[MARKER] == Marker.DISK_FAULTY
            assert (await lab.store.get(Node, "node-1")).metadata.annotations[MARKER] == Marker.DISK_FAULTY
            state = await broker.cluster_state(messages.ClusterStateRequest(hosts=("node-1",)), ALICE)
            assert [found.markers for found in state.hosts[0].devices if found.name == device] == [
                (Marker.DISK_FAULTY,)
            ]
            [shown] = (await lab.store.list(WalleTask)).items
            assert (shown.spec.task_id, shown.status.status) == ("Task 1!", "ok")
            assert (await lab.store.list(LogRecord)).items
            reset = messages.SetMarker(marker=Marker.DISK_FAULTY, items=marked.items, reset=True)
            assert (await broker.set_marker(reset, ADMIN)).status.code == "OK"
            await lab.sleep(1)
            assert MARKER not in (await lab.store.get(Drive, drives[0].name)).metadata.annotations
            await lab.store.patch(
                Drive, drives[0].name, patch={"metadata": {"annotations": {MARKER: "MARKER_DISK_BROKEN"}}}
            )
            await lab.sleep(1)
            assert MARKER not in (await lab.store.get(Drive, drives[0].name)).metadata.annotations
            limits = {"spec": {"clusterLimits": {"disabledNodesRatioLimit": 60}}}
            await lab.store.patch(BrokerConfig, "broker", patch=limits)
            await lab.sleep(1)
            assert lab.broker_of.model.settings.cluster_limits.disabled_nodes_ratio_limit == 60
            assert (await lab.ask("node-1")).status.code == "ALLOW"
            bad = {"spec": {"logConfig": {"ttl": "0s"}}}
            await lab.store.patch(BrokerConfig, "broker", patch=bad)
            await lab.sleep(1)
            found = conditions.find((await lab.store.get(BrokerConfig, "broker")).status.conditions, Applied)
            assert found is not None
            assert (found.status, found.reason) == ("False", "Invalid")
            assert lab.broker_of.model.settings.log_config.ttl.seconds > 0
            await lab.power_off("node-4")
            await lab.sleep(200)
            assert [each.spec.name for each in (await lab.store.list(Downtime)).items]

    run(main, seed=1)


def test_when_nothing_changes_nothing_is_written() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim) as lab:
            await lab.apply("first", "node-1", duration="5h")
            await lab.until_code("first", "ALLOW")
            await lab.apply("second", "node-2", mode=KEEP, duration="5h")
            await lab.until_code("second", "DISALLOW_TEMP")
            await lab.ask("node-3", schedule=True, duration=18000)
            await lab.sleep(150)
            count = len(lab.sent)
            await lab.sleep(120)
            assert not lab.writes(count), lab.writes(count)

    run(main, seed=1)


def test_a_configuration_set_over_an_interface_is_the_objects_and_a_deleted_one_is_made_anew() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim) as lab:
            await lab.sleep(1)
            config = BrokerConfigSpec(default_retry_time=Duration("60s"))
            answer = await lab.broker_of.broker.set_config(messages.SetConfig(config=config), ADMIN)
            assert answer.status.code == "OK"
            await lab.sleep(1)
            found = await lab.store.get(BrokerConfig, "broker")
            assert found.spec == config
            assert found.status.observed_generation == found.metadata.generation
            await lab.store.delete(BrokerConfig, "broker")
            await lab.sleep(1)
            assert (await lab.store.get(BrokerConfig, "broker")).spec == config, "what is used is not forgotten"

    run(main, seed=1)


def test_what_makes_no_sense_is_answered_once_and_kept_nowhere() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim) as lab:
            await lab.apply("elsewhere", "node-77")
            odd = PermissionRequestSpec(
                user="alice", actions=(Action(type=ActionType.ADD_HOST, host="x"),), schedule=True
            )
            await lab.store.create(PermissionRequest(metadata=ObjectMeta(name="odd"), spec=odd))
            unknown = await lab.until_code("elsewhere", "NO_SUCH_HOST")
            unsupported = await lab.until_code("odd", "ERROR")
            for request in (unknown, unsupported):
                assert request.status.id == ""
                assert request.status.permissions == ()
                condition = conditions.find(request.status.conditions, Granted)
                assert condition is not None
                assert condition.status == "False"
            assert lab.broker_of.broker.ledger.requests == ()
            for name in ("elsewhere", "odd"):
                await lab.store.delete(PermissionRequest, name)
                await lab.until_no_object(PermissionRequest, name)

    run(main, seed=1)


def test_why_something_is_refused_is_told_anew_when_that_changes() -> None:
    """Of requests by objects and of those that came over another interface, without anybody asking again."""

    async def main(sim: Simulation) -> None:
        async with broker_lab(sim) as lab:
            await lab.apply("first", "node-1")
            await lab.until_code("first", "ALLOW")
            await lab.apply("second", "node-2", user="bob")
            await lab.until_code("second", "DISALLOW_TEMP")
            stored = await lab.ask("node-3", schedule=True)
            await lab.sleep(2)
            shown = "r-" + stored.request_id.rpartition("-")[2]

            async def blockers(name: str) -> dict[str, bool]:
                [refused] = (await lab.store.get(PermissionRequest, name)).status.refused
                return {blocker.object: blocker.until is not None for blocker in refused.issue.blockers}

            assert await blockers("second") == {"node-1": True}
            assert (await blockers(shown))["node-1"] is True
            written = lab.broker_of.broker.ledger.revision
            # It goes down under its permission: nobody knows when it is back.
            await lab.power_off("node-1")
            await lab.sleep(60)
            assert await blockers("second") == {"node-1": False}
            assert (await blockers(shown))["node-1"] is False
            assert lab.broker_of.broker.ledger.revision == written
            second = await lab.store.get(PermissionRequest, "second")
            assert second.status.code == "DISALLOW_TEMP"

    run(main, seed=1)

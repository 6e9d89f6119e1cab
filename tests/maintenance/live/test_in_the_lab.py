"""The live broker over simulated hardware: what volumes forbid, what may go down, and that it really may."""

from __future__ import annotations

import pytest

from quorate.api.annotation_keys import BROKER_ID, EVACUATE
from quorate.api.baremetal import Drive
from quorate.api.core import Node, PersistentVolumeClaim
from quorate.api.core.claim import ClaimSpec
from quorate.api.maintenance import BrokerConfig, Permission
from quorate.api.maintenance.action import AvailabilityMode, IssueType, LockKind
from quorate.api.meta import ObjectMeta
from quorate.api.storage import ReplicatedVolume, ReplicatedVolumeReplica
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.layout import Layout
from quorate.maintenance import messages
from quorate.maintenance.moments import SECOND
from quorate.volumes.transitions import unconfirmed_vote_step
from tests.maintenance.live.laboratory import ALICE, FORCE, KEEP, MAX, REPLACE, BrokerLab, broker_lab

NONE, AVAILABILITY, CONSISTENCY, BOTH = (
    Replication.NONE,
    Replication.AVAILABILITY,
    Replication.CONSISTENCY,
    Replication.CONSISTENCY_AND_AVAILABILITY,
)
LARGE = Layout(nodes=8)


async def lift_limits(lab: BrokerLab) -> None:
    """Let only volumes have a say."""
    limits = {"disabledNodesRatioLimit": 0}
    await lab.store.patch(BrokerConfig, "broker", patch={"spec": {"clusterLimits": limits, "tenantLimits": limits}})
    await lab.sleep(1)


async def volume(lab: BrokerLab, level: Replication, *, attached: bool = True) -> tuple[list[str], str]:
    """A volume, the nodes of its members, and the one where it is in use, if it is."""
    await lab.create("v", await lab.provide(level))
    await lab.until_ready()
    members = await lab.members()
    diskful = [
        member.node_name
        for member in (await lab.volume()).status.datamesh.members
        if member.type is ReplicaType.DISKFUL
    ]
    if attached:
        await lab.attach("v", diskful[0])
    await lab.sleep(5)
    return members, diskful[0]


@pytest.mark.parametrize(
    ("level", "mode", "codes"),
    [
        # In use on the first member: what of shutting down the second, and, with that permitted, the third.
        (AVAILABILITY, MAX, ["ALLOW", "DISALLOW_TEMP"]),
        (AVAILABILITY, KEEP, ["ALLOW", "DISALLOW_TEMP"]),
        (CONSISTENCY, MAX, ["DISALLOW_TEMP"]),
        (CONSISTENCY, KEEP, ["DISALLOW_TEMP"]),
        (CONSISTENCY, FORCE, ["ALLOW"]),
        (BOTH, MAX, ["ALLOW", "DISALLOW_TEMP"]),
        (BOTH, KEEP, ["ALLOW", "DISALLOW_TEMP"]),
        (BOTH, FORCE, ["ALLOW", "DISALLOW_TEMP"]),
    ],
)
def test_a_volume_in_use_elsewhere_must_stay_writable(
    level: Replication, mode: AvailabilityMode, codes: list[str]
) -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim, LARGE) as lab:
            await lift_limits(lab)
            members, used_on = await volume(lab, level)
            others = [node for node in members if node != used_on]
            answers = [await lab.ask(node, mode=mode) for node in others]
            assert [answer.status.code for answer in answers] == codes
            refused = next((answer for answer in answers if answer.refused), None)
            if refused is not None:
                issue = refused.refused[0].issue
                assert issue is not None
                assert issue.type is IssueType.TOO_MANY_UNAVAILABLE_VDISKS
                assert "volume v" in issue.message
            spare = next(node for node in lab.cluster.nodes if node not in members)
            assert (await lab.ask(spare)).status.code == "ALLOW"

    run(main, seed=1)


@pytest.mark.parametrize(
    ("level", "codes"),
    [
        (NONE, ["DISALLOW_TEMP"]),
        (AVAILABILITY, ["ALLOW", "DISALLOW_TEMP", "DISALLOW_TEMP"]),
        (CONSISTENCY, ["ALLOW", "DISALLOW_TEMP"]),
        (BOTH, ["ALLOW", "DISALLOW_TEMP", "DISALLOW_TEMP"]),
    ],
)
def test_a_volume_that_nobody_uses_keeps_its_copies(level: Replication, codes: list[str]) -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim, LARGE) as lab:
            await lift_limits(lab)
            members, _ = await volume(lab, level, attached=False)
            assert [(await lab.ask(node)).status.code for node in members] == codes

    run(main, seed=1)


def test_the_host_that_uses_a_volume_alone_may_go_down_with_it() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim, LARGE) as lab:
            await lift_limits(lab)
            _, used_on = await volume(lab, NONE)
            refused = await lab.ask(used_on)
            # Nobody else uses it, but it is the only copy.
            assert refused.status.code == "DISALLOW_TEMP"
            assert (await lab.ask(used_on, mode=FORCE)).status.code == "ALLOW"

    run(main, seed=1)


def test_what_is_permitted_can_be_taken_down_and_the_volume_serves_on() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim, LARGE) as lab:
            members, used_on = await volume(lab, BOTH)
            other = next(node for node in members if node != used_on)
            assert (await lab.ask(other)).status.code == "ALLOW"
            await lab.power_off(other)
            await lab.sleep(60)
            assert used_on in (await lab.volume()).status.published_on
            replica = next(each for each in await lab.replicas() if each.spec.node_name == used_on)
            assert replica.status.drbd.status is not None
            assert replica.status.drbd.status.devices[0].quorum
            node = lab.broker_of.model.nodes_of(other)[0]
            assert node.state == "DOWN"
            # The deadline passes, the host is still down: it keeps its lock.
            await lab.sleep(2000)
            assert [entry.action.host for entry in lab.broker_of.broker.ledger.permissions] == [other]
            assert (await lab.store.get(Permission, "p-1")).status.held_down
            lab.cluster.inject(faults.NodeUp(other))
            await lab.until_no_object(Permission, "p-1", 200)

    run(main, seed=1)


def test_a_silent_agent_counts_as_down_for_others_and_as_up_for_itself() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim, LARGE) as lab:
            members, used_on = await volume(lab, BOTH)
            silent = next(node for node in members if node != used_on)
            third = next(node for node in members if node not in (used_on, silent))
            lab.cluster.inject(faults.CutApi(silent))
            await lab.sleep(60)
            assert lab.broker_of.model.nodes_of(silent)[0].state == "DOWN"
            # Its kernel is there, as its peers say: the third may go as far as the volume is concerned, but one node
            # of eight is the most that may be away.
            refused = await lab.ask(third)
            issue = refused.refused[0].issue
            assert issue is not None
            assert issue.type is IssueType.DISABLED_NODES_LIMIT_REACHED
            await lift_limits(lab)
            assert (await lab.ask(third, dry_run=True)).status.code == "ALLOW"
            assert not lab.broker_of.model.nodes_of(silent)[0].surely_down
            # Shutting the silent one down is a question like any other: with the third permitted it is too much.
            assert (await lab.ask(third)).status.code == "ALLOW"
            assert (await lab.ask(silent)).status.code == "DISALLOW_TEMP"

    run(main, seed=1)


def test_a_node_that_is_surely_down_may_be_worked_on() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim, LARGE) as lab:
            members, used_on = await volume(lab, BOTH)
            dead = next(node for node in members if node != used_on)
            await lab.power_off(dead)
            await lab.sleep(120)
            assert not lab.broker_of.model.nodes_of(dead)[0].surely_down
            await lab.sleep(600)
            assert lab.broker_of.model.nodes_of(dead)[0].surely_down
            assert (await lab.ask(dead)).status.code == "ALLOW"

    run(main, seed=1)


def test_numbers_are_given_once_also_across_restarts_and_never_to_two() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim, Layout(nodes=5)) as lab:
            cls = await lab.provide(BOTH)
            for name in ("v", "w"):
                await lab.create(name, cls)
                await lab.until_ready(name)
            await lab.sleep(3)
            kinds = (Node, Drive, ReplicatedVolume, ReplicatedVolumeReplica)

            async def numbers() -> dict[tuple[str, str], str]:
                return {
                    (kind.__name__, obj.name): obj.metadata.annotations.get(BROKER_ID, "")
                    for kind in kinds
                    for obj in (await lab.store.list(kind)).items
                }

            before = await numbers()
            assert all(before.values()), before
            for kinds_ in (("Node",), ("Drive",), ("ReplicatedVolume", "ReplicatedVolumeReplica")):
                given = [number for (kind, _), number in before.items() if kind in kinds_]
                assert len(set(given)) == len(given)
            lab.kill()
            await lab.store.delete(ReplicatedVolume, "w")
            lab.start()
            await lab.until_serving()
            await lab.until_gone("w")
            await lab.create("w", cls)
            await lab.until_ready("w")
            await lab.sleep(3)
            after = await numbers()
            assert {key: after[key] for key in before if not key[1].startswith("w")} == {
                key: number for key, number in before.items() if not key[1].startswith("w")
            }
            reborn = {after[key] for key in after if key[1].startswith("w")}
            assert not reborn & set(before.values()) - {before[key] for key in before if key[0] in ("Node", "Drive")}

    run(main, seed=1)


@pytest.mark.parametrize(
    ("slip", "least", "most"), [("800000000", 800000001, 800000009), ("999999999999", 1, 1000)], ids=["high", "absurd"]
)
def test_a_number_that_somebody_made_up_costs_no_time_and_not_all_numbers(slip: str, least: int, most: int) -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim, Layout(nodes=3)) as lab:
            await lab.sleep(3)
            await lab.store.patch(Node, "node-1", patch={"metadata": {"annotations": {BROKER_ID: slip}}})
            await lab.store.create(Node(metadata=ObjectMeta(name="node-0")))
            await lab.sleep(3)
            given = (await lab.store.get(Node, "node-0")).metadata.annotations[BROKER_ID]
            assert least <= int(given) <= most
            assert lab.broker_of.broker.ledger.counters.nodes <= most

    run(main, seed=1)


def test_a_number_that_two_have_stays_with_the_older() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim, Layout(nodes=3)) as lab:
            await lab.sleep(3)
            one = (await lab.store.get(Node, "node-1")).metadata.annotations[BROKER_ID]
            await lab.sleep(5)
            await lab.store.create(Node(metadata=ObjectMeta(name="node-0", annotations={BROKER_ID: one})))
            await lab.sleep(3)
            assert (await lab.store.get(Node, "node-1")).metadata.annotations[BROKER_ID] == one
            given = (await lab.store.get(Node, "node-0")).metadata.annotations[BROKER_ID]
            assert given not in ("", one)
            model = lab.broker_of.model
            assert sorted(node.host for node in model.nodes()) == ["node-0", "node-1", "node-2", "node-3"]
            assert model.nodes_of(one)[0].host == "node-1"
            assert model.nodes_of(given)[0].host == "node-0"

    run(main, seed=1)


def test_a_drive_of_a_volume_in_use_can_be_replaced_when_the_rest_carries_it() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim, LARGE) as lab:
            await lift_limits(lab)
            members, used_on = await volume(lab, BOTH)
            others = [node for node in members if node != used_on]

            async def replace(node: str) -> messages.PermissionResponse:
                drives = {
                    drive.path for drive in lab.broker_of.model.drives_of(lab.broker_of.model.nodes_of(node)[0].id)
                }
                path = min(drives)
                action = messages.Action(type=REPLACE, host=node, devices=(path,), duration=60 * SECOND)
                return await lab.broker_of.broker.permission_request(
                    messages.PermissionRequest(user="alice", actions=(action,)), ALICE
                )

            assert (await replace(others[0])).status.code == "ALLOW"
            refused = await replace(others[1])
            assert refused.status.code == "DISALLOW_TEMP"
            blockers = refused.refused[0].issue.blockers  # type: ignore[union-attr]
            assert [(blocker.lock, blocker.owner) for blocker in blockers] == [(LockKind.PERMISSION, "alice")]

    run(main, seed=1)


def test_a_permission_and_a_step_that_changes_votes_do_not_pass_each_other() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim, Layout(nodes=5)) as lab:
            await lift_limits(lab)
            members, used_on = await volume(lab, BOTH)
            leaving = next(node for node in members if node != used_on)
            staying = next(node for node in members if node not in (used_on, leaving))
            assert (await lab.ask(staying, duration=900)).status.code == "ALLOW"
            await lab.store.patch(Node, leaving, patch={"metadata": {"annotations": {EVACUATE: "true"}}})
            await lab.sleep(60)
            # The replacement joins and is copied to, hidden; but it is not shown while a member may go down.
            status = (await lab.volume()).status
            [transition] = status.datamesh_transitions
            assert transition.reason == "PermissionHeld"
            assert "permission alice-p-1 of alice, until" in transition.message
            assert unconfirmed_vote_step(await lab.volume()) is None
            done = messages.ManagePermission(
                command=messages.PermissionCommand.DONE, user="alice", permissions=("alice-p-1",)
            )
            assert (await lab.broker_of.broker.manage_permission(done, ALICE)).status.code == "OK"

            refusals = 0

            async def moved() -> bool:
                nonlocal refusals
                for node in await lab.members():
                    step = unconfirmed_vote_step(await lab.volume())
                    answer = await lab.ask(node, mode=FORCE, dry_run=True)
                    if step is not None and step == unconfirmed_vote_step(await lab.volume()):
                        refusals += 1
                        assert answer.status.code == "DISALLOW_TEMP", (step, answer)
                        issue = answer.refused[0].issue
                        assert issue is not None
                        assert issue.blockers[0].lock is LockKind.TRANSITION
                return leaving not in await lab.members()

            await lab.until(f"{leaving} is empty", moved, 300)
            assert refusals

    run(main, seed=1)


def test_a_host_is_not_given_away_with_the_one_that_uses_its_volume() -> None:
    """One restarts, is back and writes again; then the other goes, under a permission that is still good."""

    async def main(sim: Simulation) -> None:
        async with broker_lab(sim, LARGE) as lab:
            await lift_limits(lab)
            members, _ = await volume(lab, CONSISTENCY, attached=False)
            user = next(node for node in sorted(lab.cluster.nodes) if node not in members)
            await lab.attach("v", user)
            await lab.sleep(5)
            assert (await lab.ask(members[1], dry_run=True)).status.code == "DISALLOW_TEMP"
            for order in ((user, members[1]), (members[1], user)):
                answer = await lab.ask(*order, partial=True, dry_run=True)
                assert [permission.action.host for permission in answer.permissions] == [user]
                assert (await lab.ask(*order, dry_run=True)).status.code == "DISALLOW_TEMP"

    run(main, seed=1)


@pytest.mark.parametrize("used", [False, True])
def test_a_dead_host_may_be_worked_on_while_the_other_copy_is_good(used: bool) -> None:
    """Its volume stands, or could not be written to: that is so already."""

    async def main(sim: Simulation) -> None:
        async with broker_lab(sim, LARGE) as lab:
            await lift_limits(lab)
            members, used_on = await volume(lab, CONSISTENCY, attached=used)
            dead = next(node for node in members if node != used_on)
            await lab.power_off(dead)
            await lab.sleep(60)
            answer = await lab.ask(dead)
            assert (answer.status.code, answer.status.reason) == ("ALLOW", "")
            # The last good copy is another matter.
            other = await lab.ask(used_on)
            assert other.status.code == "DISALLOW_TEMP"

    run(main, seed=1)


def test_a_dead_host_with_the_only_copy_may_be_worked_on_once_its_grace_is_over() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim, LARGE) as lab:
            await lift_limits(lab)
            (only,), _ = await volume(lab, NONE)
            await lab.power_off(only)
            await lab.sleep(60)
            assert (await lab.ask(only, dry_run=True)).status.code == "DISALLOW_TEMP"
            await lab.sleep(600)
            assert (await lab.ask(only)).status.code == "ALLOW"

    run(main, seed=1)


def test_a_node_that_was_just_lost_is_named_as_what_is_in_the_way() -> None:
    """Its agent still counts as heard; its peers say that it is not there."""

    async def main(sim: Simulation) -> None:
        async with broker_lab(sim, LARGE) as lab:
            await lift_limits(lab)
            members, used_on = await volume(lab, BOTH)
            lost, asked = (node for node in members if node != used_on)
            replica = next(
                member.name for member in (await lab.volume()).status.datamesh.members if member.node_name == lost
            )
            await lab.power_off(lost)
            for _ in range(8):
                await lab.sleep(5)
                answer = await lab.ask(asked, dry_run=True)
                assert answer.status.code == "DISALLOW_TEMP"
                issue = answer.refused[0].issue
                assert issue is not None
                assert replica in [blocker.object for blocker in issue.blockers], (lab.sim.clock.now(), issue)
                assert "vdisk-" not in issue.message

    run(main, seed=1)


def test_a_volume_that_can_lose_nobody_is_a_blocker_itself() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim, LARGE) as lab:
            await lift_limits(lab)
            (only,), _ = await volume(lab, NONE, attached=False)
            user = next(node for node in sorted(lab.cluster.nodes) if node != only)
            await lab.attach("v", user)
            await lab.sleep(5)
            issue = (await lab.ask(only)).refused[0].issue
            assert issue is not None
            assert [(blocker.object, blocker.lock, blocker.until) for blocker in issue.blockers] == [("v", None, None)]
            assert f"in use on {user}" in issue.message

    run(main, seed=1)


def test_a_volume_goes_by_the_claim_that_it_was_made_for() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim, LARGE) as lab:
            await lift_limits(lab)
            (only,), _ = await volume(lab, NONE, attached=False)
            user = next(node for node in sorted(lab.cluster.nodes) if node != only)
            await lab.attach("v", user)
            claim = PersistentVolumeClaim(
                metadata=ObjectMeta(name="data", namespace="default"), spec=ClaimSpec(volume_name="v")
            )
            await lab.store.create(claim)
            await lab.sleep(5)
            issue = (await lab.ask(only)).refused[0].issue
            assert issue is not None
            assert issue.message.startswith("claim default/data (volume v): v-0 cannot go")
            assert [blocker.object for blocker in issue.blockers] == ["default/data"]

    run(main, seed=1)

"""Ask, drain, shut down; ask, attach, shut down: I/O never stands for somebody whom the broker was not asked about."""

from __future__ import annotations

import pytest

from quorate.api import conditions
from quorate.api.conditions.rv import PublishSucceeded
from quorate.api.conditions.rva import Attached
from quorate.api.meta import Condition, ConditionStatus, NodeName, ObjectMeta, VolumeName
from quorate.api.storage import ReplicatedVolume, ReplicatedVolumeAttachment
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rva import ReplicatedVolumeAttachmentSpec
from quorate.engine.simulation import Simulation, for_each_seed, run
from quorate.explain.listing import fetch
from quorate.explain.story import tell
from quorate.lab import faults
from quorate.lab.layout import Layout
from quorate.maintenance import messages
from quorate.volumes import locking
from tests.maintenance.live.laboratory import ALICE, FORCE, BrokerLab, broker_lab
from tests.maintenance.live.test_in_the_lab import lift_limits
from tests.volumes.attach.stories import ALL, NAMES, Story

FIVE = Layout(nodes=5)
LEVELS = [pytest.param(each, id=NAMES[each]) for each in ALL]
#: Layouts that cannot be written to without one of their copies.
NEEDS_ALL = (Replication.NONE, Replication.CONSISTENCY)
D, TB = ReplicaType.DISKFUL, ReplicaType.TIE_BREAKER


async def wanted(lab: BrokerLab, node: str) -> None:
    """Somebody wants the volume there."""
    spec = ReplicatedVolumeAttachmentSpec(replicated_volume_name=VolumeName("v"), node_name=NodeName(node))
    await lab.store.create(ReplicatedVolumeAttachment(metadata=ObjectMeta(name=f"on-{node}"), spec=spec))


async def attached(lab: BrokerLab, node: str) -> Condition:
    found = conditions.find((await lab.store.get(ReplicatedVolumeAttachment, f"on-{node}")).status.conditions, Attached)
    assert found is not None
    return found


async def formed(lab: BrokerLab, level: Replication) -> Story:
    await lift_limits(lab)
    await lab.create("v", await lab.provide(level))
    await lab.until_ready()
    await lab.sleep(5)
    return Story(lab)


async def permitted(lab: BrokerLab, node: str) -> None:
    """Of a volume with one copy the broker gives that copy's node only by force, whether it is in use or not."""
    answer = await lab.ask(node)
    if answer.status.code != "ALLOW":
        answer = await lab.ask(node, mode=FORCE)
    assert answer.status.code == "ALLOW"


async def give_back(lab: BrokerLab) -> None:
    ids = tuple(entry.id for entry in lab.broker_of.broker.ledger.permissions)
    done = messages.ManagePermission(command=messages.PermissionCommand.DONE, user="alice", permissions=ids)
    await lab.broker_of.broker.manage_permission(done, ALICE)


@pytest.mark.parametrize(
    ("level", "to"),
    [
        pytest.param(level, to, id=f"{NAMES[level]} to {to}")
        for level in ALL
        for to in ("a copy", "the tie-breaker", "elsewhere")
        if not (level is Replication.NONE and to == "a copy")
        and not (level is not Replication.AVAILABILITY and to == "the tie-breaker")
    ],
)
def test_ask_drain_shut_down(level: Replication, to: str) -> None:
    """The permission was given because of who used the volume then: whoever comes later waits, or can do without."""

    async def main(sim: Simulation) -> None:
        async with broker_lab(sim, FIVE) as lab:
            story = await formed(lab, level)
            copies, ties = await story.nodes(D), await story.nodes(TB)
            places = {"a copy": copies[1:], "the tie-breaker": ties, "elsewhere": [await story.free_node()]}[to]
            old, new = copies[0], places[0]
            await wanted(lab, old)
            await story.until_primary(old)
            await permitted(lab, old)
            await lab.store.delete(ReplicatedVolumeAttachment, f"on-{old}")
            await wanted(lab, new)
            await lab.sleep(60)
            await lab.power_off(old)
            await lab.sleep(60)
            # Whoever has it can write.
            for user in story.primaries():
                assert await story.write(user, "while it is down"), f"I/O stands on {user}"
            said = await attached(lab, new)
            if level in NEEDS_ALL or (level is Replication.AVAILABILITY and to == "elsewhere"):
                assert story.primaries() == []
                assert said.reason == "PermissionHeld", said
                assert f"node {old} may go down by permission" in said.message
            else:
                assert story.primaries() == [new]
                assert said.status is ConditionStatus.TRUE
            lab.cluster.inject(faults.NodeUp(old))
            await lab.sleep(60)
            await give_back(lab)
            await story.until_primary(new)
            assert await story.write(new, "afterwards")

    run(main, seed=11)


@pytest.mark.parametrize("level", LEVELS)
def test_ask_attach_shut_down(level: Replication) -> None:
    """Nobody uses the volume when the permission is given; and it is told at all three places why nobody may then."""

    async def main(sim: Simulation) -> None:
        async with broker_lab(sim, FIVE) as lab:
            story = await formed(lab, level)
            copies = await story.nodes(D)
            away, user = copies[0], copies[-1] if len(copies) > 1 else await story.free_node()
            await permitted(lab, away)
            await wanted(lab, user)
            await lab.store.patch(ReplicatedVolume, "v", patch={"spec": {"publishOn": [user]}})
            await lab.sleep(30)
            if level in NEEDS_ALL:
                volume, story_told = (
                    await lab.volume(),
                    tell(await fetch(lab.store, sim.clock.now()), "v", sim.clock.now()),
                )
                assert story_told is not None
                published = conditions.find(volume.status.conditions, PublishSucceeded)
                assert published is not None
                assert (published.reason, (await attached(lab, user)).reason) == ("PermissionHeld", "PermissionHeld")
                assert "may go down by permission" in volume.status.message
                explained = [wait for wait in story_told.waits if wait.reason == "PermissionHeld"]
                assert any("could not be written to" in wait.message and away in wait.message for wait in explained)
            await lab.power_off(away)
            await lab.sleep(60)
            for primary in story.primaries():
                assert await story.write(primary, "while it is down"), f"I/O stands on {primary}"
            assert story.primaries() == ([] if level in NEEDS_ALL else [user])
            lab.cluster.inject(faults.NodeUp(away))
            await lab.sleep(60)
            await give_back(lab)
            await story.until_primary(user)
            assert await story.write(user, "afterwards")

    run(main, seed=12)


@pytest.mark.parametrize("level", LEVELS)
def test_who_asks_for_a_host_is_told_first_what_could_not_move_away(level: Replication) -> None:
    """With the dry run, with the request itself, and in the object: what is in use there, and nowhere else then."""

    async def main(sim: Simulation) -> None:
        async with broker_lab(sim, FIVE) as lab:
            story = await formed(lab, level)
            node = (await story.nodes(D))[0]
            await wanted(lab, node)
            await story.until_primary(node)
            await lab.sleep(5)
            tried = await lab.ask(node, mode=FORCE, dry_run=True)
            asked = await lab.ask(node, mode=FORCE)
            assert (tried.status.code, asked.status.code) == ("ALLOW", "ALLOW")
            assert tried.status.reason == asked.status.reason
            if level in NEEDS_ALL:
                assert f"volume v on {node}" in asked.status.reason
                assert "not moved" in asked.status.reason
            else:
                assert asked.status.reason == ""
            # Once nobody uses it there is nothing to be moved.
            await give_back(lab)
            await lab.store.delete(ReplicatedVolumeAttachment, f"on-{node}")
            await story.until_primary()
            await lab.sleep(5)
            # (What force costs is still told: 1D has no other copy.)
            assert "not moved" not in (await lab.ask(node, mode=FORCE, dry_run=True)).status.reason

    run(main, seed=13)


async def cross(sim: Simulation) -> tuple[bool, list[str]]:
    """A grant and an attachment on their way at the same time: whether the one was given, and whom the other served."""
    chance = sim.random("people")
    async with broker_lab(sim, FIVE) as lab:
        story = await formed(lab, Replication.CONSISTENCY)
        away, user = await story.nodes(D)
        lab.faults.latency = lab.faults.watch_latency = 0.3
        await wanted(lab, user)
        await lab.sleep(chance.random())
        answer = await lab.ask(away)
        await lab.sleep(30)
        return answer.status.code == "ALLOW", story.primaries()


def test_a_grant_and_an_attachment_do_not_pass_each_other() -> None:
    outcomes: list[tuple[bool, bool]] = []

    async def main(sim: Simulation) -> None:
        granted, served = await cross(sim)
        outcomes.append((granted, bool(served)))

    for_each_seed(main, range(16))
    # One of the two, never both; and both ways round, or nothing was shown.
    assert set(outcomes) == {(True, False), (False, True)}, outcomes


def test_without_a_claim_they_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: attachments that only look, and claim nothing, are passed by grants."""
    monkeypatch.setattr(locking, "_attachment_begun", lambda _, __: None)
    outcomes: list[tuple[bool, bool]] = []

    async def main(sim: Simulation) -> None:
        granted, served = await cross(sim)
        outcomes.append((granted, bool(served)))

    for_each_seed(main, range(16))
    assert (True, True) in outcomes, outcomes

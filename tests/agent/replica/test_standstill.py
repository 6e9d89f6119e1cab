"""What should move in the kernel and does not: noticed within a minute, cured where that is safe, told (F2, F5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace as changed
from datetime import timedelta
from random import Random

import pytest

from quorate.agent.replica.decide import decide
from quorate.agent.replica.standstill import Noted, Sign, Signs, noted
from quorate.agent.replica.view import View
from quorate.api.storage.drbd import Connection, DrbdStatus, ReplicaType
from quorate.api.struct import replace
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.kernel.io import IoState
from quorate.lab.kernel.states import Slip
from tests.agent.replica.builders import NOW, actual, config, kernel, link, outcome, peer, replica, view
from tests.agent.replica.builders import commands as commands_of
from tests.agent.replica.test_life import Commands, expect_quiet, spied, until_whole, with_volume
from tests.agent.replica.test_stories import grow_disks, take_into_use, until_disks_have_grown
from tests.lab.handmade import HandMadeVolume
from tests.lab.laboratory import Laboratory

Story = Callable[[Laboratory, HandMadeVolume, Commands], Awaitable[None]]


def marked(one: Connection, out_of_sync: int) -> Connection:
    return replace(one, peer_devices=(replace(one.peer_devices[0], out_of_sync=out_of_sync),))


def paused(one: Connection) -> Connection:
    return replace(one, peer_devices=(replace(one.peer_devices[0], resync_suspended="user,peer"),))


def play(monkeypatch: pytest.MonkeyPatch, story: Story, *, members: int = 2, seed: int = 1) -> None:
    async def main(sim: Simulation) -> None:
        with spied(monkeypatch) as commands:
            await with_volume(sim, lambda lab, volume: story(lab, volume, commands), members=members)

    run(main, seed=seed)


def disk_of(lab: Laboratory, node: str, resource: str = "pvc-1") -> str:
    lab.cluster.driver.catch_up()
    found = lab.cluster.node(node).host.kernel.status(resource)
    return str(found[0]["devices"][0]["disk-state"]) if found and found[0]["devices"] else ""


@pytest.mark.parametrize("slow", ["new-peer", "new-path", "new-minor", "attach"])
def test_a_member_whose_up_was_given_up_half_way_comes_up_whole(monkeypatch: pytest.MonkeyPatch, slow: str) -> None:
    """drbdadm gives each drbdsetup five seconds, and the first one of a machine may load a module (F2)."""

    async def story(lab: Laboratory, volume: HandMadeVolume, commands: Commands) -> None:
        lab.cluster.inject(faults.Slow("node-1", f"drbdsetup {slow}", 6.0))

        def release(node: str, said: str) -> None:
            if node == "node-1" and " up " in said:
                lab.cluster.inject(faults.Release("node-1"))

        commands.after = release
        await volume.form()
        await until_whole(volume)
        assert [said for said in commands.on("node-1") if "--skip-disk" in said] == []
        await expect_quiet(lab, commands)

    play(monkeypatch, story)


@pytest.mark.parametrize("members", [2, 3])
def test_a_disk_that_stays_negotiating_is_attached_within_a_minute_and_a_half(
    monkeypatch: pytest.MonkeyPatch, members: int
) -> None:
    async def story(lab: Laboratory, volume: HandMadeVolume, commands: Commands) -> None:
        await volume.form()
        kernel = lab.cluster.node("node-1").host.kernel
        lab.cluster.inject(faults.Mishap("node-1", Slip.NEGOTIATING))
        lab.cluster.driver.catch_up()
        assert kernel.detach(1000).ok
        lab.cluster.driver.touch()
        await lab.sleep(5)
        assert disk_of(lab, "node-1") == "Negotiating"
        replica = await volume.replica(0)
        assert replica.status.drbd.actual.disk == ""
        await lab.sleep(60)
        assert disk_of(lab, "node-1") == "UpToDate"
        await until_whole(volume)
        assert sum("disconnect" in said for said in commands.on("node-1")) == 2
        await expect_quiet(lab, commands)

    play(monkeypatch, story, members=members)


@pytest.mark.parametrize("seed", range(12))
def test_no_order_of_our_commands_leaves_a_disk_that_is_not_attached(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Whatever was begun of a resource, in whatever order, and wherever the agent died: it comes up whole."""

    async def story(lab: Laboratory, volume: HandMadeVolume, commands: Commands) -> None:
        chance = Random(f"orders/{seed}")
        await volume.form()
        node = lab.cluster.node("node-1")
        file = "/var/lib/quorate/drbd.d/pvc-1.res"
        for _ in range(chance.randint(2, 5)):
            words = chance.choice(
                [
                    f"drbdadm -c {file} up pvc-1",
                    f"drbdadm -c {file} adjust pvc-1",
                    f"drbdadm -c {file} adjust --skip-disk pvc-1",
                    "drbdsetup down pvc-1",
                    "drbdsetup detach 1000 --force",
                    "drbdsetup disconnect pvc-1 1",
                    "drbdsetup disconnect pvc-1 2",
                ]
            )
            if chance.random() < 0.4:
                slow = chance.choice(["new-peer", "new-path", "new-minor", "attach", "connect", "peer-device-options"])
                lab.cluster.inject(faults.Slow("node-1", f"drbdsetup {slow}", 6.0))
            if chance.random() < 0.4:
                lab.cluster.inject(faults.Mishap("node-1", Slip.NEGOTIATING))
            lab.cluster.driver.catch_up()
            node.host.start(words.split())
            lab.cluster.driver.touch()
            if chance.random() < 0.4:
                lab.cluster.inject(faults.AgentKill("node-1"))
            await lab.sleep(chance.choice([0.0, 0.5, 4.0, 20.0]))
        lab.cluster.inject(faults.Release("node-1"))
        await lab.sleep(240)
        assert disk_of(lab, "node-1") == "UpToDate"
        await until_whole(volume)
        await expect_quiet(lab, commands)

    play(monkeypatch, story, members=3, seed=seed)


def test_an_agent_loads_the_modules_of_drbd_when_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(lab: Laboratory, volume: HandMadeVolume, commands: Commands) -> None:
        host = lab.cluster.node("node-1").host
        assert host.read("/sys/module/drbd_transport_tcp/initstate") == b"live\n"
        lab.cluster.inject(faults.Reboot("node-1"))
        await lab.sleep(20)
        assert host.read("/sys/module/drbd_transport_tcp/initstate") == b"live\n"

    play(monkeypatch, story)


async def fall_behind(lab: Laboratory, volume: HandMadeVolume, node: str = "node-3") -> None:
    """Node-1 writes while a member is away; then it comes back."""
    await volume.form()
    await volume.promote(0)
    lab.cluster.inject(faults.NodeDown(node))
    await lab.sleep(10)
    for number in range(40):
        await write_at(lab, "node-1", number * 65536, f"while it was away {number}")
    lab.cluster.inject(faults.NodeUp(node))


async def write_at(lab: Laboratory, node: str, offset: int, tag: str) -> None:
    lab.cluster.driver.catch_up()
    io = lab.cluster.node(node).host.kernel.write(1000, offset, 4096, tag)
    lab.cluster.driver.touch()
    for _ in range(100):
        if io.state is not IoState.BLOCKED:
            break
        await lab.sleep(0.1)
    assert io.state is IoState.DONE


def contents(lab: Laboratory, volume: HandMadeVolume) -> list[list[object]]:
    found = []
    for number in volume.diskful:
        host = lab.cluster.node(volume.members[number][0]).host
        device = host.block_device(f"/dev/quorate-1/{volume.logical_volume_name(number)}")
        assert device is not None
        found.append([device.read(block * 65536) for block in range(64)])
    return found


def flows(lab: Laboratory, node: str) -> list[str]:
    lab.cluster.driver.catch_up()
    links = lab.cluster.node(node).host.kernel.status("pvc-1")[0]["connections"]
    return [peer["replication-state"] for link in links for peer in link["peer_devices"]]


async def reasons(volume: HandMadeVolume, number: int) -> set[str]:
    return {each.reason for each in (await volume.replica(number)).status.drbd.standstills}


async def until_told(lab: Laboratory, volume: HandMadeVolume, number: int, reason: str, within: float) -> None:
    for _ in range(int(within)):
        if reason in await reasons(volume, number):
            return
        await lab.sleep(1)
    raise AssertionError(f"{reason} of {number} was not told within {within} s")


@pytest.mark.parametrize("slip", [Slip.HALF_BITMAP, Slip.LATCHED, Slip.UNDRAINED])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_copy_that_should_be_copying_and_is_not_is_told_and_cured(
    monkeypatch: pytest.MonkeyPatch, slip: Slip, seed: int
) -> None:
    """F5, LINBIT/drbd 40, E4: it stays as it is until its links are made anew; writes go on, and all of them arrive."""

    async def story(lab: Laboratory, volume: HandMadeVolume, commands: Commands) -> None:
        for _ in range(2):  # whichever of its peers it meets first
            lab.cluster.inject(faults.Mishap("node-3", slip))
        await fall_behind(lab, volume)
        await lab.sleep(10)
        assert disk_of(lab, "node-3") in ("Outdated", "Inconsistent")
        await write_at(lab, "node-1", 50 * 65536, "while it stood still")
        await until_told(lab, volume, 2, "SyncStalled", 60)
        await lab.sleep(120)
        assert disk_of(lab, "node-3") == "UpToDate"
        await until_whole(volume)
        assert await reasons(volume, 2) == set()
        found = contents(lab, volume)
        assert found[0] == found[1] == found[2]
        assert not [said for said in commands.on("node-1") if "disconnect" in said]  # it is in use
        await expect_quiet(lab, commands)

    play(monkeypatch, story, members=3, seed=seed)


def test_a_member_that_gives_what_nobody_takes_connects_that_link_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """F5: SyncSource with a standing percentage here, Established and UpToDate there; a growth waits for it."""

    async def story(lab: Laboratory, volume: HandMadeVolume, commands: Commands) -> None:
        lab.cluster.inject(faults.Mishap("node-2", Slip.ONE_SIDED))
        await volume.form()
        lab.cluster.inject(faults.NodeDown("node-3"))
        await lab.sleep(10)
        lab.cluster.driver.catch_up()
        assert lab.cluster.node("node-2").host.kernel.new_current_uuid(1000, force_resync=True).ok
        lab.cluster.driver.touch()
        await lab.sleep(10)
        lab.cluster.inject(faults.NodeUp("node-3"))
        await lab.sleep(20)
        assert "SyncSource" in flows(lab, "node-2")
        await lab.sleep(160)
        assert flows(lab, "node-2") == ["Established", "Established"]
        await until_whole(volume)
        assert await reasons(volume, 1) == set()
        assert len([said for said in commands.on("node-2") if "disconnect" in said]) == 1
        # What its marks said may be gone with them: whose copy that is about is on record.
        told = (await volume.replica(1)).status.drbd.actual
        assert told.met_unsure == 0
        assert told.met_unsure_at is not None
        await grow_disks(volume)
        await until_disks_have_grown(volume)
        await take_into_use(volume)
        await expect_quiet(lab, commands, without_log=True)

    play(monkeypatch, story, members=3)


def test_a_resync_that_somebody_paused_by_hand_is_left_to_him(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(lab: Laboratory, volume: HandMadeVolume, commands: Commands) -> None:
        lab.cluster.inject(faults.Mishap("node-3", Slip.LATCHED))
        lab.cluster.inject(faults.Mishap("node-3", Slip.LATCHED))
        await fall_behind(lab, volume)
        await lab.sleep(5)
        lab.cluster.driver.catch_up()
        for other in (0, 1):
            lab.cluster.node("node-3").host.kernel.pause_sync("pvc-1", other, 0)
        lab.cluster.driver.touch()
        await lab.sleep(180)
        assert not [said for said in commands.on("node-3") if "disconnect" in said]
        told = (await volume.replica(2)).status.drbd.standstills
        assert "paused" in told[0].message

    play(monkeypatch, story, members=3)


#: Since so many seconds a copy has stood still, of which nothing was copied.
LONG = 60


def standing(view: View, sign: Sign, *, peer: int = -1, seconds: float = LONG) -> View:
    signs = {(sign, peer): Noted(NOW - timedelta(seconds=seconds))}
    return changed(view, signs=signs, seen_at=NOW)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        # History 422: Consistent beside a connected UpToDate one.
        (kernel("Consistent"), ["drbdsetup disconnect pvc-1 1", "drbdadm adjust pvc-1"]),
        (kernel("Inconsistent"), ["drbdsetup disconnect pvc-1 1", "drbdadm adjust pvc-1"]),
        # The link over which something was begun goes first.
        (
            kernel("Outdated", links=(link(1), link(2, flow="WFBitMapT"))),
            ["drbdsetup disconnect pvc-1 2", "drbdadm adjust pvc-1"],
        ),
        # Two that meet with equal generations throw their marks away: what has marks is copied anew.
        (kernel("Outdated", links=(link(1), marked(link(2), 1640))), ["drbdsetup invalidate 1000"]),
        (kernel("Inconsistent", role="Primary"), []),
        (kernel("Inconsistent", links=(paused(link(1)), link(2))), []),
    ],
)
def test_what_is_done_about_a_copy_that_stands_still(status: DrbdStatus, expected: list[str]) -> None:
    used = replica(config=config(primary=status.role == "Primary"))
    found = decide(standing(view(used, status), Sign.TAKING), NOW)
    assert commands_of(found) == expected
    assert [each.reason for each in found.status.drbd.standstills] == ["SyncStalled"]


@pytest.mark.parametrize("seconds", [-0.001, -3600.0, 0.0, 44.0])
def test_what_has_not_stood_for_a_while_is_left_alone(seconds: float) -> None:
    """A pass may be a little older than what it finds noted, where time does not stand still: so on every real node."""
    found = decide(standing(view(shown=kernel("Inconsistent")), Sign.TAKING, seconds=seconds), NOW)
    assert commands_of(found) == []
    assert found.status.drbd.standstills == ()
    assert found.again is not None


def test_a_second_cure_tries_the_other_link_and_waits_ever_longer() -> None:
    stalled = standing(view(shown=kernel("Inconsistent")), Sign.TAKING)
    tried = outcome("rejoin", "taking", exit_code=0, age=5)
    assert commands_of(decide(changed(stalled, outcomes={"rejoin": tried}), NOW)) == []
    tried = changed(tried, at=NOW - timedelta(seconds=25))
    found = commands_of(decide(changed(stalled, outcomes={"rejoin": tried}), NOW))
    assert found[0] == "drbdsetup disconnect pvc-1 2"
    tried = changed(tried, times=2)
    assert commands_of(decide(changed(stalled, outcomes={"rejoin": tried}), NOW)) == []


@pytest.mark.parametrize("counter", [2**63 - 1, 2**64 - 8])
def test_a_counter_that_is_not_sane_is_no_progress(counter: int) -> None:
    def look(out_of_sync: int) -> DrbdStatus:
        return kernel("Inconsistent", links=(marked(link(1, flow="SyncTarget"), out_of_sync), link(2)))

    signs = noted({}, look(counter), NOW)
    for second, left in ((10, 5000), (20, 4000), (30, counter), (40, 4000), (50, 6000)):
        signs = noted(signs, look(left), NOW + timedelta(seconds=second))
    assert signs[Sign.TAKING, -1].since == NOW + timedelta(seconds=20)


@pytest.mark.parametrize("sign", [Sign.TAKING, Sign.GIVING])
def test_a_copy_that_begins_anew_with_more_to_copy_moves(sign: Sign) -> None:
    """Nearly done with one peer, which went; or invalidated in the middle: there is more to copy than ever."""

    def look(peer: int, left: int) -> DrbdStatus:
        if sign is Sign.GIVING:
            return kernel(links=(link(1), marked(link(2, flow="SyncSource", disk="Inconsistent"), left)))
        copying = marked(link(peer, flow="SyncTarget"), left)
        return kernel("Inconsistent", links=(copying, link(3 - peer)))

    signs: Signs = noted({}, look(1, 64), NOW)
    for second in range(10, 600, 10):
        signs = noted(signs, look(2, 50_000_000 - second * 4), NOW + timedelta(seconds=second))
    assert {key[0]: each.since for key, each in signs.items()} == {sign: NOW + timedelta(seconds=590)}


def test_a_link_that_is_paused_waits_for_another_to_copy() -> None:
    """The real kernel has the second source so for as long as the first one gives (``replace_member.json``)."""
    beside = link(2, flow="PausedSyncS", disk="Inconsistent")
    assert noted({}, kernel(links=(link(1), marked(beside, 32724))), NOW) == {}


def test_the_word_dependency_alone_is_no_sign() -> None:
    """E3: it is shown in every healthy resync beside a member without a disk."""
    beside = replace(link(2, disk="Diskless").peer_devices[0], peer_client=True, resync_suspended="dependency")
    signs: Signs = {}
    for second in range(0, 100, 10):
        copying = marked(link(1, flow="SyncTarget"), 8192 - 64 * second)
        status = kernel("Inconsistent", links=(copying, replace(link(2), peer_devices=(beside,))))
        signs = noted(signs, status, NOW + timedelta(seconds=second))
    assert signs[Sign.TAKING, -1].since == NOW + timedelta(seconds=90)
    settled = kernel("UpToDate", links=(link(1), replace(link(2), peer_devices=(beside,))))
    assert noted(signs, settled, NOW) == {}


def sessions(lab: Laboratory, node: str) -> int:
    """How often a link of the node was dropped as soon as it was agreed on."""
    return sum("Aborting" in line for _, line in lab.cluster.world.log(node))


def test_a_link_that_loops_is_tried_once_per_pause_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """16,000 aborted state changes in 20 minutes after a clean reboot."""

    async def story(lab: Laboratory, volume: HandMadeVolume, commands: Commands) -> None:
        await volume.form()
        await volume.promote(0)
        lab.cluster.inject(faults.NodeDown("node-2"))
        await lab.sleep(10)
        for _ in range(3):
            lab.cluster.inject(faults.Mishap("node-2", Slip.RECONNECT_LOOP))
        lab.cluster.inject(faults.NodeUp("node-2"))
        await until_told(lab, volume, 1, "ReconnectLoop", 30)
        await lab.sleep(10)
        before = sessions(lab, "node-2")
        assert before < 100
        await write_at(lab, "node-1", 0, "meanwhile")
        await lab.sleep(240)
        assert sessions(lab, "node-2") - before < 100
        await until_whole(volume)
        assert await reasons(volume, 1) == set()
        found = contents(lab, volume)
        assert found[0] == found[1] == found[2]
        await expect_quiet(lab, commands)

    play(monkeypatch, story, members=3)


def test_a_link_that_was_given_up_is_brought_back_also_by_a_member_without_its_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """E4: a refused state leaves a link StandAlone; the disk of the member that is so may be gone at the same time."""

    async def story(lab: Laboratory, volume: HandMadeVolume, commands: Commands) -> None:
        await volume.form()
        lab.cluster.inject(faults.DriveFail("node-3", "1"))
        kernel_3 = lab.cluster.node("node-3").host.kernel
        lab.cluster.driver.catch_up()
        assert kernel_3.detach(1000, force=True).ok
        lab.cluster.driver.touch()
        await lab.sleep(30)
        for other in (0, 1):
            lab.cluster.driver.catch_up()
            assert kernel_3.disconnect("pvc-1", other, force=True).ok
            lab.cluster.driver.touch()
        await lab.sleep(90)
        lab.cluster.driver.catch_up()
        states = {link["connection-state"] for link in kernel_3.status("pvc-1")[0]["connections"]}
        assert states == {"Connected"}

    play(monkeypatch, story, members=3)


@pytest.mark.parametrize(
    ("disk", "left", "doubted"), [("Outdated", 0, 0), ("Outdated", 64, None), ("Inconsistent", 0, None)]
)
def test_whose_copy_may_be_taken_for_equal_is_told_before_it_is_met_again(
    disk: str, left: int, doubted: int | None
) -> None:
    """Its peers may have had marks that it did not show, and drop them where both are of one generation (E2)."""
    stalled = kernel(disk, links=(marked(link(1), left), link(2)))
    found = decide(standing(view(shown=stalled), Sign.TAKING), NOW)
    assert commands_of(found)
    told = found.status.drbd.actual
    assert (told.met_unsure, told.met_unsure_at) == (doubted, None if doubted is None else NOW)


def test_marks_against_a_member_that_is_away_are_none_of_a_copy_that_stands_still() -> None:
    away = marked(link(2, "Connecting", flow="Off", disk="DUnknown"), 4096)
    found = decide(standing(view(shown=kernel("Outdated", links=(link(1), away))), Sign.TAKING), NOW)
    assert commands_of(found) == ["drbdsetup disconnect pvc-1 1", "drbdadm adjust pvc-1"]


def test_what_was_tried_counts_until_all_is_well_again() -> None:
    """Just after the only link was taken down nothing stands still, and it may again as soon as it is up."""
    tried = outcome("rejoin", "taking", exit_code=0, age=2)
    one = replica(config=config(peers=(peer(1),)))
    made = kernel("Outdated", links=(link(1, "Connecting", flow="Off", disk="DUnknown"),))
    assert decide(view(one, made, outcomes={"rejoin": tried}), NOW).drop == ()
    assert decide(view(one, kernel(links=(link(1),)), outcomes={"rejoin": tried}), NOW).drop == ("rejoin",)
    long_ago = changed(tried, at=NOW - timedelta(hours=1))
    assert decide(view(one, made, outcomes={"rejoin": long_ago}), NOW).drop == ("rejoin",)


def test_a_copy_that_never_gets_well_is_tried_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(lab: Laboratory, volume: HandMadeVolume, commands: Commands) -> None:
        for _ in range(100):
            lab.cluster.inject(faults.Mishap("node-2", Slip.LATCHED))
        await fall_behind(lab, volume, "node-2")
        await lab.sleep(1800)
        cures = [said for said in commands.on("node-2") if "disconnect" in said or "invalidate" in said]
        assert 3 <= len(cures) <= 12

    play(monkeypatch, story, members=2)


@pytest.mark.parametrize(
    ("links", "redundancy", "expected"),
    [
        # The tie-breaker is away: with this member gone, too, whoever uses the volume would stand still.
        ((link(1, role="Primary"), link(2, "Connecting", flow="Off", disk="DUnknown")), 1, False),
        ((link(1, role="Primary"), link(2, disk="Diskless")), 1, True),
        ((link(1), link(2, "Connecting", flow="Off", disk="DUnknown")), 1, True),
        # It stands still already, for want of a second copy.
        ((link(1, role="Primary"), link(2, "Connecting", flow="Off", disk="DUnknown")), 2, True),
    ],
)
def test_no_user_loses_quorum_by_a_cure(links: tuple[Connection, ...], redundancy: int, expected: bool) -> None:
    members = (peer(1), peer(2, ReplicaType.TIE_BREAKER))
    one = replica(config=config(peers=members, quorum_minimum_redundancy=redundancy))
    found = decide(standing(view(one, kernel("Inconsistent", links=links)), Sign.TAKING), NOW)
    assert bool(commands_of(found)) is expected
    assert ("quorum" in found.status.drbd.standstills[0].message) is not expected


def test_links_that_tell_of_a_stale_copy_are_not_made_anew_and_that_is_said() -> None:
    giving = kernel(links=(link(1), link(2, flow="SyncSource")))
    kept = replica(config=config(keep_links=True))
    found = decide(standing(view(kept, giving), Sign.GIVING, peer=2, seconds=200), NOW)
    assert commands_of(found) == []
    assert "compared first" in found.status.drbd.standstills[0].message


def test_a_link_that_was_given_up_does_not_wait_for_another_that_loops() -> None:
    alone = kernel(links=(link(1, "StandAlone", flow="Off", disk="DUnknown"), link(2, "StandAlone", flow="Off")))
    looped = changed(outcome("part 2", "loop", exit_code=0, age=5), times=6)
    found = decide(view(shown=alone, outcomes={"part 2": looped}), NOW)
    assert commands_of(found) == ["drbdsetup connect pvc-1 1"]
    both = {"part 1": looped, "part 2": looped}
    assert commands_of(decide(view(shown=alone, outcomes=both), NOW)) == []


def test_a_new_member_that_stands_still_is_told_of_at_once() -> None:
    new = replica(config=config(), actual=actual(initial_sync_completed=False))
    stalled = kernel("Inconsistent", links=(link(1, flow="WFBitMapT"), link(2)))
    found = decide(standing(view(new, stalled), Sign.TAKING, seconds=45), NOW)
    assert [each.reason for each in found.status.drbd.standstills] == ["SyncStalled"]
    assert not found.held_back

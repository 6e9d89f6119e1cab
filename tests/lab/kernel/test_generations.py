"""Who knows which writes it lacks: generations and marks of members out of sight of each other, or without a disk."""

from __future__ import annotations

import pytest

from quorate.lab.kernel import metadata as md
from quorate.lab.kernel import status

from .lab import MIB, MINOR, NAME, Lab


def attach(lab: Lab, i: int) -> None:
    """As drbdadm does it, and wait until it has caught up."""
    found = md.find(lab.disks[i])
    assert found is not None
    md.apply_activity_log(found)
    assert lab.kernels[i].attach(MINOR, lab.disks[i], f"/dev/disk{i}").ok
    lab.wait(5)


def test_a_copy_that_a_diskless_primary_does_not_reach_gets_what_it_missed() -> None:
    lab = Lab(3, options={"quorum": "off"})
    lab.primary(0)
    for i in (0, 1):
        assert lab.kernels[i].detach(MINOR).ok
    assert lab.wrote(0, "before") == "done"
    lab.cut({0}, {1, 2})
    blocked = lab.write(0, "after")
    attach(lab, 1)
    assert (lab.disk(1), lab.disks[1].read(0)) == ("UpToDate", "before")
    lab.cut_pairs((0, 1))
    assert blocked.state.value == "done"
    assert (lab.disk(1), lab.disk(2)) == ("Outdated", "UpToDate")
    lab.heal()
    assert (lab.disk(1), lab.disks[1].read(0), lab.disks[2].read(0)) == ("UpToDate", "after", "after")
    assert lab.peer(2, 1)["out-of-sync"] == 0


def test_what_a_member_lacks_stays_marked_while_it_is_met_without_its_disk() -> None:
    lab = Lab(3)
    lab.primary(0)
    assert lab.kernels[2].detach(MINOR).ok
    assert lab.wrote(0) == "done"
    lab.cut_pairs((1, 2))
    lab.heal()
    assert lab.connection(1, 2) == "Connected"
    assert (lab.peer(0, 2)["out-of-sync"], lab.peer(1, 2)["out-of-sync"]) == (4, 4)


def test_a_primary_that_leaves_politely_outdates_whom_it_leaves() -> None:
    lab = Lab(3)
    lab.primary(0)
    assert lab.kernels[0].disconnect(NAME, 2).ok
    lab.wait(1)
    assert (lab.disk(2), lab.peer(0, 2)["peer-disk-state"], lab.peer(1, 2)["peer-disk-state"]) == (("Outdated",) * 3)
    assert lab.kernels[0].connect(NAME, 2).ok
    lab.wait(5)
    assert lab.healthy()


def test_without_quorum_the_one_who_leaves_outdates_itself_and_tells_nobody() -> None:
    lab = Lab(2, options={"quorum": "off"})
    lab.primary(0)
    assert lab.kernels[1].disconnect(NAME, 0).ok
    lab.wait(1)
    assert (lab.disk(1), lab.peer(0, 1)["peer-disk-state"]) == ("Outdated", "DUnknown")


def test_a_disk_let_go_of_while_a_primary_goes_on_is_outdated_when_it_returns_alone() -> None:
    lab = Lab(3)
    lab.primary(0)
    assert lab.kernels[2].detach(MINOR).ok
    lab.cut({0, 1}, {2})
    lab.world.power_off("n2")
    lab.world.power_on("n2")
    assert lab.up(2).ok
    assert lab.disk(2) == "Outdated"


def test_a_disk_let_go_of_while_nobody_writes_is_as_good_as_before() -> None:
    lab = Lab(3)
    assert lab.kernels[2].detach(MINOR).ok
    lab.cut({0, 1}, {2})
    lab.world.power_off("n2")
    lab.world.power_on("n2")
    assert lab.up(2).ok
    assert lab.disk(2) == "UpToDate"


def test_quorum_remembered_from_before_a_power_loss_lasts_until_the_members_are_counted() -> None:
    lab = Lab(2)
    lab.primary(0)
    assert lab.kernels[1].disconnect(NAME, 0).ok
    lab.wait(1)
    lab.world.power_off("n0")
    lab.world.power_on("n0")
    assert lab.up(0).ok
    assert lab.quorum(0), "it was quorate alone"
    assert lab.kernels[1].connect(NAME, 0).ok
    lab.wait(5)
    lab.cut({0}, {1})
    assert not lab.quorum(0), "the other may go on without it now"


def fresh(lab: Lab, i: int) -> list[object]:
    found = lab.kernels[i].find(NAME)
    return [status.resource_status(found)] if found is not None else []


def test_a_status_that_was_seen_before_is_shown_again_only_while_it_is_true() -> None:
    lab = Lab(3, (2,))

    def look() -> None:
        for i in range(3):
            assert lab.kernels[i].status(NAME) == fresh(lab, i)

    steps = (
        lambda: lab.primary(0),
        lambda: lab.write(0),
        lambda: lab.kernels[0].read(MINOR, 0),
        lambda: lab.kernels[0].suspend_io(MINOR),
        lambda: lab.write(0, "held"),
        lambda: lab.kernels[0].resume_io(MINOR),
        lambda: lab.kernels[0].pause_sync(NAME, 1, 0),
        lambda: lab.cut({0, 2}, {1}),
        lambda: lab.write(0, "alone", block=5),
        lambda: lab.heal(1.5),
        lambda: lab.kernels[0].resume_sync(NAME, 1, 0),
        lambda: lab.wait(5),
        lambda: lab.kernels[1].detach(MINOR),
        lambda: lab.kernels[0].resource_options(NAME, {"quorum": "off"}),
        lambda: lab.kernels[1].del_peer(NAME, 0),
        lambda: lab.kernels[1].down(NAME),
    )
    for step in steps:
        look()
        step()
        look()


def two_primaries_apart(*writers: int) -> Lab:
    """Three copies, 0 and 1 are Primary and lose touch with each other only; then they write, in this order."""
    lab = Lab(3, net={"allow-two-primaries": "yes"}, options={"quorum-minimum-redundancy": "2"})
    assert (lab.primary(0), lab.primary(1)) == (0, 0)
    lab.cut_pairs((0, 1))
    assert [lab.wrote(i, f"by {i}") for i in writers] == ["done"] * len(writers)
    return lab


@pytest.mark.parametrize("writers", [(0, 1), (1, 0)])
def test_two_primaries_that_wrote_apart_look_for_each_other_in_vain_while_both_are_quorate(
    writers: tuple[int, int],
) -> None:
    lab = two_primaries_apart(*writers)
    lab.heal(60)
    assert (lab.connection(0, 1), lab.connection(1, 0)) == ("Connecting", "Connecting")
    assert (lab.role(0), lab.role(1), lab.disk(0), lab.disk(1)) == ("Primary", "Primary", "UpToDate", "UpToDate")


@pytest.mark.parametrize("writers", [(0, 1), (1, 0), (1,), (0,)])
def test_one_that_gives_up_its_own_data_meets_the_other_whoever_wrote_last(writers: tuple[int, ...]) -> None:
    lab = two_primaries_apart(*writers)
    for peer in (0, 2):
        assert lab.kernels[1].disconnect(NAME, peer, force=True).ok
    assert lab.kernels[1].secondary(NAME).ok
    lab.heal()
    assert lab.kernels[1].connect(NAME, 0, discard_my_data=True).ok
    lab.wait(10)
    assert (lab.connection(0, 1), lab.role(0)) == ("Connected", "Primary")
    assert (lab.disk(1), lab.disks[1].read(0)) == ("UpToDate", lab.disks[0].read(0))


def test_a_primary_that_was_cut_off_takes_what_the_quorate_side_wrote_and_gives_nothing() -> None:
    lab = two_primaries_apart()
    lab.cut({0}, {1, 2})
    blocked = lab.write(0, "never acknowledged")
    assert lab.wrote(1, "by 1") == "done"
    lab.heal(30)
    assert blocked.state.value == "failed"
    assert lab.healthy()
    assert [lab.disks[i].read(0) for i in range(3)] == ["by 1"] * 3


def test_of_two_that_wrote_alone_the_quorate_one_is_right() -> None:
    lab = Lab(2, options={"quorum": "off"})
    lab.primary(0)
    lab.cut({0}, {1})
    assert lab.wrote(0, "by 0") == "done"
    assert lab.primary(1, force=True) == 0
    assert lab.wrote(1, "by 1") == "done"
    assert lab.kernels[1].secondary(NAME).ok
    for i, votes in ((0, "1"), (1, "2")):
        assert lab.kernels[i].resource_options(NAME, {"quorum": votes}).ok
    assert (lab.quorum(0), lab.quorum(1)) == (True, False)
    lab.heal()
    assert [lab.disks[i].read(0) for i in range(2)] == ["by 0", "by 0"]


def test_a_new_copy_gets_what_its_source_takes_from_a_third_meanwhile() -> None:
    """The third has not been told of the new copy yet, and so marks nothing for it."""
    lab = Lab(3, options={"quorum": "off"}, size=256 * MIB)
    lab.cut({0}, {1}, {2})
    for i in (0, 1):
        assert lab.kernels[i].disconnect(NAME, 2).ok
        assert lab.kernels[i].del_peer(NAME, 2).ok
        assert lab.kernels[i].forget_peer(NAME, 2).ok
    lab.add_peer(1, 2)
    assert lab.kernels[1].connect(NAME, 2).ok
    lab.world.power_off("n2")
    md.create(lab.disks[2], 7)
    lab.world.power_on("n2")
    assert lab.up(2).ok
    lab.primary(0)
    written = range(100, 2100, 50)
    for block in written:
        assert lab.write(0, block, block).state.value == "done"
    assert lab.kernels[0].secondary(NAME).ok
    lab.world.set_cut([("n0", "n1")])
    while lab.peer(1, 2)["replication-state"] != "SyncSource":
        lab.wait(0.1)
    lab.heal(60)
    assert lab.disk(2) == "UpToDate"
    assert [lab.disks[2].read(block * 4096) for block in written] == list(written)


def test_a_copy_under_way_is_not_over_because_its_source_became_whole_itself() -> None:
    """The taker has the generation of its first source by then, and lacks what it was to take from the second."""
    lab = Lab(4, seed=5, size=256 * MIB)
    assert lab.kernels[0].invalidate(MINOR).ok
    lab.wait(1.6)
    assert lab.disk(0) == "Inconsistent"
    assert lab.kernels[3].detach(MINOR).ok
    lab.wait(8)
    lab.primary(2)
    assert lab.kernels[2].open(MINOR, "dd", 1)
    lab.kernels[2].write(MINOR, 33623 * 4096, 20000 * 4096, "first")
    lab.wait(3.3)
    lab.cut_pairs((0, 2), (2, 3))
    lab.wait(1)
    lab.kernels[2].write(MINOR, 10353 * 4096, 20000 * 4096, "second")
    lab.wait(3)
    lab.world.set_cut([])
    attach(lab, 3)
    lab.wait(60)
    assert lab.healthy()
    contents = [lab.disks[i].contents for i in range(4)]
    assert not any(contents[0].differing(other, 0, 65000) for other in contents[1:])

"""Who goes on after a loss, who stops, who takes over: the table of the recordings and of facts/drbd9.md."""

from __future__ import annotations

import pytest

from quorate.lab.kernel import metadata as md

from .lab import MINOR, NAME, Lab

Q32 = {"quorum": "32"}


@pytest.mark.parametrize(
    ("nodes", "diskless", "options", "primary", "gone", "goes_on", "takes_over"),
    [
        pytest.param(3, (), {"quorum-minimum-redundancy": "2"}, 0, {2}, True, None, id="3D survives one loss"),
        pytest.param(3, (), {"quorum-minimum-redundancy": "2"}, 0, {1, 2}, False, 1, id="3D isolated primary stops"),
        pytest.param(3, (2,), {}, 0, {1}, True, None, id="2D+TB survives the loss of a diskful member"),
        pytest.param(3, (2,), {}, 0, {2}, True, None, id="2D+TB survives the loss of the tie-breaker"),
        pytest.param(3, (2,), {}, 0, {1, 2}, False, 1, id="2D+TB isolated primary stops, the others take over"),
        pytest.param(2, (), {"quorum": "2"}, 0, {1}, False, None, id="2D with quorum 2 stops after one loss"),
        pytest.param(2, (), {"quorum": "off"}, 0, {1}, True, 1, id="2D without quorum goes on on both sides"),
    ],
)
def test_a_primary_goes_on_after_a_loss_only_if_nobody_else_can_take_over(
    nodes: int,
    diskless: tuple[int, ...],
    options: dict[str, str],
    primary: int,
    gone: set[int],
    goes_on: bool,
    takes_over: int | None,
) -> None:
    lab = Lab(nodes, diskless, options=options)
    assert lab.primary(primary) == 0
    lab.cut(set(range(nodes)) - gone, gone)
    assert lab.wrote(primary) == ("done" if goes_on else "blocked")
    if takes_over is not None:
        assert lab.primary(takes_over) == 0
        assert lab.wrote(takes_over, "newer") == "done"


def test_an_overtaken_primary_returns_as_secondary_its_writes_fail_and_it_catches_up() -> None:
    lab = Lab(3, options={"quorum-minimum-redundancy": "2"})
    lab.primary(0)
    lab.cut({0}, {1, 2})
    blocked = lab.write(0, "lost")
    lab.primary(1)
    assert lab.wrote(1, "kept") == "done"
    lab.heal()
    assert blocked.state.value == "failed"
    assert lab.role(0) == "Secondary"
    assert lab.healthy()
    assert {disk.read(0) for disk in lab.disks.values()} == {"kept"}


def test_a_blocked_write_completes_when_the_peers_return() -> None:
    lab = Lab(3, options={"quorum-minimum-redundancy": "2"})
    lab.primary(0)
    lab.cut({0}, {1}, {2})
    io = lab.write(0, "late")
    assert io.blocked
    lab.heal()
    assert io.state.value == "done"
    assert {disk.read(0) for disk in lab.disks.values()} == {"late"}


@pytest.mark.parametrize("seed", range(6))
def test_with_a_numeric_quorum_the_tie_breaker_does_not_let_the_other_diskful_member_take_over(seed: int) -> None:
    lab = Lab(3, (2,), options={"quorum": "2"}, seed=seed)
    lab.primary(0)
    lab.cut({0}, {1, 2})
    assert lab.primary(1) == -25


def test_a_cut_between_the_diskful_members_outdates_the_secondary_through_the_tie_breaker() -> None:
    lab = Lab(3, (2,))
    lab.primary(0)
    lab.cut_pairs((0, 1))
    assert lab.disk(1) == "Outdated"
    assert lab.wrote(0) == "done"
    assert lab.primary(1) == -2
    lab.heal()
    assert lab.healthy()


def test_two_primaries_with_a_tie_breaker_end_in_split_brain_when_their_link_is_cut() -> None:
    lab = Lab(3, (2,), net={"allow-two-primaries": "yes"})
    assert (lab.primary(0), lab.primary(1)) == (0, 0)
    lab.cut_pairs((0, 1))
    assert (lab.wrote(0, "a"), lab.wrote(1, "b")) == ("done", "done")
    lab.heal()
    assert (lab.connection(0, 1), lab.connection(1, 0)) == ("StandAlone", "StandAlone")


def test_two_primaries_with_a_third_diskful_member_stay_connecting_and_suspending_one_does_not_help() -> None:
    lab = Lab(3, net={"allow-two-primaries": "yes"}, options={"quorum-minimum-redundancy": "2"})
    assert (lab.primary(0), lab.primary(1)) == (0, 0)
    lab.cut_pairs((0, 1))
    assert (lab.wrote(0, "a"), lab.wrote(1, "b")) == ("done", "done")
    lab.heal()
    assert (lab.connection(0, 1), lab.connection(1, 0)) == ("Connecting", "Connecting")
    assert lab.kernels[1].suspend_io(MINOR).ok
    assert lab.wrote(1, "c") == "blocked"


def test_a_primary_that_disconnects_by_force_stops_at_once_and_later_yields_without_split_brain() -> None:
    lab = Lab(3, net={"allow-two-primaries": "yes"}, options={"quorum-minimum-redundancy": "2"})
    lab.primary(0), lab.primary(1)
    lab.cut_pairs((0, 1))
    for peer in (0, 2):
        assert lab.kernels[1].disconnect(NAME, peer, force=True).ok
    assert lab.suspended(1)
    blocked = lab.write(1, "lost")
    assert lab.wrote(0, "kept") == "done"
    lab.world.set_cut([])
    for peer in (0, 2):
        lab.kernels[1].connect(NAME, peer)
    lab.wait(10)
    assert blocked.state.value == "failed"
    assert (lab.role(1), lab.healthy()) == ("Secondary", True)


def test_without_quorum_both_sides_write_and_one_has_to_discard_its_data() -> None:
    lab = Lab(2, options={"quorum": "off"})
    lab.primary(0)
    lab.cut({0}, {1})
    assert lab.wrote(0, "first") == "done"
    assert lab.primary(1) == 0
    assert lab.wrote(1, "second") == "done"
    lab.kernels[1].secondary(NAME)
    lab.heal()
    assert (lab.connection(0, 1), lab.connection(1, 0)) == ("StandAlone", "StandAlone")
    assert lab.kernels[1].connect(NAME, 0, discard_my_data=True).ok
    assert lab.kernels[0].connect(NAME, 1).ok
    lab.wait(5)
    assert lab.healthy()
    assert lab.disks[1].read(0) == "first"


def test_counting_diskless_members_in_a_numeric_quorum_leaves_nobody_quorate() -> None:
    lab = Lab(3, (2,), options={"quorum": "3"})
    reply = lab.kernels[0].primary(NAME)
    assert (reply.code, reply.text) == (-25, "2 of 2 nodes visible, need 3 for quorum")


def test_a_power_loss_leaves_unclean_metadata_and_the_node_catches_up_from_the_new_primary() -> None:
    lab = Lab(3, options={"quorum-minimum-redundancy": "2"})
    lab.primary(0)
    lab.wrote(0, "before")
    lab.world.power_off("n0")
    lab.wait(8)
    assert lab.primary(1) == 0
    assert lab.wrote(1, "after") == "done"
    lab.world.power_on("n0")
    found = md.find(lab.disks[0])
    assert found is not None
    assert not found.clean
    assert lab.up(0).ok
    lab.wait(6)
    assert lab.healthy()
    assert lab.disks[0].read(0) == "after"


def test_a_second_loss_before_the_tie_breaker_is_back_is_not_survived() -> None:
    lab = Lab(3, (2,), own={2: Q32})
    lab.primary(0)
    lab.cut({0, 1}, {2})
    lab.cut({0}, {1}, {2})
    assert lab.wrote(0) == "blocked"


def test_a_diskless_tie_breaker_may_itself_be_primary_with_its_own_quorum_32() -> None:
    lab = Lab(3, (2,), own={2: Q32})
    assert lab.primary(2) == 0
    lab.cut({0}, {1, 2})
    assert lab.wrote(2) == "done"
    assert lab.primary(0) == -25
    lab.heal()
    lab.cut({0, 1}, {2})
    blocked = lab.write(2)
    assert lab.status(2)["suspended-no-data"]
    assert lab.primary(0) == 0
    lab.wrote(0, "newer")
    lab.heal()
    assert (lab.role(2), blocked.state.value) == ("Secondary", "failed")

"""Members that join, leave, hide, lose their disk or do not fit."""

from __future__ import annotations

from quorate.lab.kernel import BlockDevice
from quorate.lab.kernel import metadata as md

from .lab import MIB, MINOR, NAME, Lab

HIDDEN = {"allow-remote-read": "no"}


def single(**options: str) -> Lab:
    """Three nodes of which only the first is up, and serves."""
    lab = Lab(3, form=False, options=options)
    lab.up(0, peers=())
    lab.kernels[0].new_current_uuid(MINOR, clear_bitmap=True)
    assert lab.primary(0) == 0
    return lab


def join(lab: Lab, i: int, j: int, net: dict[str, str] | None = None) -> None:
    assert lab.add_peer(i, j, net or {}).ok
    lab.kernels[i].connect(NAME, j)


def test_a_diskful_member_that_joins_does_not_suspend_a_serving_primary() -> None:
    lab = single()
    join(lab, 0, 1)
    assert lab.wrote(0) == "done"
    lab.up(1, peers=[0])
    lab.wait(4)
    assert (lab.disk(1), lab.quorum(0)) == ("UpToDate", True)
    assert lab.disks[1].read(0) == "data"


def test_a_hidden_member_has_no_vote_until_it_is_shown() -> None:
    lab = single()
    join(lab, 0, 1, HIDDEN)
    lab.own = {1: {"quorum": "32"}}
    lab.up(1, peers=[0])
    lab.wait(4)
    assert (lab.disk(1), lab.quorum(1)) == ("UpToDate", False)
    lab.cut({0}, {1})
    assert lab.wrote(0) == "done"
    lab.heal()
    lab.kernels[0].net_options(NAME, 1, {"allow-remote-read": "yes"})
    lab.kernels[1].resource_options(NAME, {"quorum": "majority"})
    assert (lab.quorum(0), lab.quorum(1)) == (True, True)
    lab.cut({0}, {1})
    assert lab.wrote(0) == "blocked"


def test_a_diskless_member_hidden_by_the_diskful_side_can_be_primary_but_breaks_no_tie() -> None:
    lab = Lab(3, (2,), form=False)
    for i in (0, 1):
        lab.up(i)
        lab.kernels[i].net_options(NAME, 2, HIDDEN)
    lab.up(2)
    lab.wait(3)
    lab.kernels[0].new_current_uuid(MINOR, clear_bitmap=True)
    assert lab.primary(2) == 0
    lab.kernels[2].secondary(NAME)
    lab.primary(0)
    lab.cut({0, 2}, {1})
    assert lab.wrote(0) == "blocked"


def test_hiding_its_peers_from_itself_a_diskless_member_can_not_be_promoted() -> None:
    lab = Lab(3, (2,))
    for peer in (0, 1):
        lab.kernels[2].net_options(NAME, peer, HIDDEN)
    assert lab.primary(2) == -2


def test_hiding_the_tie_breaker_while_the_other_diskful_member_is_away_keeps_quorum() -> None:
    lab = Lab(3, (2,))
    lab.primary(0)
    lab.cut({0, 2}, {1})
    lab.kernels[0].net_options(NAME, 2, HIDDEN)
    assert lab.wrote(0) == "done"


def test_a_leaver_votes_until_it_is_forgotten() -> None:
    lab = Lab(3)
    lab.primary(0)
    assert lab.kernels[2].down(NAME).ok
    for i in (0, 1):
        assert lab.kernels[i].del_peer(NAME, 2).ok
    lab.cut({0}, {1})
    assert lab.primary(1) == -25
    assert "of 3 nodes visible" in lab.kernels[1].primary(NAME).text
    lab.heal()
    for i in (0, 1):
        assert lab.kernels[i].forget_peer(NAME, 2).ok
    lab.cut({0}, {1})
    assert "of 2 nodes visible" in lab.kernels[1].primary(NAME).text


def test_a_third_diskful_member_told_to_one_side_only_costs_the_other_side_its_tie_breaker() -> None:
    lab = Lab(4, (2,), form=False)
    for i in (0, 1, 2):
        lab.up(i, peers=[j for j in (0, 1, 2) if j != i])
    lab.wait(3)
    lab.kernels[0].new_current_uuid(MINOR, clear_bitmap=True)
    join(lab, 0, 3)
    lab.up(3)
    lab.wait(4)
    lab.cut({0, 3}, {1, 2})
    assert [lab.quorum(i) for i in (0, 3, 1)] == [True, True, False]


def test_a_detached_primary_goes_on_through_its_peers_and_catches_up_when_attached_again() -> None:
    lab = Lab(3)
    lab.primary(0)
    assert lab.kernels[0].detach(MINOR).ok
    assert lab.wrote(0, "remote") == "done"
    assert (lab.disk(0), lab.peer(1, 0)["peer-disk-state"]) == ("Diskless", "Diskless")
    found = md.find(lab.disks[0])
    assert found is not None
    md.apply_activity_log(found)
    assert lab.kernels[0].attach(MINOR, lab.disks[0], "/dev/disk0").ok
    lab.wait(3)
    assert lab.healthy()
    assert lab.disks[0].read(0) == "remote"


def test_bitmap_no_in_both_directions_leaves_the_diskless_node_stand_alone() -> None:
    lab = Lab(2, (1,), form=False)
    lab.up(0)
    lab.kernels[1].new_resource(NAME, 1, lab.options)
    lab.kernels[1].new_minor(NAME, MINOR, 0, diskless=True)
    lab.add_peer(1, 0)
    lab.kernels[1].peer_device_options(NAME, 0, 0, {"bitmap": "no"})
    lab.kernels[1].connect(NAME, 0)
    lab.wait(3)
    assert (lab.connection(1, 0), lab.connection(0, 1)) == ("StandAlone", "Connecting")


def test_a_wrong_shared_secret_leaves_both_stand_alone() -> None:
    lab = Lab(2, form=False)
    lab.up(0)
    lab.net["shared-secret"] = "other"
    lab.up(1)
    lab.wait(3)
    assert (lab.connection(0, 1), lab.connection(1, 0)) == ("StandAlone", "StandAlone")


def test_a_backing_device_that_is_too_small_is_not_let_in() -> None:
    lab = single()
    lab.disks[1] = BlockDevice(16 * MIB)
    md.create(lab.disks[1], 7)
    join(lab, 0, 1)
    lab.up(1, peers=[0])
    lab.wait(3)
    assert lab.connection(0, 1) == "StandAlone"


def test_metadata_is_found_only_where_the_present_size_says() -> None:
    lab = Lab(3)
    disk = lab.disks[2]
    disk.resize(48 * MIB)
    lab.world.power_off("n2")
    lab.world.power_on("n2")
    assert lab.up(2).code == 119
    lab.world.power_off("n2")
    lab.world.power_on("n2")
    disk.resize(32 * MIB)
    assert lab.up(2).ok
    lab.wait(8)
    assert lab.healthy()


def test_the_volume_grows_only_when_every_member_has_room() -> None:
    lab = Lab(3)
    before = lab.kernels[0].device_size(MINOR)
    for i in (0, 1):
        lab.disks[i].resize(48 * MIB)
    assert lab.kernels[0].resize(MINOR).ok
    assert lab.kernels[0].device_size(MINOR) == before
    lab.disks[2].resize(48 * MIB)
    assert lab.kernels[0].resize(MINOR, assume_clean=True).ok
    assert {kernel.device_size(MINOR) for kernel in lab.kernels} == {50282496}
    assert all(md.find(disk) is not None for disk in lab.disks.values())


def test_verify_finds_what_clear_bitmap_hid() -> None:
    lab = Lab(2, form=False)
    for i, disk in lab.disks.items():
        disk.write(4096, 8192, f"old tenant of n{i}")
        lab.up(i)
    lab.wait(3)
    lab.kernels[0].new_current_uuid(MINOR, clear_bitmap=True)
    assert lab.healthy()
    assert lab.kernels[0].verify(NAME, 1, 0).ok
    lab.wait(3)
    assert (lab.peer(0, 1)["out-of-sync"], lab.peer(1, 0)["out-of-sync"]) == (8, 8)

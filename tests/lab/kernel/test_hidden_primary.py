"""A primary without a disk that is hidden from the votes: recording e4_hidden_primary_detach, resource by resource.

n0 and n1 have the disks (the recording's n1 and n2) and promise two copies of every write; n2 has none.
"""

from __future__ import annotations

import pytest

from quorate.lab.kernel import metadata as md
from quorate.lab.kernel.world import NEWS_FIRST

from .lab import MINOR, NAME, Lab

HIDDEN = {"allow-remote-read": "no"}
NODE = "n2"


def hidden(own: str = "32", *, seed: int = 0, news_first: bool | None = None, primary: int = 2) -> Lab:
    """Two copies and a primary, as a rule the one without a disk."""
    lab = Lab(3, (2,), options={"quorum-minimum-redundancy": "2"}, own={2: {"quorum": own}}, seed=seed)
    for i in (0, 1):
        lab.kernels[i].net_options(NAME, 2, HIDDEN)
    assert lab.primary(primary) == 0
    assert lab.wrote(primary, "before") == "done"
    lab.world.news_is_faster = news_first
    return lab


def detach(lab: Lab) -> None:
    assert lab.kernels[1].detach(MINOR, force=True).ok
    lab.wait(1)


def attach(lab: Lab, i: int = 1) -> int:
    """As ``adjust`` does."""
    found = md.find(lab.disks[i])
    assert found is not None
    md.apply_activity_log(found)
    return lab.kernels[i].attach(MINOR, lab.disks[i], f"/dev/disk{i}").code


def test_r1_it_goes_on_with_one_disk_while_that_disk_has_no_quorum() -> None:
    lab = hidden(news_first=False)
    detach(lab)
    assert [lab.wrote(2, f"alone {n}", n) for n in range(3)] == ["done"] * 3
    assert (lab.quorum(2), lab.suspended(2)) == (True, False)
    assert (lab.quorum(0), lab.suspended(0)) == (False, True)
    assert (lab.connection(2, 1), lab.connection(1, 2)) == ("Connected", "Connected")
    lab.wait(80)
    assert lab.wrote(2, "much later") == "done"
    assert lab.disks[0].read(0) == "much later"
    assert lab.disks[1].read(0) == "before"


def test_r1_the_disk_is_refused_when_it_wants_back() -> None:
    lab = hidden(news_first=False)
    detach(lab)
    assert lab.wrote(2) == "done"
    assert attach(lab) == -10
    assert lab.disk(1) == "Diskless"
    # The primary would have to count. Out of its sight the same disk is taken.
    assert lab.kernels[1].disconnect(NAME, 2, force=True).ok
    lab.wait(1)
    assert (lab.quorum(2), lab.suspended(2)) == (False, True)
    assert attach(lab) == 0
    lab.wait(5)
    lab.kernels[1].connect(NAME, 2)
    lab.wait(10)
    assert lab.healthy()
    assert (lab.quorum(2), lab.wrote(2, "whole")) == (True, "done")
    assert lab.disks[1].read(0) == "whole"


def test_r0_it_stands_still_and_hangs_up_where_the_news_comes_first() -> None:
    lab = hidden(news_first=True)
    detach(lab)
    assert lab.wrote(2, "alone") == "blocked"
    assert (lab.connection(2, 1), lab.connection(1, 2)) == ("StandAlone", "Connecting")
    lines = [line for _, line in lab.world.log(NODE)]
    assert f"drbd {NAME}: no UpToDate peer with quorum" in lines
    assert f"drbd {NAME}: State change failed: No quorum (-25)" in lines
    assert f"drbd {NAME} n1: error receiving P_STATE, e: -5 l: 0!" in lines


def test_r0_the_disk_comes_back_and_the_primary_still_stands() -> None:
    lab = hidden(news_first=True)
    detach(lab)
    blocked = lab.write(2, "waits")
    assert attach(lab) == 0
    lab.wait(40)
    assert (lab.disk(1), lab.quorum(0), lab.quorum(1)) == ("UpToDate", True, True)
    assert (lab.suspended(2), blocked.blocked) == (True, True)
    assert lab.connection(2, 1) == "StandAlone"
    # Whatever makes it count lets it go on, with the one disk that it sees: the way to the other one, too.
    lab.kernels[2].connect(NAME, 1)
    lab.wait(0.1)
    assert (lab.suspended(2), blocked.state.value) == (False, "done")
    assert lab.disks[0].read(0) == "waits"
    assert lab.disks[1].read(0) == "before"


def test_r0_held_by_hand_it_goes_on_with_both() -> None:
    lab = hidden(news_first=True)
    detach(lab)
    blocked = lab.write(2, "waits")
    assert lab.kernels[2].suspend_io(MINOR).ok
    assert attach(lab) == 0
    lab.wait(40)
    lab.kernels[2].connect(NAME, 1)
    lab.wait(10)
    assert (lab.disk(1), lab.connection(2, 1)) == ("UpToDate", "Connected")
    assert (lab.quorum(2), blocked.blocked) == (True, True)
    assert lab.kernels[2].resume_io(MINOR).ok
    assert blocked.state.value == "done"
    assert lab.disks[0].read(0) == lab.disks[1].read(0) == "waits"


def test_r0_the_other_link_taken_down_lets_it_go_on_with_one_disk() -> None:
    lab = hidden(news_first=True)
    detach(lab)
    assert attach(lab) == 0
    lab.wait(40)
    assert lab.wrote(2, "waits") == "blocked"
    assert lab.kernels[1].disconnect(NAME, 0).ok
    lab.wait(5)
    assert (lab.quorum(2), lab.quorum(0)) == (True, False)
    assert lab.disks[0].read(0) == "waits"
    assert lab.disks[1].read(0) == "before"


def test_r2_with_a_majority_of_its_own_it_hangs_up_and_goes_on() -> None:
    lab = hidden("majority", news_first=True)
    detach(lab)
    assert lab.wrote(2, "alone") == "done"
    assert lab.connection(2, 1) == "StandAlone"
    assert any("using tiebreaker logic to keep" in line for _, line in lab.world.log(NODE))


def test_r2_what_it_copies_behind_the_primary_leaves_it_inconsistent() -> None:
    lab = hidden("majority", news_first=True)
    detach(lab)
    assert lab.wrote(2, "alone") == "done"
    assert attach(lab) == 0
    lab.wait(40)
    assert lab.wrote(2, "more", 9) == "done"
    assert (lab.disk(1), lab.peer(1, 0)["replication-state"]) == ("Inconsistent", "Established")
    assert lab.peer(0, 1)["out-of-sync"] > 0
    # It does not let the link come up either: its quorum would be gone. Out of its sight the two agree.
    lab.kernels[2].connect(NAME, 1)
    lab.wait(10)
    assert lab.connection(2, 1) != "Connected"
    assert lab.kernels[2].disconnect(NAME, 0, force=True).ok
    lab.wait(0.9)  # before the other link is tried again
    assert (lab.disk(1), lab.quorum(0), lab.quorum(1)) == ("UpToDate", True, True)
    assert (lab.disks[1].read(0), lab.disks[1].read(9 * 4096)) == ("alone", "more")


def test_r3_a_primary_with_a_disk_hangs_up_and_stands_still() -> None:
    lab = hidden(primary=0)
    detach(lab)
    assert lab.wrote(0, "alone") == "blocked"
    assert (lab.connection(0, 1), lab.connection(1, 0)) == ("StandAlone", "Connecting")
    assert attach(lab) == 0
    lab.wait(40)
    assert (lab.disk(1), lab.suspended(0)) == ("Outdated", True)
    lab.kernels[0].connect(NAME, 1)
    lab.wait(10)
    assert lab.healthy()
    assert lab.disks[1].read(0) == "alone"


@pytest.mark.parametrize("news_first", [False, True])
def test_a_disk_that_fails_is_lost_in_the_same_two_ways(news_first: bool) -> None:
    lab = hidden(news_first=news_first)
    lab.disks[1].failed = True
    assert lab.wrote(2, "fails there") == "done"
    lab.wait(1)
    assert lab.disk(1) == "Diskless"
    assert lab.wrote(2, "alone", 1) == ("blocked" if news_first else "done")
    assert lab.connection(2, 1) == ("StandAlone" if news_first else "Connected")


def test_two_of_three_go_on() -> None:
    went_on = 0
    for seed in range(60):
        lab = hidden(seed=seed)
        detach(lab)
        went_on += lab.wrote(2) == "done"
    assert abs(went_on / 60 - (1 - NEWS_FIRST)) < 0.2

"""Which of two replicas is newer."""

from __future__ import annotations

import pytest

from quorate.lab.kernel import BlockDevice
from quorate.lab.kernel import metadata as md
from quorate.lab.kernel.uuids import Verdict, compare

from .lab import MINOR, NAME, Lab

A, B, C, D = 0x100, 0x200, 0x300, 0x400
NEW = md.JUST_CREATED


def replica(current: int, *, behind: int = 0, history: tuple[int, ...] = (), other: int = 1) -> md.Metadata:
    """A replica with the generation at which the other one fell behind, and older ones."""
    made = md.create(BlockDevice(1 << 25), 7)
    made.current_uuid = current
    made.peer(other).bitmap_uuid = behind
    made.history = list(history)
    return made


@pytest.mark.parametrize(
    ("mine", "theirs", "verdict"),
    [
        pytest.param(replica(NEW), replica(NEW, other=0), Verdict.NONE, id="both are fresh"),
        pytest.param(replica(NEW), replica(A, other=0), Verdict.TARGET_ALL, id="only mine is fresh"),
        pytest.param(replica(A), replica(A | 1, other=0), Verdict.NONE, id="same generation, one made by a primary"),
        pytest.param(replica(B, behind=A), replica(A, other=0), Verdict.SOURCE, id="theirs fell behind mine"),
        pytest.param(replica(C, history=(A,)), replica(A, other=0), Verdict.SOURCE_ALL, id="theirs is long past"),
        pytest.param(replica(B, behind=A), replica(C, behind=A, other=0), Verdict.SPLIT_BRAIN, id="both went on alone"),
        pytest.param(
            replica(B, history=(A,)), replica(C, history=(A,), other=0), Verdict.SPLIT_LONG_AGO, id="a common past only"
        ),
        pytest.param(
            replica(B, behind=A), replica(A, history=(B,), other=0), Verdict.SOURCE, id="theirs has only heard of mine"
        ),
        pytest.param(
            replica(B, behind=A), replica(C, behind=A, history=(B,), other=0), Verdict.TARGET_ALL, id="one has heard"
        ),
        pytest.param(
            replica(B, behind=A, history=(C,)),
            replica(C, behind=A, history=(B,), other=0),
            Verdict.SPLIT_BRAIN,
            id="both went on alone and have heard of each other",
        ),
        pytest.param(replica(B), replica(D, other=0), Verdict.UNRELATED, id="nothing in common"),
    ],
)
def test_generations_decide_who_copies_to_whom(mine: md.Metadata, theirs: md.Metadata, verdict: Verdict) -> None:
    assert compare(mine, 0, theirs, 1) is verdict
    assert compare(theirs, 1, mine, 0) is verdict.mirrored


@pytest.mark.parametrize("suspended", [True, False])
def test_two_primaries_that_both_wrote_through_a_third_stay_apart_when_one_has_stepped_down(suspended: bool) -> None:
    lab = Lab(3, options={"quorum-minimum-redundancy": "2"}, net={"allow-two-primaries": "yes"})
    assert lab.primary(0) == lab.primary(1) == 0
    lab.cut_pairs((0, 1))
    assert lab.wrote(0, "one", 0) == "done"
    assert lab.wrote(1, "two", 1) == "done"
    lab.heal()
    if suspended:
        assert lab.kernels[1].suspend_io(MINOR).ok
    assert lab.kernels[1].secondary(NAME).ok
    lab.wait(30)
    assert (lab.connection(0, 1), lab.connection(1, 0)) == ("Connecting", "Connecting")
    assert (lab.peer(0, 1)["out-of-sync"], lab.peer(1, 0)["out-of-sync"]) == (4, 4)
    assert lab.disks[1].read(4096) == "two", "what it acknowledged is not overwritten"


@pytest.mark.parametrize("taken_over", [True, False])
@pytest.mark.parametrize("written", [True, False])
def test_a_primary_that_lost_its_power_comes_back_without_taking_the_copies_that_went_on_with_it(
    taken_over: bool, written: bool
) -> None:
    lab = Lab(3, options={"quorum-minimum-redundancy": "2"})
    assert lab.primary(0) == 0
    assert lab.wrote(0, "before") == "done"
    lab.world.power_off("n0")
    lab.wait(8)
    if taken_over:
        assert lab.primary(1) == 0
        assert not written or lab.wrote(1, "after", 1) == "done"
    lab.world.power_on("n0")
    assert lab.up(0).ok
    seen = set()
    for _ in range(6000):
        lab.wait(0.001)
        seen.add(lab.disk(0))
        if taken_over:
            assert (lab.disk(1), lab.disk(2)) == ("UpToDate", "UpToDate")
            if lab.disk(0) == "Inconsistent":
                shown = {lab.peer(0, 1)["resync-suspended"], lab.peer(0, 2)["resync-suspended"]}
                assert shown in ({"no"}, {"no", "dependency"})
                assert {lab.peer(0, 1)["out-of-sync"], lab.peer(0, 2)["out-of-sync"]} & set(range(4, 4097, 4))
    assert lab.healthy()
    assert ("Inconsistent" in seen) is taken_over, "the extents of its activity log are copied to it"

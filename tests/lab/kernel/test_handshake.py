"""Which of two replicas is newer."""

from __future__ import annotations

import pytest

from quorate.lab.kernel import BlockDevice
from quorate.lab.kernel import metadata as md
from quorate.lab.kernel.uuids import Verdict, compare

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

"""A quick look at larger volumes, with our own quorum rule: it tries in seconds what takes the kernel's model hours.

It proves nothing by itself (``test_proof`` does, for small volumes): it is the rule that the controllers go by, applied
to every mix and every partition of five or six members, directly after the network breaks and after everybody has
noticed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import pytest

from quorate.api.storage.drbd import DiskState
from quorate.drbd.quorum import MemberView, PeerView, Setting, after_losing

from .proof import Partition, partitions

HIDDEN_SETTING = 32
#: Voters after the step. Six take a quarter of a minute.
MOST = 6 if os.environ.get("QUORATE_PROOF") == "full" else 5


@dataclass(frozen=True)
class Mesh:
    """Who counts, by node id."""

    voters: frozenset[int]
    #: Diskful, not counted.
    hidden: frozenset[int] = frozenset()
    tie_breaker: int | None = None
    #: Diskless, not counted.
    access: frozenset[int] = frozenset()

    @property
    def diskful(self) -> frozenset[int]:
        return self.voters | self.hidden

    @property
    def members(self) -> frozenset[int]:
        return self.diskful | self.access | ({self.tie_breaker} if self.tie_breaker is not None else set())


def view(mesh: Mesh, number: int, redundancy: int) -> MemberView:
    """What a diskful member sees while everybody is connected."""
    peers = tuple(
        PeerView(
            node_id=other,
            diskful=other in mesh.diskful,
            connected=True,
            disk_state=DiskState.UP_TO_DATE if other in mesh.diskful else DiskState.DISKLESS,
            hidden=other in mesh.hidden or other in mesh.access,
        )
        for other in sorted(mesh.members - {number})
    )
    setting = Setting.MAJORITY if number in mesh.voters else HIDDEN_SETTING
    return MemberView(number, True, DiskState.UP_TO_DATE, setting, redundancy, peers, had_quorum=True)


def quorate_sides(before: Mesh, after: Mesh, applied: frozenset[int], sides: Partition, redundancy: int) -> int:
    """How many sides have a diskful member that is quorate."""
    count = 0
    for side in sides:
        quorate = False
        for number in side:
            mesh = after if number in applied else before
            if number in mesh.diskful:
                lost = mesh.members - side
                quorate = quorate or after_losing(view(mesh, number, redundancy), lost).quorate
        count += quorate
    return count


def splits(before: Mesh, after: Mesh, redundancy: int) -> Iterator[tuple[frozenset[int], Partition]]:
    """Every mix and partition that leaves more than one side quorate."""
    everybody = sorted(before.members | after.members)
    found = list(partitions(everybody))
    told = [number for number in everybody if number in before.diskful & after.diskful]
    for has in product((False, True), repeat=len(told)):
        applied = frozenset(number for number, yes in zip(told, has, strict=True) if yes)
        for sides in found:
            if quorate_sides(before, after, applied, sides, redundancy) > 1:
                yield applied, sides


def meshes(most: int) -> Iterator[tuple[str, Mesh, Mesh]]:
    """The four ways in which a step changes a vote, for every number of voters."""
    for count in range(1, most):
        voters, other = frozenset(range(count)), count
        yield f"show the {count + 1}th", Mesh(voters, frozenset({other})), Mesh(voters | {other})
        yield f"hide the {count + 1}th", Mesh(voters | {other}), Mesh(voters, frozenset({other}))
        if count % 2 == 0:
            shown, hidden = Mesh(voters, tie_breaker=other), Mesh(voters, access=frozenset({other}))
            yield f"show the tie-breaker of {count}", hidden, shown
            yield f"hide the tie-breaker of {count}", shown, hidden


@pytest.mark.parametrize(("before", "after"), [pytest.param(*rest, id=name) for name, *rest in meshes(MOST)])
@pytest.mark.parametrize("redundancy", [1, 2])
def test_no_change_of_one_vote_lets_two_sides_be_quorate(before: Mesh, after: Mesh, redundancy: int) -> None:
    assert list(splits(before, after, redundancy)) == []


@pytest.mark.parametrize("count", [2, 4])
def test_a_vote_that_changes_beside_a_shown_tie_breaker_does(count: int) -> None:
    """Why the tie-breaker is hidden first: both directions."""
    voters, other, tie_breaker = frozenset(range(count)), count, count + 1
    fewer = Mesh(voters, frozenset({other}), tie_breaker=tie_breaker)
    more = Mesh(voters | {other}, tie_breaker=tie_breaker)
    assert next(splits(fewer, more, 1), None) is not None
    assert next(splits(more, fewer, 1), None) is not None


def test_two_votes_in_one_step_do() -> None:
    three = frozenset(range(3))
    assert next(splits(Mesh(three, frozenset({3, 4})), Mesh(three | {3, 4}), 1), None) is not None

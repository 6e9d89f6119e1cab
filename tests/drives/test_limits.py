"""Turns: whatever is waiting and whoever comes and goes, no limit is exceeded, nobody starves, and nobody deadlocks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.api.cluster_config import DrainLimits
from quorate.drives.limits import PATIENCE, Move, Place, to_copy, to_prepare

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
LIMITS = DrainLimits(max_moves=3, max_moves_per_node=2, max_moves_per_rack=2)
A, B, C, D = (Place(node, rack) for node, rack in (("a", "r1"), ("b", "r1"), ("c", "r2"), ("d", "")))


def names(moves: tuple[Move, ...]) -> list[str]:
    return [move.name for move in moves]


def waiting(name: str, source: Place, rank: int = 0) -> Move:
    return Move(name, source, rank=(rank,))


def copying(name: str, source: Place, target: Place) -> Move:
    return Move(name, source, target, begun=True, busy=True, copying=True)


def placed(name: str, source: Place, target: Place, rank: int = 0) -> Move:
    return Move(name, source, target, begun=True, busy=True, rank=(rank,))


@pytest.mark.parametrize(
    ("moves", "expected"),
    [
        ([], []),
        ([waiting("1", D)], ["1"]),
        ([waiting("1", D), waiting("2", D), waiting("3", D)], ["1", "2"]),  # per node
        ([waiting("1", A), waiting("2", B), waiting("3", A)], ["1", "2"]),  # per rack
        ([waiting(n, p) for n, p in (("1", A), ("2", B), ("3", C), ("4", D))], ["1", "2", "3"]),  # in all
        ([waiting("late", C, 2), waiting("first", C, 1)], ["first", "late"]),
        ([waiting("a", C, 2), waiting("b", C, 1), waiting("c", C, 0)], ["c", "b"]),
        ([copying("x", C, D), copying("y", C, D), waiting("1", C), waiting("2", D)], ["2"]),
        # One that waits for something else takes nobody's turn.
        ([Move("x", C, begun=True), Move("y", C, begun=True), waiting("1", C)], ["1"]),
        (
            [
                Move("x", C, begun=True, busy=True, homeless_since=NOW - 2 * PATIENCE),
                Move("y", C, begun=True, busy=True, homeless_since=NOW - timedelta(seconds=1)),
                waiting("1", C),
                waiting("2", C),
            ],
            ["1"],
        ),
    ],
)
def test_whose_turn_it_is_to_be_prepared(moves: list[Move], expected: list[str]) -> None:
    assert names(to_prepare(moves, LIMITS, NOW)) == expected


@pytest.mark.parametrize(
    ("moves", "expected"),
    [
        ([placed("1", A, C)], ["1"]),
        ([waiting("1", A)], []),
        ([placed("1", A, D), placed("2", C, D), placed("3", B, D)], ["1", "2"]),  # to one node
        ([placed("1", C, A), placed("2", D, B), placed("3", D, A)], ["1", "2"]),  # to one rack
        ([copying("x", A, C), copying("y", A, D), placed("1", A, D)], []),  # from one node
        ([copying("x", A, C), copying("y", C, A), copying("z", D, B), placed("1", C, D)], []),  # in all
        # From and to are counted apart: two nodes that empty onto each other never wait for one another.
        ([copying("x", C, D), copying("y", C, D), placed("1", D, C)], ["1"]),
    ],
)
def test_who_may_be_copied(moves: list[Move], expected: list[str]) -> None:
    assert names(to_copy(moves, LIMITS)) == expected


PLACES = st.sampled_from([A, B, C, D, Place("e", "r2"), Place("f")])


@settings(max_examples=150, deadline=None)
@given(
    sources=st.lists(PLACES, min_size=1, max_size=20),
    targets=st.lists(PLACES, min_size=20, max_size=20),
    order=st.randoms(use_true_random=False),
    limits=st.builds(
        DrainLimits,
        max_moves=st.integers(1, 5),
        max_moves_per_node=st.integers(1, 3),
        max_moves_per_rack=st.integers(1, 3),
    ),
)
def test_everybody_gets_there_and_no_limit_is_ever_exceeded(
    sources: list[Place], targets: list[Place], order: object, limits: DrainLimits
) -> None:
    moves = {str(n): Move(str(n), source, busy=True) for n, source in enumerate(sources)}
    for _ in range(10 * len(sources)):
        for move in to_prepare(tuple(moves.values()), limits, NOW):
            moves[move.name] = replace(move, begun=True, target=targets[int(move.name)])
        for move in to_copy(tuple(moves.values()), limits):
            moves[move.name] = replace(move, copying=True)
        under_way = [move for move in moves.values() if move.copying]
        assert len(under_way) <= limits.max_moves
        for end in ("source", "target"):
            places = [getattr(move, end) for move in under_way]
            assert max(Counter(place.node for place in places).values(), default=0) <= limits.max_moves_per_node
            racks = Counter(place.rack for place in places if place.rack)
            assert max(racks.values(), default=0) <= limits.max_moves_per_rack
        if not moves:
            return
        assert under_way, "nobody moves, and somebody waits"
        del moves[order.choice(under_way).name]  # type: ignore[attr-defined]
    assert not moves

"""Whose turn it is, as the layout goes."""

from __future__ import annotations

import dataclasses

import pytest

from quorate.api.storage.configuration import Replication, VolumeAccess
from quorate.api.struct import replace
from quorate.volumes.attach.turns import served, turns
from quorate.volumes.view import NodeView, VolumeView
from tests.volumes.attach.making import ONE, THREE, TIE, TWO, of
from tests.volumes.replica.making import LAYOUTS, A, D, configuration, node_name, with_rv

TWO_NOT_ALLOWED, PENDING = "TwoPrimariesNotAllowed", "Pending"


def reasons(view: VolumeView) -> list[str]:
    return [wait.reason if wait is not None else "" for wait in turns(view).values()]


@pytest.mark.parametrize(
    ("replication", "queue", "expected"),
    [
        (ONE, (0,), [""]),
        (ONE, (0, 1), ["", ""]),
        (ONE, (1, 2), ["", ""]),
        (ONE, (0, 1, 2), ["", "", PENDING]),
        (TWO, (0, 1), ["", ""]),
        (TWO, (1, 0), ["", ""]),
        (TWO, (0, 2), ["", TWO_NOT_ALLOWED]),
        (TWO, (2, 0), ["", TWO_NOT_ALLOWED]),
        (TIE, (0, 1), ["", TWO_NOT_ALLOWED]),
        (TIE, (2, 0), ["", TWO_NOT_ALLOWED]),
        (TIE, (0, 1, 2), ["", TWO_NOT_ALLOWED, PENDING]),
        (THREE, (0, 1), ["", ""]),
        (THREE, (0, 3), ["", TWO_NOT_ALLOWED]),
        (THREE, (0, 1, 2), ["", "", PENDING]),
        # Nobody overtakes one that waits.
        (THREE, (0, 3, 1), ["", TWO_NOT_ALLOWED, PENDING]),
    ],
)
def test_two_at_once_where_the_layout_survives_a_cut_link(
    replication: Replication, queue: tuple[int, ...], expected: list[str]
) -> None:
    assert reasons(of(replication, *queue)) == expected


def test_a_copy_that_is_being_made_does_not_count_for_two() -> None:
    view = of(THREE, 0, 3, layout=(D, D, D, D))
    hidden = tuple(replace(each, hidden=each.node_id == 3) for each in view.members)
    assert view.rv is not None
    view = with_rv(view, datamesh=replace(view.rv.status.datamesh, members=hidden))
    assert reasons(view) == ["", TWO_NOT_ALLOWED]


@pytest.mark.parametrize("replication", LAYOUTS)
def test_with_local_access_only_a_node_with_a_copy_is_served_and_nobody_waits_for_another(
    replication: Replication,
) -> None:
    """M6: Local is what forbids it."""
    view = with_rv(of(replication, 4, 0), configuration=configuration(replication, VolumeAccess.LOCAL))
    assert reasons(view) == ["UnableToProvideLocalVolumeAccess", ""]
    assert served(view) == (node_name(0),)
    elsewhere = with_rv(of(replication, 4, 0), configuration=configuration(replication, VolumeAccess.ANY))
    assert reasons(elsewhere)[0] != "UnableToProvideLocalVolumeAccess"


def test_a_node_outside_the_pool_is_refused_unless_a_replica_is_there() -> None:
    assert reasons(of(THREE, 9)) == ["NodeNotEligible"]
    assert reasons(of(THREE, 2)) == [""]


def test_a_node_that_there_is_not_is_refused_and_keeps_nobody_waiting() -> None:
    view = of(TIE, 0, 1)
    nodes = {**view.nodes, node_name(0): NodeView(node_name(0), None, fresh=False)}
    view = dataclasses.replace(view, nodes=nodes)
    assert reasons(view) == ["NodeNotEligible", ""]


def test_an_access_replica_that_is_shown_forbids_two() -> None:
    view = of(TWO, 0, 1, layout=(D, D, A))
    shown = tuple(replace(each, hidden=False) for each in view.members)
    assert view.rv is not None
    assert reasons(view) == ["", ""]
    view = with_rv(view, datamesh=replace(view.rv.status.datamesh, members=shown))
    assert reasons(view) == ["", TWO_NOT_ALLOWED]

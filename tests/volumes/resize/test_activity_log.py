"""Disks without an activity log: who is mended, when, and what is said meanwhile."""

from __future__ import annotations

import pytest

from quorate.api.quantity import Quantity
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import DrbdActual
from quorate.api.storage.drbdrop import DRBDResourceOperation
from quorate.engine import Create
from quorate.volumes.resize.activity_log import hindrance, unproven, writes
from quorate.volumes.view import VolumeView
from tests.volumes.attach.making import ONE, THREE, TWO, attached, of
from tests.volumes.replica.making import GI, NOW, spoilt, with_drbd, with_rv

MISSING = DrbdActual(activity_log_missing=True)
UNKNOWN = DrbdActual()


def without_log(
    replication: Replication, *numbers: int, users: tuple[int, ...] = (), actual: DrbdActual = MISSING
) -> VolumeView:
    view = of(replication, *users)
    for number in numbers:
        view = spoilt(view, number, with_drbd(actual=actual))
    return attached(view, *users)


def made(view: VolumeView) -> list[str]:
    """Whose disk is attached anew now."""
    found = [each.obj for each in writes(view, NOW, lambda _: None) if isinstance(each, Create)]
    return [each.spec.drbd_resource_name for each in found if isinstance(each, DRBDResourceOperation)]


def said(view: VolumeView) -> str:
    wait = hindrance(view)
    return "" if wait is None else wait.message


def test_with_every_log_there_is_nothing_to_do_or_say() -> None:
    view = of(THREE)
    assert (unproven(view), made(view), hindrance(view)) == ([], [], None)


@pytest.mark.parametrize("users", [(), (0,)])
def test_one_after_the_other_and_never_where_it_is_in_use(users: tuple[int, ...]) -> None:
    view = without_log(THREE, 0, 1, 2, users=users)
    assert made(view) == [view.members[len(users)].name]
    assert "attached anew, one after the other" in said(view)


@pytest.mark.parametrize(("replication", "numbers"), [(THREE, (0,)), (ONE, (0,)), (TWO, (0, 1))])
def test_where_it_is_in_use_or_every_copy_is_needed_a_write_is_waited_for(
    replication: Replication, numbers: tuple[int, ...]
) -> None:
    view = without_log(replication, *numbers, users=(0,))
    assert made(view) == []
    assert "the next write of its user on" in said(view)
    assert "detaching it there once" in said(view)


def test_a_growth_that_waits_for_an_agent_that_never_looks_says_so() -> None:
    """Controllers may be newer than agents: a growth that stands without a word is a riddle."""
    view = without_log(THREE, 1, actual=UNKNOWN)
    assert hindrance(view) is None, "nothing grows, and nobody waits"
    waiting = with_rv(view, size="1Gi", growing_to=Quantity.of_bytes(GI))
    assert "an agent of an older version never looks: update it there" in said(waiting)
    assert view.members[1].node_name in said(waiting)

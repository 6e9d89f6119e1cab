"""Room for a larger volume, on all of its disks or on none (M13)."""

from __future__ import annotations

from dataclasses import replace as changed

import pytest

from quorate.api.conditions.rv import DiskAllocation
from quorate.api.quantity import Quantity
from quorate.api.struct import replace
from quorate.disks.requests import State
from quorate.volumes.resize import begun, hindrance, not_granted, reserve
from quorate.volumes.resize.space import asked_size
from quorate.volumes.view import VolumeView
from tests.volumes.attach.making import THREE, TWO, attached, of
from tests.volumes.replica.making import GI, MI, NEEDED, assembled, ledger, logical_volume, with_rv

LARGER = 2 * GI
#: 2 GiB with DRBD's metadata, in extents of 4 MiB.
ROOM = 2151677952


def growing(size: str = "2Gi") -> VolumeView:
    return with_rv(of(THREE), size=size)


def with_ledgers(view: VolumeView, asked: int, granted: int, *numbers: int) -> VolumeView:
    return assembled(
        view,
        [
            changed(each, ledgers=(ledger(each.id, asked, granted),)) if each.id in numbers else each
            for each in view.replicas
        ],
    )


def requested(view: VolumeView) -> list[int]:
    return [int(next(iter(write.intended.spec.replicas.values()))) for write in reserve(view).writes]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("size", "expected"), [("1Gi", None), ("512Mi", None), ("2Gi", LARGER), ("1073741825", GI + 4096)]
)
def test_a_volume_only_grows_in_whole_blocks(size: str, expected: int | None) -> None:
    assert asked_size(growing(size)) == expected


def test_nothing_is_asked_for_while_the_volume_is_as_large_as_it_should_be_or_is_going() -> None:
    assert reserve(of(THREE)).writes == ()
    assert reserve(with_rv(growing(), deleting=True)).writes == ()


def test_every_disk_is_asked_and_nothing_more_until_all_have_answered() -> None:
    room = reserve(growing())
    assert room.state is State.PENDING
    assert len(room.writes) == 3
    some = with_ledgers(growing(), ROOM, ROOM, 0, 1)
    assert len(reserve(some).writes) == 1
    assert reserve(with_ledgers(growing(), ROOM, ROOM, 0, 1, 2)).state is State.GRANTED


@pytest.mark.parametrize("granted", [(), (0,), (0, 1), (0, 1, 2)])
def test_disks_begin_to_grow_when_all_have_granted_it(granted: tuple[int, ...]) -> None:
    view = with_ledgers(growing(), ROOM, ROOM, *granted)
    begins = begun(view, reserve(view))
    assert (begins is not None) is (len(granted) == 3)
    if begins is not None:
        assert begins.growing_to == Quantity("2Gi")
        assert begun(view.with_status(begins), reserve(view)) is None


@pytest.mark.parametrize("told", [(), (0,), (0, 1)], ids=["no disk", "one disk", "both disks"])
def test_a_growth_that_an_older_version_began_cannot_be_taken_back(told: tuple[int, ...]) -> None:
    """A 2D in use does not begin to grow. But where a disk was told to already, the size must not be lowered again."""
    disks = {number: (logical_volume(number, ROOM if number in told else NEEDED),) for number in (0, 1)}
    used = attached(with_rv(of(TWO, 0, disks=disks), size="2Gi"), 0)
    view = with_ledgers(used, ROOM, ROOM, 0, 1)
    assert reserve(view).state is State.GRANTED
    begins = begun(view, reserve(view))
    assert (begins is not None) is bool(told)
    if begins is not None:
        assert begins.growing_to == Quantity("2Gi")


@pytest.mark.parametrize(("deleted", "said"), [(True, "DiskDeleted"), (False, "WaitingForDisks")])
def test_a_disk_that_is_deleted_after_the_growth_began_is_named_with_what_to_do(deleted: bool, said: str) -> None:
    disks = {0: (logical_volume(0, ROOM),), 1: () if deleted else (logical_volume(1, NEEDED),)}
    view = with_rv(of(TWO, disks=disks), size="2Gi", growing_to=Quantity("2Gi"))
    wait = hindrance(view, reserve(view))
    assert wait is not None
    assert wait.reason == said


def test_what_has_begun_comes_to_its_end_whatever_is_asked_for_meanwhile() -> None:
    view = with_rv(growing("9Gi"), growing_to=Quantity("2Gi"))
    assert asked_size(view) == LARGER
    done = view.with_status(replace(view.volume.status, datamesh=replace(view.datamesh, size=Quantity("2Gi"))))
    over = begun(done, reserve(done))
    assert over is not None
    assert over.growing_to is None
    assert asked_size(done.with_status(over)) == 9 * GI


def test_what_was_asked_of_disks_is_given_back_when_the_size_is_taken_back() -> None:
    asked = with_ledgers(with_rv(growing(), size="1Gi"), ROOM, ROOM, 0, 1)
    assert len(reserve(asked).writes) == 2
    assert set(requested(asked)) == {NEEDED}


def test_a_volume_that_is_deleted_while_it_waits_gives_back_what_it_asked_for() -> None:
    asked = with_ledgers(growing(), ROOM, NEEDED, 0, 1)
    assert len(reserve(with_rv(asked, deleting=True)).writes) == 2


def test_what_is_said_while_room_is_missing() -> None:
    pending = not_granted(growing())
    assert pending is not None
    assert pending.reason == DiskAllocation.PENDING.code
    assert pending.message == f"room to grow to {growing().volume.spec.size} is asked for"
    assert not_granted(of(THREE)) is None
    assert not_granted(with_ledgers(growing(), ROOM, ROOM, 0, 1, 2)) is None


def test_the_size_asked_for_is_what_drbd_needs_in_whole_extents() -> None:
    assert ROOM % (4 * MI) == 0
    assert set(requested(growing())) == {ROOM}

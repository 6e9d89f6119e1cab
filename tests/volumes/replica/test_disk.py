"""A replica's logical volume: made, grown, deleted, let go of, and its space given back."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api import finalizers, labels, names
from quorate.api.meta import Bytes
from quorate.api.quantity import Quantity
from quorate.api.storage import LVMLogicalVolume
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import DrbdActual
from quorate.api.storage.llv import LogicalVolumePhase, LogicalVolumeType
from quorate.api.struct import replace
from quorate.drbd.metadata import lower_size
from quorate.engine import Create, NoneLeft, Patch, Plan, ReleaseFinalizer
from quorate.volumes.replica.lv_name import name_on_the_node
from quorate.volumes.view import VolumeView
from tests.volumes.replica.making import (
    EXTENT,
    GI,
    NEEDED,
    TB,
    A,
    D,
    after,
    decided,
    deleting,
    doomed,
    ledger,
    logical_volume,
    name,
    picture,
    spoilt,
    told,
    with_device,
    with_drbd,
    with_member,
    with_metadata,
    with_rv,
    with_spec,
    with_status,
    without_membership,
    written,
)

LLV = names.logical_volume(name(0), "g0")


def created(plan: Plan) -> list[LVMLogicalVolume]:
    found = [write.obj for write in plan.steps if isinstance(write, Create)]
    assert all(isinstance(each, LVMLogicalVolume) for each in found)
    return found  # type: ignore[return-value]


def bare(**changes: Any) -> VolumeView:
    """A volume whose replica 0 has no logical volume yet."""
    view = spoilt(without_membership(picture(), 0), 0, lambda each: changed(each, volumes=()))
    return spoilt(view, 0, with_drbd(status=None, actual=DrbdActual()))


# Made.


def test_a_logical_volume_is_made_with_everything_it_will_need() -> None:
    """M33: both finalizers from the start; the size has room for DRBD's metadata, in whole extents."""
    (volume,) = created(decided(bare()))
    assert volume.name == LLV
    assert volume.metadata.finalizers == (finalizers.CONTROLLER, finalizers.AGENT)
    assert volume.metadata.labels == {
        labels.NODE: "n0",
        labels.REPLICATED_VOLUME: "pvc-1",
        labels.LVM_VOLUME_GROUP: "g0",
        labels.VOLUME_UID: picture().volume.metadata.uid,
    }
    (owner,) = volume.metadata.owner_references
    assert (owner.kind, owner.name, owner.uid) == ("ReplicatedVolumeReplica", "pvc-1-0", "uid-0")
    assert volume.spec.type is LogicalVolumeType.THICK
    assert not volume.spec.zeroed
    assert lower_size(Bytes(GI)) <= int(volume.spec.size) < lower_size(Bytes(GI)) + EXTENT
    assert int(volume.spec.size) % EXTENT == 0


def test_on_a_thin_pool_it_is_thin() -> None:
    view = spoilt(bare(), 0, with_spec(lvm_volume_group_thin_pool_name="thin"))
    on_pool = ledger(0, NEEDED, NEEDED)
    on_pool = replace(on_pool, spec=replace(on_pool.spec, name="g0/thin"))
    (volume,) = created(decided(spoilt(view, 0, lambda each: changed(each, ledgers=(on_pool,)))))
    assert volume.name == names.logical_volume(name(0), "g0", "thin")
    assert volume.spec.type is LogicalVolumeType.THIN
    assert volume.spec.thin is not None
    assert volume.spec.thin.pool_name == "thin"


@pytest.mark.parametrize(
    "view",
    [
        spoilt(bare(), 0, lambda each: changed(each, ledgers=())),
        spoilt(bare(), 0, lambda each: changed(each, ledgers=(ledger(0, NEEDED),))),
        spoilt(bare(), 0, lambda each: changed(each, ledgers=(ledger(0, NEEDED, NEEDED - EXTENT),))),
        spoilt(bare(), 0, lambda each: changed(each, ledgers=(ledger(1, NEEDED, NEEDED, key=name(0)),))),
        spoilt(bare(), 0, lambda each: changed(each, group=None)),
        spoilt(bare(), 0, deleting),
        spoilt(bare(), 0, with_metadata(finalizers=(finalizers.CONTROLLER,))),
        spoilt(bare(), 0, with_spec(lvm_volume_group_name=None)),
        with_rv(bare(), deleting=True),
        changed(bare(), rv=None),
    ],
    ids=[
        "not asked",
        "not answered",
        "too little granted",
        "granted by another disk",
        "no such group",
        "deleting",
        "without the agent's finalizer",
        "no disk chosen",
        "the volume goes",
        "no volume",
    ],
)
def test_none_is_made_before_its_space_is_granted_or_when_nobody_would_use_it(view: VolumeView) -> None:
    assert not created(decided(view))


def test_no_disk_is_made_for_a_replica_that_needs_none() -> None:
    assert not created(decided(picture((D, D, TB), Replication.AVAILABILITY)))


# Its name in status.


@pytest.mark.parametrize(
    ("phase", "size", "reported"),
    [
        (LogicalVolumePhase.PENDING, None, ""),
        (LogicalVolumePhase.FAILED, None, ""),
        (LogicalVolumePhase.CREATED, NEEDED, LLV),
        (LogicalVolumePhase.RESIZING, NEEDED, LLV),
    ],
)
def test_its_name_is_told_once_it_can_be_used(phase: LogicalVolumePhase, size: int | None, reported: str) -> None:
    volume = logical_volume(0, NEEDED, phase=phase, actual_size=Quantity.of_bytes(size) if size else None)
    view = spoilt(bare(), 0, lambda each: changed(each, volumes=(volume,)))
    view = spoilt(view, 0, with_status(lvm_logical_volume_name=""))
    assert written(view, 0).status.lvm_logical_volume_name == reported


def test_its_name_is_kept_while_it_is_there_and_cleared_when_it_is_gone() -> None:
    broken = logical_volume(0, NEEDED, phase=LogicalVolumePhase.FAILED)
    there = spoilt(picture(), 0, lambda each: changed(each, volumes=(broken,)))
    assert written(there, 0).status.lvm_logical_volume_name == LLV
    gone = spoilt(picture(), 0, lambda each: changed(each, volumes=()))
    assert written(gone, 0).status.lvm_logical_volume_name == ""


# Grown.


def larger(*granted: int) -> VolumeView:
    """A volume that is to have 2 GiB, where so many disks have granted that, and it has begun once all have."""
    view = with_rv(picture(), size="2Gi", growing_to=Quantity("2Gi") if len(granted) == 3 else None)
    for number in granted:
        entry = ledger(number, 3 * GI, 3 * GI)
        view = spoilt(view, number, lambda each, entry=entry: changed(each, ledgers=(entry,)))  # type: ignore[misc]
    return view


def test_disks_grow_when_the_volume_has_begun_to() -> None:
    """M13: all or nothing, and never before; ``resize.begun`` says when. The last one grows with DRBD itself."""
    view = larger(0, 1, 2)
    sizes = grown(view)
    assert set(sizes) == {names.logical_volume(name(number), f"g{number}") for number in (1, 2)}
    assert view.rv is not None
    datamesh = replace(view.datamesh, size=Quantity("2Gi"))
    told_members = view.with_status(replace(view.rv.status, datamesh=datamesh))
    sizes = grown(told_members)
    assert set(sizes) == {names.logical_volume(name(number), f"g{number}") for number in range(3)}
    assert all(lower_size(Bytes(2 * GI)) <= size < lower_size(Bytes(2 * GI)) + EXTENT for size in sizes.values())


def grown(view: VolumeView) -> dict[str, int]:
    """The logical volumes that are told to grow, and to what."""
    return {
        write.observed.name: int(write.intended.spec.size)  # type: ignore[attr-defined]
        for write in decided(view).steps
        if isinstance(write, Patch) and isinstance(write.observed, LVMLogicalVolume)
    }


@pytest.mark.parametrize("granted", [(), (0,), (0, 1)])
def test_no_disk_grows_while_one_member_has_not_been_granted_it(granted: tuple[int, ...]) -> None:
    assert not any(LLV[:7] in patched and patched.count("-") > 2 for patched in told(decided(larger(*granted))).patched)


def test_a_disk_grows_no_further_than_its_own_ledger_grants() -> None:
    small = logical_volume(0, GI)
    view = spoilt(picture(), 0, lambda each: changed(each, volumes=(small,), ledgers=(ledger(0, NEEDED, GI),)))
    assert LLV not in told(decided(view)).patched
    granted = spoilt(view, 0, lambda each: changed(each, ledgers=(ledger(0, NEEDED, NEEDED),)))
    assert LLV in told(decided(granted)).patched


def test_a_disk_never_shrinks() -> None:
    big = logical_volume(0, 5 * GI)
    view = spoilt(picture(), 0, lambda each: changed(each, volumes=(big,)))
    assert LLV not in told(decided(view)).patched


def test_its_owner_is_put_right() -> None:
    orphan = logical_volume(0, NEEDED)
    orphan = replace(orphan, metadata=replace(orphan.metadata, owner_references=()))
    view = spoilt(picture(), 0, lambda each: changed(each, volumes=(orphan,)))
    assert LLV in told(decided(view)).patched


# Deleted.


def retyped(actual: Any, member: Any, disk: str = "Diskless") -> VolumeView:
    view = with_member(picture(), 0, type=member)
    view = spoilt(view, 0, with_spec(type=A, lvm_volume_group_name=None))
    view = spoilt(view, 0, with_status(actual_type=actual))
    return spoilt(view, 0, with_device(disk_state=disk))


@pytest.mark.parametrize(
    ("view", "deleted"),
    [
        (retyped(A, A), [LLV]),
        (retyped(D, A), []),
        (retyped(A, D), []),
        (retyped(TB, A), []),
        (retyped(A, A, "UpToDate"), []),
    ],
    ids=["changed", "kernel has the disk", "still a diskful member", "another type", "disk still attached"],
)
def test_a_replica_that_needs_no_disk_any_more_loses_it_once_the_kernel_has_let_go(
    view: VolumeView, deleted: list[str]
) -> None:
    """000 rvr-volume: only when actualType is spec.type."""
    assert told(decided(view)).deleted == deleted


def test_a_former_disk_goes_when_the_kernel_has_the_new_one() -> None:
    former = logical_volume(0, NEEDED)
    former = replace(former, metadata=replace(former.metadata, name=names.logical_volume(name(0), "old")))
    view = spoilt(picture(), 0, lambda each: changed(each, volumes=(*each.volumes, former)))
    assert told(decided(view)).deleted == [former.name]
    not_yet = spoilt(
        view, 0, lambda each: with_drbd(actual=replace(each.replica.status.drbd.actual, disk="/dev/data/old"))(each)
    )
    assert told(decided(not_yet)).deleted == []


@pytest.mark.parametrize("gone", [False, True])
def test_a_disk_is_never_deleted_under_a_living_member(gone: bool) -> None:
    """Invariant 5: not even when its pool, its group or its node's agent cannot be seen."""
    view = picture(stale=(0, 1, 2), gone=(0,) if gone else ())
    view = spoilt(changed(view, rsp=None), 0, lambda each: changed(each, group=None, ledgers=()))
    assert told(decided(view)).deleted == []


# Let go of.


def outcast(view: VolumeView) -> VolumeView:
    """The same, where replica 0 has left a living datamesh that has its promised copies, and is being deleted."""
    return without_membership(spoilt(view, 0, deleting), 0)


FOUR = (D, D, D, D)


@pytest.mark.parametrize(
    ("view", "released"),
    [
        (outcast(picture(FOUR)), []),
        (outcast(spoilt(picture(FOUR), 0, with_device(disk_state="Diskless"))), [(LLV, "controller")]),
        (outcast(spoilt(picture(FOUR), 0, with_drbd(status=None))), [(LLV, "controller")]),
        (outcast(spoilt(picture(FOUR, stale=(0,)), 0, with_drbd(status=None))), []),
        (outcast(picture(FOUR, gone=(0,))), [(LLV, "controller")]),
        (spoilt(without_membership(picture(), 0), 0, with_drbd(status=None)), [(LLV, "controller")]),
        (spoilt(picture(), 0, with_drbd(status=None)), []),
        (spoilt(spoilt(picture(), 0, deleting), 0, with_drbd(status=None)), []),
    ],
    ids=[
        "attached",
        "detached",
        "down",
        "down, says a silent agent",
        "no such node",
        "not a member yet",
        "a member, down for a moment",
        "a member that is being deleted, down for a moment",
    ],
)
def test_a_deleted_disk_is_let_go_of_when_drbd_no_longer_holds_it_and_no_member_needs_it(
    view: VolumeView, released: list[tuple[str, str]]
) -> None:
    """Invariant 5: whoever has asked for its deletion, a member's copy is kept."""
    plan = told(decided(doomed(view)))
    assert [each for each in plan.released if each[0] == LLV] == released


def test_only_where_there_is_no_node_any_more_we_let_go_for_its_agent() -> None:
    left = doomed(picture(gone=(0,)), finalizers=(finalizers.AGENT,))
    (write,) = [each for each in decided(left).steps if isinstance(each, ReleaseFinalizer)]
    assert write.finalizer == finalizers.AGENT
    # The store itself is asked whether the node is really gone.
    assert all(isinstance(each, NoneLeft) for each in write.after)
    assert write.after
    alive = doomed(spoilt(picture(), 0, with_drbd(status=None)), finalizers=(finalizers.AGENT,))
    assert told(decided(alive)).released == []


# Given back.


def ending(volumes: bool) -> VolumeView:
    view = without_membership(spoilt(picture((D, D, D, D)), 3, deleting), 3)
    view = spoilt(view, 3, with_drbd(status=None))
    return view if volumes else spoilt(view, 3, lambda each: changed(each, volumes=()))


def test_space_is_given_back_only_after_the_logical_volume_is_gone() -> None:
    """M31."""
    assert "u3" not in told(decided(ending(volumes=True))).patched
    assert "u3" in told(decided(ending(volumes=False))).patched


def test_a_replica_is_held_until_its_space_is_given_back() -> None:
    """M31: otherwise nobody would be left to do it."""
    given = ending(volumes=False)
    for _ in range(2):
        given = spoilt(given, 3, with_metadata(finalizers=(finalizers.CONTROLLER, finalizers.AGENT)))
    assert told(decided(given)).released == []
    returned = spoilt(given, 3, lambda each: changed(each, ledgers=(ledger(3, None, NEEDED),)))
    assert told(decided(returned)).released == [(name(3), "controller")]


def test_what_a_living_replica_asks_for_is_not_withdrawn_here() -> None:
    view = spoilt(bare(), 0, with_spec(lvm_volume_group_name=None, node_name=None))
    assert "u0" not in told(decided(view)).patched


# Its name on the node.

NAMES = st.text("ab-", min_size=1, max_size=131).filter(lambda text: text[0] != "-")


@given(NAMES, st.text("vg-", min_size=1, max_size=60))
def test_a_name_on_the_node_fits_what_lvm_and_the_device_mapper_allow(volume: str, group: str) -> None:
    found = name_on_the_node(volume, group)
    mapped = len(found) + found.count("-") + 1 + len(group) + group.count("-")
    room = 127 - 8 - 1 - len(group) - group.count("-")
    assert len(found) <= 127
    assert mapped <= 127 or room < 26
    assert found == name_on_the_node(volume, group)
    assert found.startswith("replica")


def test_long_names_that_begin_alike_do_not_meet() -> None:
    base = "x" * 118
    found = {name_on_the_node(f"{base}{number:02}-0-deadbeef", "data") for number in range(50)}
    assert len(found) == 50


def test_a_volume_may_be_called_like_what_lvm_keeps_for_itself() -> None:
    assert name_on_the_node("snapshot-0-deadbeef", "data") == "replica-snapshot-0-deadbeef"


def test_a_disk_that_somebody_deletes_under_a_member_says_so_itself_and_once() -> None:
    """A deletion that hangs without a word would be taken for a fault."""
    view = doomed(picture())
    [event] = [each for each in decided(view).events if isinstance(each.obj, LVMLogicalVolume)]
    assert (event.reason, event.warning) == ("DeletionHeld", True)
    assert "delete pvc-1-0" in event.message
    assert decided(after(view)).events == ()

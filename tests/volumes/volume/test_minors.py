"""Device minors: unique, lowest free, and a duplicate is repaired."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api.meta import ObjectMeta, VolumeName
from quorate.api.quantity import Quantity
from quorate.api.storage import ReplicatedVolume, ReplicatedVolumeReplica
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rv import ReplicatedVolumeSpec, ReplicatedVolumeStatus, VolumeDrbd, VolumeDrbdConfig
from quorate.api.storage.rvr import ReplicatedVolumeReplicaSpec
from quorate.api.struct import replace
from quorate.engine import PatchStatus
from quorate.volumes.volume.minors import AT_ONCE, THE_MINORS, Minors, decide, observe
from tests.volumes.test_observe import FixedReader
from tests.volumes.volume.making import NOW, C, ago, members_of


def volume(
    name: str, minor: int | None = None, *, age: float = 0, formed: bool = False, **more: Any
) -> ReplicatedVolume:
    status = ReplicatedVolumeStatus(drbd=VolumeDrbd(config=VolumeDrbdConfig(device_minor=minor)))
    if formed:
        status = replace(status, datamesh=replace(status.datamesh, members=members_of(C)))
    return ReplicatedVolume(
        metadata=ObjectMeta(name=name, creation_timestamp=ago(age), resource_version="1", **more),
        spec=ReplicatedVolumeSpec(size=Quantity("1Gi"), replicated_storage_class_name="c"),
        status=status,
    )


def after(*volumes: ReplicatedVolume, **in_use: int) -> dict[str, int | None]:
    """The minors once what is decided has been written, again and again until there is nothing to write."""
    known = {each.name: each for each in volumes}

    def seen() -> Minors:
        found = tuple(sorted(known.values(), key=lambda each: each.name))
        lost = {each.name for each in found if each.status.drbd.config.device_minor is None}
        return Minors(found, {name: minor for name, minor in in_use.items() if name in lost})

    while steps := decide(seen(), NOW, Random(1)).steps:
        for step in steps:
            assert isinstance(step, PatchStatus)
            assert step.if_unchanged
            assert isinstance(step.intended, ReplicatedVolume)
            known[step.intended.name] = step.intended
    return {name: each.status.drbd.config.device_minor for name, each in known.items()}


@pytest.mark.parametrize(
    ("volumes", "expected"),
    [
        ([volume("a")], {"a": 0}),
        ([volume("a", 0), volume("b")], {"a": 0, "b": 1}),
        ([volume("a", 1), volume("b"), volume("c")], {"a": 1, "b": 0, "c": 2}),
        # The older asks first.
        ([volume("a", age=1), volume("b", age=9)], {"a": 1, "b": 0}),
        # M5: a volume that has one keeps it.
        ([volume("a", 7)], {"a": 7}),
        # Of two with one number the younger loses.
        ([volume("a", 3, age=1), volume("b", 3, age=9)], {"a": 0, "b": 3}),
        # One whose device may be in use is never given another name.
        ([volume("a", 3, age=1, formed=True), volume("b", 3, age=9)], {"a": 3, "b": 0}),
        ([volume("a", 3, age=1, formed=True), volume("b", 3, age=9, formed=True)], {"a": 3, "b": 3}),
        # One that goes needs none, and keeps the one it has until it is gone.
        ([volume("a", deletion_timestamp=NOW), volume("b")], {"a": None, "b": 0}),
        ([volume("a", 0, deletion_timestamp=NOW), volume("b")], {"a": 0, "b": 1}),
    ],
)
def test_every_volume_has_the_lowest_number_that_is_free(
    volumes: list[ReplicatedVolume], expected: dict[str, int | None]
) -> None:
    """M5."""
    assert after(*volumes) == expected


def test_two_formed_volumes_with_one_number_are_told_to_a_person() -> None:
    elder, younger = volume("a", 3, age=9, formed=True), volume("b", 3, age=1, formed=True)
    plan = decide(Minors((elder, younger, volume("c", 3))), NOW, Random(1))
    [event] = plan.events
    assert (event.obj.name, event.reason, event.warning) == ("b", "DeviceMinorTaken", True)
    assert "device minor 3 is volume a's" in event.message
    assert [step.intended.name for step in plan.steps if isinstance(step, PatchStatus)] == ["c"]
    assert decide(Minors((elder,)), NOW, Random(1)).events == ()


@given(st.lists(st.one_of(st.none(), st.integers(0, 12)), max_size=12))
def test_whatever_numbers_there_were_everybody_ends_with_one_of_his_own(minors: list[int | None]) -> None:
    found = after(*(volume(f"v{number:02}", minor, age=number) for number, minor in enumerate(minors)))
    assert None not in found.values()
    assert len(set(found.values())) == len(minors)


def test_a_pass_gives_out_no_more_than_so_many_at_once() -> None:
    many = tuple(volume(f"v{number:03}") for number in range(AT_ONCE + 20))
    assert len(decide(Minors(many), NOW, Random(1)).steps) == AT_ONCE
    assert sorted(map(int, filter(lambda minor: minor is not None, after(*many).values()))) == list(range(AT_ONCE + 20))  # type: ignore[arg-type]


def test_a_volume_that_has_lost_its_status_keeps_the_number_that_its_device_has() -> None:
    assert after(volume("lost"), volume("new", age=9), lost=0) == {"lost": 0, "new": 1}
    # Somebody unformed was given it meanwhile.
    assert after(volume("lost"), volume("new", 0, age=9), lost=0) == {"lost": 0, "new": 1}
    # Two devices with one number: neither is given another. An event says so.
    assert after(volume("lost"), volume("formed", 0, age=9, formed=True), lost=0) == {"lost": None, "formed": 0}


def test_a_number_in_use_is_read_off_the_replicas_of_a_volume_without_one() -> None:
    def replica(of: str, minor: int | None) -> ReplicatedVolumeReplica:
        spec = ReplicatedVolumeReplicaSpec(replicated_volume_name=VolumeName(of), type=ReplicaType.DISKFUL)
        found = ReplicatedVolumeReplica(metadata=ObjectMeta(name=f"{of}-0"), spec=spec)
        drbd = replace(found.status.drbd, config=replace(found.status.drbd.config, device_minor=minor))
        return replace(found, status=replace(found.status, drbd=drbd))

    objects = (volume("lost"), volume("new"), volume("b", 5), replica("lost", 7), replica("new", None), replica("b", 5))
    assert observe(FixedReader(objects, {}), THE_MINORS).in_use == {"lost": 7}

"""A drive that leaves: which replicas come and go for it, who waits for a turn, and what a dead one changes."""

from __future__ import annotations

import dataclasses

import pytest

from quorate.api import annotation_keys, names
from quorate.api.annotation_keys import Process, Release
from quorate.api.baremetal import Volume
from quorate.api.baremetal.volume import VolumeSpec
from quorate.api.maintenance.action import Marker
from quorate.api.meta import NodeName, ObjectMeta
from quorate.api.scalars import ReplicaName
from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import TransitionType
from quorate.api.storage.drbd import Device
from quorate.api.struct import replace
from quorate.volumes.evacuation import Evacuation, of_volume, read
from quorate.volumes.transitions.guards import copies_missing, may_join
from quorate.volumes.transitions.making import make
from quorate.volumes.view import VolumeView

from .story import TB, A, D
from .test_requests import NOW, said, volume

BOTH, AVAILABILITY = Replication.CONSISTENCY_AND_AVAILABILITY, Replication.AVAILABILITY
AT_ONCE, POLITELY, PAUSED = Evacuation(), Evacuation(polite=True), Evacuation(paused=True)
LOST = Evacuation(lost=True)


def leaving(view: VolumeView, **drives: Evacuation) -> VolumeView:
    """The same volume with some of its replicas (``_1``: the second) on drives that leave."""
    asked = {f"v{name.replace('_', '-')}": evacuation for name, evacuation in drives.items()}
    replicas = tuple(dataclasses.replace(each, evacuation=asked.get(each.name)) for each in view.replicas)
    return dataclasses.replace(view, replicas=replicas)


def published(view: VolumeView, number: int) -> VolumeView:
    """The same volume in use on one node."""
    return view.with_status(replace(view.volume.status, published_on=(NodeName(f"n{number}"),)))


def without_disk(view: VolumeView, number: int) -> VolumeView:
    """The same volume with one drive that answers nothing."""

    def spoilt(name: str) -> VolumeView:
        replicas = []
        for each in view.replicas:
            if each.name == name:
                drbd = each.replica.status.drbd
                assert drbd.status is not None
                report = replace(drbd.status, devices=(Device(disk_state="Diskless", quorum=True),))
                status = replace(each.replica.status, drbd=replace(drbd, status=report))
                each = dataclasses.replace(each, replica=replace(each.replica, status=status))
            replicas.append(each)
        return dataclasses.replace(view, replicas=tuple(replicas))

    return spoilt(f"v-{number}")


TABLE: dict[str, tuple[VolumeView, list[str]]] = {
    "a replacement comes first": (leaving(volume(BOTH, [D, D, D]), _1=AT_ONCE), ["Create Diskful: DiskfulCount"]),
    "not a second one": (leaving(volume(BOTH, [D, D, D, D], new=(3,)), _1=AT_ONCE), []),
    "then the old one goes": (leaving(volume(BOTH, [D, D, D, D]), _1=AT_ONCE), ["Delete v-1: DriveLeaves"]),
    "politely, while all is well": (leaving(volume(BOTH, [D, D, D, D]), _1=POLITELY), ["Delete v-1: DriveLeaves"]),
    "politely, and another drive is dead": (without_disk(leaving(volume(BOTH, [D, D, D, D, D]), _1=POLITELY), 2), []),
    "at once, although another drive is dead": (
        without_disk(leaving(volume(BOTH, [D, D, D, D, D]), _1=AT_ONCE), 2),
        ["Delete v-1: DriveLeaves"],
    ),
    "paused before": (leaving(volume(BOTH, [D, D, D]), _1=PAUSED), []),
    "paused after": (leaving(volume(BOTH, [D, D, D, D]), _1=PAUSED), []),
    "two drives, one replacement at a time": (
        leaving(volume(BOTH, [D, D, D]), _1=AT_ONCE, _2=AT_ONCE),
        ["Create Diskful: DiskfulCount"],
    ),
    "two drives, one of them paused": (
        leaving(volume(BOTH, [D, D, D]), _1=AT_ONCE, _2=PAUSED),
        ["Create Diskful: DiskfulCount"],
    ),
    "the replacement's own drive leaves": (
        leaving(volume(BOTH, [D, D, D, D], new=(3,)), _1=AT_ONCE, _3=AT_ONCE),
        ["Delete v-3: DriveLeaves"],
    ),
    "a dead drive and nowhere to go": (
        without_disk(leaving(volume(BOTH, [D, D, D, D], new=(3,)), _1=LOST), 1),
        ["Delete v-1: DriveLeaves"],
    ),
    "a drive that is back, and still called dead": (leaving(volume(BOTH, [D, D, D, D], new=(3,)), _1=LOST), []),
    "the same, of one that is only suspect": (
        leaving(volume(BOTH, [D, D, D, D], new=(3,)), _1=Evacuation(lost=True, polite=True)),
        [],
    ),
    "dead, and paused": (
        without_disk(leaving(volume(BOTH, [D, D, D, D], new=(3,)), _1=Evacuation(lost=True, paused=True)), 1),
        [],
    ),
    "dead, and only suspect": (
        without_disk(leaving(volume(BOTH, [D, D, D, D], new=(3,)), _1=Evacuation(lost=True, polite=True)), 1),
        [],
    ),
    "dead, and in use": (
        without_disk(leaving(published(volume(BOTH, [D, D, D, D], new=(3,)), 1), _1=LOST), 1),
        [],
    ),
    "with a tie-breaker": (leaving(volume(AVAILABILITY, [D, D, TB]), _0=AT_ONCE), ["Create Diskful: DiskfulCount"]),
}


@pytest.mark.parametrize("name", TABLE)
def test_what_comes_and_goes(name: str) -> None:
    view, expected = TABLE[name]
    assert said(view) == expected


@pytest.mark.parametrize(
    ("marker", "expected"),
    [
        (Marker.DISK_BROKEN, ["Delete v-1: Marked"]),
        (Marker.DISK_FAULTY, ["Delete v-1: Marked"]),
        (Marker.DISK_ACTIVE, ["Delete v-3: DiskfulCount"]),
        (Marker.DISK_INACTIVE, ["Delete v-3: DiskfulCount"]),
    ],
)
def test_a_replica_that_the_broker_marks_is_moved(marker: Marker, expected: list[str]) -> None:
    view = volume(BOTH, [D, D, D, D])
    marked = view.by_name[ReplicaName("v-1")]
    metadata = replace(marked.replica.metadata, annotations={annotation_keys.MARKER: marker})
    replicas = tuple(
        dataclasses.replace(each, replica=replace(each.replica, metadata=metadata)) if each is marked else each
        for each in view.replicas
    )
    assert said(dataclasses.replace(view, replicas=replicas)) == expected


def objection(view: VolumeView, number: int) -> str:
    joining = make(view, TransitionType.ADD_REPLICA, NOW, ReplicaName(f"v-{number}"), after=D)
    wait = may_join(view, joining)
    return wait.reason if wait is not None else ""


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        (leaving(volume(BOTH, [D, D, D, D], new=(3,)), _1=AT_ONCE), "WaitingForTurn"),
        (leaving(volume(BOTH, [D, D, D, D], new=(3,)), _1=Evacuation(to=ReplicaName("v-3"))), ""),
        (leaving(volume(BOTH, [D, D, D, D], new=(3,)), _1=Evacuation(to=ReplicaName("v-4"))), "WaitingForTurn"),
        (
            leaving(volume(BOTH, [D, D, D, D], new=(3,)), _1=Evacuation(to=ReplicaName("v-3"), paused=True)),
            "WaitingForTurn",
        ),
        # The volume lacks a member anyway, or a good copy of one that stays: nothing to wait for.
        (leaving(volume(BOTH, [D, D, D], new=(2,)), _1=AT_ONCE), ""),
        (without_disk(leaving(volume(BOTH, [D, D, D, D], new=(3,)), _1=AT_ONCE), 0), ""),
        # A drive that is dead has its turn like any other.
        (without_disk(leaving(volume(BOTH, [D, D, D, D], new=(3,)), _1=AT_ONCE), 1), "WaitingForTurn"),
        (volume(BOTH, [D, D, D, D], new=(3,)), ""),
        (leaving(volume(BOTH, [D, D, D, A], new=(3,)), _1=AT_ONCE), "WaitingForTurn"),
    ],
)
def test_who_is_only_to_take_over_waits_for_its_turn(view: VolumeView, reason: str) -> None:
    number = view.replicas[-1].id
    assert objection(view, number) == ("" if view.replicas[-1].type is A else reason)


def test_a_dead_copy_goes_if_writes_go_on_without_it_and_a_good_one_only_if_the_promise_is_kept() -> None:
    def wait(view: VolumeView) -> str:
        going = make(view, TransitionType.REMOVE_REPLICA, NOW, ReplicaName("v-1"), before=D)
        found = copies_missing(view, going)
        return found.reason if found is not None else ""

    three = volume(BOTH, [D, D, D])
    assert wait(leaving(three, _1=AT_ONCE)) == "CopiesMissing"
    assert wait(without_disk(leaving(three, _1=AT_ONCE), 1)) == "CopiesMissing"
    assert wait(without_disk(leaving(three, _1=LOST), 1)) == ""
    pair = volume(Replication.CONSISTENCY, [D, D])
    assert wait(without_disk(leaving(pair, _1=LOST), 1)) == "CopiesMissing"
    alone = volume(Replication.NONE, [D, D])
    assert wait(without_disk(without_disk(leaving(alone, _1=LOST), 1), 0)) == "CopiesMissing"


def a_volume(**said: str) -> Volume:
    keys = {
        "release": annotation_keys.RELEASE,
        "process": annotation_keys.RELEASE_PROCESS,
        "health": annotation_keys.VOLUME_HEALTH,
        "to": annotation_keys.MOVE_TO,
        "lost": annotation_keys.COPY_LOST,
    }
    name = names.logical_volume("my-volume-1", "group")
    return Volume(
        metadata=ObjectMeta(name=name, namespace="x", annotations={keys[key]: value for key, value in said.items()}),
        spec=VolumeSpec(id=name, location="group", node_id=NodeName("n")),
    )


@pytest.mark.parametrize(
    ("volume_", "expected"),
    [
        (None, None),
        (a_volume(process=Process.START), None),
        (a_volume(process=Process.START, release=Release.FAILED), None),
        (a_volume(process=Process.START, release=Release.PROCESSING, health="bad"), AT_ONCE),
        (a_volume(release=Release.PROCESSING, health="bad"), AT_ONCE),
        # Only what is known to be bad is left in haste.
        (a_volume(release=Release.PROCESSING, health="suspect"), POLITELY),
        (a_volume(release=Release.PROCESSING, health="unknown"), POLITELY),
        (a_volume(release=Release.PROCESSING, health="good"), POLITELY),
        (a_volume(release=Release.PROCESSING), POLITELY),
        (a_volume(process=Process.PAUSE, release=Release.PROCESSING, health="bad"), PAUSED),
        (a_volume(process=Process.STOP, release=Release.PROCESSING), None),
        (a_volume(release=Release.PROCESSING, health="bad", to="v-3"), Evacuation(to=ReplicaName("v-3"))),
        (a_volume(release=Release.COMPLETED, health="bad", lost="true"), LOST),
    ],
)
def test_what_a_procedure_asks_for_is_in_its_annotations(volume_: Volume | None, expected: Evacuation | None) -> None:
    assert read(volume_) == expected


def test_a_procedure_wakes_the_volume_that_it_speaks_of() -> None:
    assert [key.name for key in of_volume(a_volume())] == ["my-volume"]

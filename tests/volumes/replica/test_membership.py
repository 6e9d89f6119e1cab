"""What a replica asks of the datamesh, what its agent is told, and what is shown of it."""

from __future__ import annotations

from dataclasses import replace as changed

import pytest

from quorate.api import finalizers
from quorate.api.quantity import Quantity
from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import PendingTransition
from quorate.api.storage.drbd import Address, DrbdConfig
from quorate.api.storage.llv import LogicalVolumePhase
from quorate.volumes.datamesh import config_of
from quorate.volumes.view import VolumeView
from tests.volumes.replica.making import (
    GI,
    NEEDED,
    REVISION,
    TB,
    A,
    D,
    address,
    deleting,
    logical_volume,
    name,
    node,
    picture,
    settled,
    spoilt,
    with_drbd,
    with_member,
    with_metadata,
    with_rv,
    with_spec,
    with_status,
    without_membership,
    written,
)

JOIN = PendingTransition(member=True, type=D, lvm_volume_group_name="g0")
NEWCOMER = spoilt(without_membership(picture(), 0), 0, with_drbd(status=None))
WITH_TIE_BREAKER = picture((D, D, TB), Replication.AVAILABILITY)


def unfinished(view: VolumeView) -> VolumeView:
    found = logical_volume(0, NEEDED, phase=LogicalVolumePhase.PENDING, actual_size=None)
    return spoilt(view, 0, lambda each: changed(each, volumes=(found,)))


ASKED = [
    ("a member as it should be", picture(), 0, None),
    ("ready to join", NEWCOMER, 0, JOIN),
    ("no disk yet", unfinished(NEWCOMER), 0, None),
    ("no address yet", spoilt(NEWCOMER, 0, with_drbd(config=DrbdConfig(node_id=0))), 0, None),
    ("no place yet", spoilt(NEWCOMER, 0, with_spec(node_name=None)), 0, None),
    (
        "diskless, ready to join",
        without_membership(WITH_TIE_BREAKER, 2),
        2,
        PendingTransition(member=True, type=TB),
    ),
    ("leaving", spoilt(picture(), 0, deleting), 0, PendingTransition(member=False)),
    ("has left", spoilt(without_membership(picture(), 0), 0, deleting), 0, None),
    (
        "to be another type",
        spoilt(WITH_TIE_BREAKER, 2, with_spec(type=A)),
        2,
        PendingTransition(type=A),
    ),
    (
        "to get a disk",
        with_member(picture(), 0, type=A, lvm_volume_group_name=""),
        0,
        PendingTransition(type=D, lvm_volume_group_name="g0"),
    ),
    (
        "to get a disk that is not there yet",
        unfinished(with_member(picture(), 0, type=A, lvm_volume_group_name="")),
        0,
        None,
    ),
    (
        "to move to another disk",
        with_member(picture(), 0, lvm_volume_group_name="old"),
        0,
        PendingTransition(type=D, lvm_volume_group_name="g0"),
    ),
    ("diskless, with a disk's name left over", with_member(WITH_TIE_BREAKER, 2, lvm_volume_group_name="old"), 2, None),
    ("no volume", changed(NEWCOMER, rv=None), 0, None),
    (
        "kept by a stranger",
        spoilt(picture(), 0, lambda each: with_metadata(finalizers=("example.com/mine",))(deleting(each))),
        0,
        None,
    ),
]


@pytest.mark.parametrize(("view", "number", "asked"), [row[1:] for row in ASKED], ids=[row[0] for row in ASKED])
def test_what_a_replica_asks_for(view: VolumeView, number: int, asked: PendingTransition | None) -> None:
    assert written(view, number).status.datamesh_pending_transition == asked


def test_a_members_config_is_its_revisions_and_its_address_stays_the_agents() -> None:
    """M24, M28: rendered in one place, complete, stamped; peers are the members of that revision."""
    view = picture()
    config = written(view, 0).status.drbd.config
    assert config == config_of(view, view.replicas[0])
    assert (config.datamesh_revision, config.node_id, config.peers_initialized) == (REVISION, 0, True)
    assert config.address == address(0)
    assert [peer.name for peer in config.peers] == [name(1), name(2)]


def test_before_membership_there_is_only_the_node_id() -> None:
    """Nothing may be configured before membership: no revision, so no file and no ``up``."""
    blank = spoilt(NEWCOMER, 0, with_drbd(config=DrbdConfig(address=Address(ipv4="10.0.0.1", port=7000))))
    assert written(blank, 0).status.drbd.config == DrbdConfig(node_id=0, address=Address(ipv4="10.0.0.1", port=7000))


def gone_from_the_datamesh(revision: int) -> VolumeView:
    """A replica that is being deleted and slept while the others removed it."""
    known = settled(picture()).replicas[0].replica.status.drbd.config
    view = without_membership(spoilt(picture(), 0, deleting), 0, datamesh_revision=revision)
    return spoilt(view, 0, with_drbd(config=known))


def test_one_that_slept_through_its_removal_is_told_to_stay_down() -> None:
    config = written(gone_from_the_datamesh(REVISION + 1), 0).status.drbd.config
    assert config.down
    assert config.datamesh_revision == REVISION


def test_a_volume_that_has_lost_its_status_takes_nobody_down() -> None:
    """A revision that is not even known cannot have removed anybody."""
    assert not written(gone_from_the_datamesh(0), 0).status.drbd.config.down
    alive = spoilt(gone_from_the_datamesh(REVISION + 1), 0, with_metadata(deletion_timestamp=None))
    assert not written(alive, 0).status.drbd.config.down


def test_what_is_shown_of_a_member() -> None:
    status = written(picture(), 0).status
    assert [(each.system_network_name, each.address) for each in status.addresses] == [("Internal", address(0))]
    assert status.size == Quantity.of_bytes(GI)
    assert status.backing_volume is not None
    assert (status.backing_volume.size, status.backing_volume.state) == (Quantity.of_bytes(NEEDED), "UpToDate")
    peer = status.peers[0]
    assert (peer.name, peer.type, peer.attached) == (name(1), D, False)
    assert (peer.connection_state, peer.connection_established_on) == ("Connected", ("Internal",))
    assert (peer.backing_volume_state, peer.replication_state) == ("UpToDate", "Established")


def test_members_without_a_disk_see_only_those_with_one() -> None:
    view = picture((D, D, TB, A), Replication.AVAILABILITY)
    assert [peer.name for peer in written(view, 3).status.peers] == [name(0), name(1)]
    assert [peer.name for peer in written(view, 0).status.peers] == [name(1), name(2), name(3)]


def test_what_is_shown_outlives_an_agents_silence() -> None:
    """The last report stays, and what follows from it: only conditions say that it may be old."""
    view = settled(picture())
    silent = changed(view.replicas[0], node=node(0, fresh=False))
    status = written(spoilt(view, 0, lambda _: silent), 0).status
    assert status.peers == view.replicas[0].replica.status.peers
    assert status.size == view.replicas[0].replica.status.size


def test_an_excused_member_is_no_peer_until_it_has_caught_up() -> None:
    view = with_member(picture(), 2, excused=True, hidden=True)
    assert [peer.name for peer in written(view, 0).status.drbd.config.peers] == [name(1)]


def test_a_replica_born_before_its_volume_has_anything_to_say_is_patient() -> None:
    view = with_rv(without_membership(picture(), 0, 1, 2, datamesh_revision=0), configuration=None)
    view = spoilt(view, 0, with_status(datamesh_revision=0))
    assert written(view, 0).status.drbd.config.datamesh_revision == 0
    assert finalizers.AGENT in view.replicas[0].replica.metadata.finalizers

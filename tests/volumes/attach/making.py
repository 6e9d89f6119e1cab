"""Volumes that somebody uses, for the tables of attach and resize; built on those of the replicas' tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as changed
from datetime import datetime, timedelta
from typing import Any

from quorate.api.storage.configuration import Replication
from quorate.api.storage.datamesh import Transition, TransitionType
from quorate.api.storage.rv import AttachRequest, AttachSource
from quorate.api.struct import replace
from quorate.volumes.transitions.making import make
from quorate.volumes.view import ReplicaView, VolumeView
from tests.volumes.replica.making import LAYOUTS, NOW, name, node_name, picture, spoilt, with_member, with_rv

ONE, TWO, TIE, THREE = (
    Replication.NONE,
    Replication.CONSISTENCY,
    Replication.AVAILABILITY,
    Replication.CONSISTENCY_AND_AVAILABILITY,
)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def asked(*numbers: int) -> tuple[AttachRequest, ...]:
    """A queue of nodes, a second apart."""
    return tuple(
        AttachRequest(node_name=node_name(number), since=at(place), source=AttachSource.ATTACHMENT)
        for place, number in enumerate(numbers)
    )


def of(replication: Replication, *queue: int, **more: Any) -> VolumeView:
    """A healthy volume, with nodes that ask for it."""
    view = picture(more.pop("layout", LAYOUTS[replication]), replication, **more)
    return with_rv(view, attach_requests=asked(*queue))


def with_role(role: str, **device: Any) -> Callable[[ReplicaView], ReplicaView]:
    def change(found: ReplicaView) -> ReplicaView:
        drbd = found.replica.status.drbd
        assert drbd.status is not None
        devices = (replace(drbd.status.devices[0], **device),)
        status = replace(
            found.replica.status, drbd=replace(drbd, status=replace(drbd.status, role=role, devices=devices))
        )
        return changed(found, replica=replace(found.replica, status=status))

    return change


def attached(view: VolumeView, *numbers: int) -> VolumeView:
    """Attached there, and Primary."""
    for number in numbers:
        view = spoilt(with_member(view, number, attached=True), number, with_role("Primary"))
    return view


def with_two_allowed(view: VolumeView, *slow: int) -> VolumeView:
    """Two primaries are allowed, and all members but these say so."""
    assert view.rv is not None
    drbd = view.rv.status.drbd
    view = with_rv(view, drbd=replace(drbd, config=replace(drbd.config, allow_two_primaries=True)))
    for replica in view.replicas:
        if replica.id not in slow:
            view = spoilt(view, replica.id, _allowing)
    return view


def _allowing(found: ReplicaView) -> ReplicaView:
    drbd = found.replica.status.drbd
    actual = replace(drbd.actual, allow_two_primaries=True)
    status = replace(found.replica.status, drbd=replace(drbd, actual=actual))
    return changed(found, replica=replace(found.replica, status=status))


def cut(view: VolumeView, one: int, other: int, state: str = "Connecting") -> VolumeView:
    """The link between two members is gone, and both say so."""

    def without(gone: int) -> Callable[[ReplicaView], ReplicaView]:
        def change(found: ReplicaView) -> ReplicaView:
            drbd = found.replica.status.drbd
            assert drbd.status is not None
            links = tuple(
                replace(link, connection_state=state, peer_role="Unknown") if link.peer_node_id == gone else link
                for link in drbd.status.connections
            )
            status = replace(found.replica.status, drbd=replace(drbd, status=replace(drbd.status, connections=links)))
            return changed(found, replica=replace(found.replica, status=status))

        return change

    return spoilt(spoilt(view, one, without(other)), other, without(one))


def transition(view: VolumeView, kind: TransitionType, number: int | None = None) -> Transition:
    return make(view, kind, NOW, name(number) if number is not None else None)  # type: ignore[arg-type]

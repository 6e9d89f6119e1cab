"""Markers: what a person says of a node, a drive or a replica. The disk monitor acts on them (``monitor``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quorate.api.maintenance.action import StatusCode
from quorate.api.maintenance.log_record import RecordType
from quorate.maintenance.broker.answers import OK
from quorate.maintenance.broker.book import MONITOR
from quorate.maintenance.broker.callers import require_admin
from quorate.maintenance.broker.core import Core
from quorate.maintenance.broker.declined import Declined, wrong
from quorate.maintenance.broker.draft import Draft
from quorate.maintenance.broker.turns import Turns
from quorate.maintenance.entries import MarkerEntry
from quorate.maintenance.messages import Caller, MarkedItems, MarkerResponse, SetMarker
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.model.lookup import device_label
from quorate.maintenance.nouns import DriveId, VDiskId, parse_device

#: How a marker names a node: this, and its number.
NODE_ITEM: Final = "node-"


def node_item(node_id: int) -> str:
    """How a marker names a node."""
    return f"{NODE_ITEM}{node_id}"


class Markers:
    """SetMarker, and its opposite."""

    def __init__(self, core: Core, turns: Turns) -> None:
        self._core = core
        self._turns = turns

    async def set(self, asked: SetMarker, caller: Caller) -> MarkerResponse:
        """Mark, or unmark."""
        who, verified = self._who(asked, caller)
        self._core.open()
        if asked.marker is None:
            raise wrong("Marker is not given: say which")
        items = tuple(dict.fromkeys(self._items(asked.items)))
        if not items:
            raise wrong("Items is empty: say which hosts, nodes, drives or replicas")
        await self._turns.take(
            lambda draft: _change(draft, self._core.model, asked, items, who, verified), weighs=False
        )
        return MarkerResponse(status=OK)

    def _who(self, asked: SetMarker, caller: Caller) -> tuple[str, bool]:
        """Whose word it is, and whether a token proves it. To move data off drives takes an admin."""
        if asked.user_token:
            known = self._core.identities.identify(asked.user_token)
            if known is not None:
                require_admin(known, "marking")
                return known.name, True
            if not caller.anyone:
                raise Declined(StatusCode.UNAUTHORIZED, "UserToken is not known")
        require_admin(caller, "marking")
        return caller.name or "anyone", False

    def _items(self, items: MarkedItems) -> Iterator[str]:
        model = self._core.model
        for host in items.hosts:
            nodes = model.nodes_of(host)
            if not nodes:
                raise Declined(StatusCode.NO_SUCH_HOST, f"there is no host {host!r}")
            yield from (node_item(node.id) for node in nodes)
        for node_id in items.nodes:
            if model.node(node_id) is None:
                raise Declined(StatusCode.NO_SUCH_HOST, f"there is no node {node_id}")
            yield node_item(node_id)
        for name in items.drives:
            drive = parse_device(name)
            if not isinstance(drive, DriveId) or model.drive(drive) is None:
                raise Declined(StatusCode.NO_SUCH_DEVICE, f"there is no drive {name!r}: expected pdisk-<node>-<drive>")
            yield str(drive)
        for name in items.vdisks:
            vdisk = parse_device(name)
            if not isinstance(vdisk, VDiskId) or model.vdisk(vdisk) is None:
                raise Declined(StatusCode.NO_SUCH_DEVICE, f"there is no replica {name!r}")
            yield str(vdisk)


def _change(
    draft: Draft, model: ClusterModel, asked: SetMarker, items: tuple[str, ...], who: str, verified: bool
) -> None:
    assert asked.marker is not None
    by_monitor = who == MONITOR
    for item in items:
        before = [entry for key in ((item, False), (item, True)) if (entry := draft.book.markers.get(key)) is not None]
        if asked.reset:
            # A person takes back either; the monitor only its own.
            changes = [
                entry for entry in before if entry.marker is asked.marker and (entry.by == MONITOR or not by_monitor)
            ]
            for entry in changes:
                draft.unmark(entry)
        else:
            marker = MarkerEntry(item=item, marker=asked.marker, since=draft.now, by=who)
            changes = [entry for entry in before if (entry.by == MONITOR) == by_monitor]
            if any(entry.marker is asked.marker and entry.by == who for entry in changes):
                continue
            draft.mark(marker)
        if changes or not asked.reset:
            _note(draft, _label(model, item), asked, item, before, who, verified)


def _label(model: ClusterModel, item: str) -> str:
    """What people call it. A node's number is not the one in its host's name."""
    number = item.removeprefix(NODE_ITEM)
    if item.startswith(NODE_ITEM) and number.isdecimal() and (node := model.node(int(number))) is not None:
        return node.host
    return device_label(model, item)


def _note(
    draft: Draft, label: str, asked: SetMarker, item: str, before: list[MarkerEntry], who: str, verified: bool
) -> None:
    after = [entry for key in ((item, False), (item, True)) if (entry := draft.book.markers.get(key)) is not None]
    draft.record(
        RecordType.MARKERS_MODIFICATION,
        f"{label}: {asked.marker} {'reset' if asked.reset else 'set'} by {who}",
        {
            "item": item,
            "before": [str(entry.marker) for entry in before],
            "after": [str(entry.marker) for entry in after],
            "by": who,
            "token": ("verified" if verified else "not verified") if asked.user_token else "none",
        },
    )

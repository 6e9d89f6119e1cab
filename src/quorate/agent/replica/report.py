"""What the kernel shows, as the API reports it.

Numbers that change all the time are taken along only when something else has changed; how much is in sync goes in
whole percent, at most every few seconds.

Bits against a peer that is as good as this copy are news (``drbd.marks``): that there are any, and how many in powers
of two. They come and go for a moment when members meet, or a copy ends; so they are told of when they have stood for a
few seconds and were seen again.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from quorate.agent.replica.kernel import disk_state, has_disk, is_diskful
from quorate.agent.replica.view import View
from quorate.agent.steps import KERNEL, Look
from quorate.api.storage.drbd import Connection, Device, DiskState, DrbdActual, DrbdStatus, PeerDevice
from quorate.api.struct import replace
from quorate.drbd.marks import marked_peers

#: Seconds between two reports of nothing but progress.
PROGRESS_INTERVAL = 5.0
#: Seconds for which bits against a good peer have to stand before they are told of.
MARKS_SETTLE = 3.0
#: Since when bits stand that an agent finds when it is started.
LONG_AGO = datetime.min.replace(tzinfo=UTC)


def second_look(view: View) -> Look:
    """What tells bits that stand from those of a moment."""
    return Look(KERNEL, view.resource, after=MARKS_SETTLE)


def drbd_status(view: View, now: datetime) -> tuple[DrbdStatus | None, float | None]:
    """What to report, and after how many seconds to report more."""
    shown, reported = _settled(view, now), view.replica.status.drbd.status
    if shown is None or reported is None:
        return shown, None
    if shown == reported:
        return reported, None
    if _steady(shown) != _steady(reported):
        return shown, None
    if _percentages(shown) == _percentages(reported):
        return reported, None
    if view.progress_reported is not None:
        left = PROGRESS_INTERVAL - max(0.0, (now - view.progress_reported).total_seconds())
        if left > 0:
            return reported, left
    return shown, None


def actual(view: View, realised: bool, changes: dict[str, Any]) -> DrbdActual:
    """What has been realised. ``realised``: the kernel is what the current config says."""
    before, config, status = view.actual, view.config, view.status
    after: dict[str, Any] = {}
    if before.metadata_created and not view.metadata_owner_exists:
        after |= {"metadata_created": "", "backing_size": None}
    if not has_disk(status):
        after["disk"] = ""
    elif realised:
        after["disk"] = config.disk or ""
    if realised and status is not None:
        after["allow_two_primaries"] = config.allow_two_primaries
    if disk_state(status) == DiskState.UP_TO_DATE or (realised and status is not None and not is_diskful(config)):
        after["initial_sync_completed"] = True
    if before.held_for_copies != (held := view.held and status is not None and status.suspended_user):
        after["held_for_copies"] = held
    if (loss := view.quorum_loss) is not None:
        after |= {"quorum_lost_at": loss.at, "quorum_loss_prevented": loss.prevented}
    after |= changes
    return replace(before, **after) if any(getattr(before, name) != value for name, value in after.items()) else before


def _settled(view: View, now: datetime) -> DrbdStatus | None:
    """What is shown, without bits that may be of the moment, and with counters that can be."""
    status, since = view.status, view.marked_since
    marks = marked_peers(status)
    if status is None or not marks:
        return status
    told = marked_peers(view.replica.status.drbd.status)
    stand = since is not None and (now - since).total_seconds() >= MARKS_SETTLE
    return replace(
        status,
        connections=tuple(
            _with_marks(link, marks[link.peer_node_id] if stand or link.peer_node_id in told else 0)
            if link.peer_node_id in marks
            else link
            for link in status.connections
        ),
    )


def _with_marks(link: Connection, amount: int) -> Connection:
    return replace(link, peer_devices=tuple(replace(each, out_of_sync=amount) for each in link.peer_devices))


def _steady(status: DrbdStatus) -> DrbdStatus:
    """Without what changes all the time."""
    marks = marked_peers(status)
    return replace(
        status,
        devices=tuple(_steady_device(each) for each in status.devices),
        connections=tuple(_steady_connection(each, marks.get(each.peer_node_id, 0)) for each in status.connections),
    )


def _steady_device(device: Device) -> Device:
    return replace(device, read=0, written=0, al_writes=0, bm_writes=0, upper_pending=0, lower_pending=0)


def _steady_connection(link: Connection, marked: int) -> Connection:
    return replace(
        link,
        congested=False,
        ap_in_flight=0,
        rs_in_flight=0,
        peer_devices=tuple(
            replace(each, out_of_sync=marked.bit_length(), pending=0, unacked=0, percent_in_sync=0)
            for each in link.peer_devices
        ),
    )


def _percentages(status: DrbdStatus) -> list[int]:
    return [each.percent_in_sync for each in peer_devices(status)]


def peer_devices(status: DrbdStatus) -> list[PeerDevice]:
    """Every peer's side of the volume."""
    return [each for link in status.connections for each in link.peer_devices]

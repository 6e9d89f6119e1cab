"""What the kernel shows, as the API reports it.

Numbers that change all the time are taken along only when something else has changed; how much is in sync goes in
whole percent, at most every few seconds.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from quorate.agent.replica.kernel import disk_state, has_disk, is_diskful
from quorate.agent.replica.view import View
from quorate.api.storage.drbd import Connection, Device, DiskState, DrbdActual, DrbdStatus, PeerDevice
from quorate.api.struct import replace

#: Seconds between two reports of nothing but progress.
PROGRESS_INTERVAL = 5.0


def drbd_status(view: View, now: datetime) -> tuple[DrbdStatus | None, float | None]:
    """What to report, and after how many seconds to report more."""
    shown, reported = view.status, view.replica.status.drbd.status
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
    after |= changes
    return replace(before, **after) if any(getattr(before, name) != value for name, value in after.items()) else before


def _steady(status: DrbdStatus) -> DrbdStatus:
    """Without what changes all the time."""
    return replace(
        status,
        devices=tuple(_steady_device(each) for each in status.devices),
        connections=tuple(_steady_connection(each) for each in status.connections),
    )


def _steady_device(device: Device) -> Device:
    return replace(device, read=0, written=0, al_writes=0, bm_writes=0, upper_pending=0, lower_pending=0)


def _steady_connection(link: Connection) -> Connection:
    return replace(
        link,
        congested=False,
        ap_in_flight=0,
        rs_in_flight=0,
        peer_devices=tuple(
            replace(each, out_of_sync=0, pending=0, unacked=0, percent_in_sync=0) for each in link.peer_devices
        ),
    )


def _percentages(status: DrbdStatus) -> list[int]:
    return [each.percent_in_sync for each in peer_devices(status)]


def peer_devices(status: DrbdStatus) -> list[PeerDevice]:
    """Every peer's side of the volume."""
    return [each for link in status.connections for each in link.peer_devices]

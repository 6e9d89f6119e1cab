"""CreateNewUUID: a new volume's first data. Only while nobody has any: every disk Inconsistent, and all connected."""

from __future__ import annotations

from datetime import datetime

from quorate.agent.operations.case import (
    LATER,
    PURPOSE,
    Case,
    Ruling,
    diskful,
    failed,
    failed_command,
    pending,
    running,
    succeeded,
)
from quorate.agent.replica.kernel import connection_to, disk_state
from quorate.agent.steps import Run, kernel_of
from quorate.api.storage.drbd import ConnectionState, DiskState, DrbdConfig, DrbdStatus, Peer, ReplicationState


def begin(case: Case, now: datetime) -> Ruling:
    """Whether it may run."""
    if refusal := has_data(case.config, case.status):
        return failed(case, now, f"not run: {refusal}")
    if obstacle := not_ready(case.config, case.status):
        return pending(case, f"waiting: {obstacle}")
    return running(case, now)


def go_on(case: Case, now: datetime) -> Ruling:
    """Run it; found Running with the own disk UpToDate, it was run."""
    last = case.outcomes.get(PURPOSE)
    if disk_state(case.status) == DiskState.UP_TO_DATE or (last is not None and last.succeeded):
        return succeeded(case, now)
    if last is not None:
        return failed_command(case, now, last)
    if disk_state(case.status) != DiskState.INCONSISTENT or case.status is None:
        # It is coming up after a restart. Whether the command ran shows when it is up, connected and quorate.
        return Ruling(case.operation.status, again=LATER)
    if refusal := has_data(case.config, case.status):
        return failed(case, now, f"not run: {refusal}")
    if not_ready(case.config, case.status):
        return Ruling(case.operation.status, again=LATER)
    return Ruling(case.operation.status, steps=(command(case),))


def has_data(config: DrbdConfig, status: DrbdStatus | None) -> str:
    """Who may have data that a new generation would declare void; "" if nobody has."""
    if status is None:
        return ""
    own = disk_state(status)
    if own != DiskState.INCONSISTENT:
        return f"the own disk is {own}, not {DiskState.INCONSISTENT.value}"
    for peer in diskful(config):
        link = connection_to(status, peer)
        if link is None or link.connection_state != ConnectionState.CONNECTED:
            continue  # what is shown of its disk is only remembered
        theirs = _peer_disk(status, peer)
        if theirs not in (DiskState.INCONSISTENT, DiskState.UNKNOWN, ""):
            return f"the disk of {peer.name} is {theirs}, not {DiskState.INCONSISTENT.value}"
    return ""


def not_ready(config: DrbdConfig, status: DrbdStatus | None) -> str:
    """Which link is not up yet; "" if all are."""
    if status is None:
        return "the resource is not up"
    for peer in diskful(config):
        link = connection_to(status, peer)
        if link is None or link.connection_state != ConnectionState.CONNECTED:
            return f"{peer.name} is {link.connection_state if link is not None else 'not linked'}"
        flows = [volume.replication_state for volume in link.peer_devices]
        if flows != [ReplicationState.ESTABLISHED] or _peer_disk(status, peer) != DiskState.INCONSISTENT:
            return f"{peer.name} is {', '.join(flows) or 'without a volume'}, its disk {_peer_disk(status, peer)}"
    return ""


def command(case: Case) -> Run:
    """How it is done."""
    how = case.operation.spec.create_new_uuid
    option = "--clear-bitmap" if how is not None and how.clear_bitmap else "--force-resync"
    argv = ("drbdadm", "-c", case.file, "new-current-uuid", option, f"{case.resource}/0")
    return Run(argv, PURPOSE, case.about, changes=(kernel_of(case.resource),))


def _peer_disk(status: DrbdStatus, peer: Peer) -> str:
    link = connection_to(status, peer)
    return link.peer_devices[0].peer_disk_state if link is not None and link.peer_devices else ""

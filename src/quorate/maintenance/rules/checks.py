"""The checks of a node, a drive and a replica, in the specification's order; the first failure gives the reason.

- Node: its own lock, the tenant's and the cluster's limits, its empty drives, its replicas, its rings. One that
  is surely down already may be worked on whatever the rest says; only a change of a volume's members that is under way
  must not be disturbed, but by force: it may wait for this very node.
- Drive: its replicas.
- Replica: locks on it, on its drive, on its node; then its group.

Whatever passes is taken, so that the rest of the request sees it.
"""

from __future__ import annotations

from quorate.api.maintenance.action import HostState, IssueType, StatusCode
from quorate.maintenance.model.items import DriveItem, Item, NodeItem, VDiskItem
from quorate.maintenance.rules.groups import objection_to_group
from quorate.maintenance.rules.inquiry import Inquiry
from quorate.maintenance.rules.limits import objection_to_limits
from quorate.maintenance.rules.obstacles import Objection, Obstacle, objection_to
from quorate.maintenance.rules.rings import objection_to_rings
from quorate.maintenance.rules.volumes import objection_to_step, objection_to_volume


def take(inquiry: Inquiry, item: Item) -> Objection | None:
    """Take an item, or say why not. A failure may leave parts of it taken: the caller undoes that."""
    if isinstance(item, NodeItem):
        return take_node(inquiry, item)
    if isinstance(item, DriveItem):
        return take_drive(inquiry, item)
    assert isinstance(item, VDiskItem)
    return _take_replica(inquiry, item)


def take_node(inquiry: Inquiry, node: NodeItem) -> Objection | None:
    """A node goes down, with everything on it."""
    objection = objection_to(inquiry, node) or _objection_to_state(inquiry, node)
    if objection is None:
        check = _check_down if _is_surely_down(node) else _check_up
        objection = check(inquiry, node)
    if objection is None:
        inquiry.trial.take(node, inquiry.taken)
    return objection


def take_drive(inquiry: Inquiry, drive: DriveItem) -> Objection | None:
    """A drive is taken out."""
    if not drive.vdisks and (objection := objection_to(inquiry, drive) or objection_to(inquiry, drive.node)):
        return objection
    for replica in drive.vdisks:
        if (objection := _take_replica(inquiry, replica)) is not None:
            return objection
    inquiry.trial.take(drive, inquiry.taken)
    return None


def _take_replica(inquiry: Inquiry, replica: VDiskItem, *, through: NodeItem | None = None) -> Objection | None:
    # Whoever took its drive or its node has taken it as well.
    if replica.troubles or inquiry.behind or replica in inquiry.trial.taken:
        for item in (replica, *replica.drives, replica.node):
            # The node that goes down was asked about before.
            if item is not through and (objection := objection_to(inquiry, item)) is not None:
                return objection
    check = objection_to_group if replica.group.volume is None else objection_to_volume
    if (objection := check(inquiry, replica)) is not None:
        return objection
    inquiry.trial.take(replica, inquiry.taken)
    return None


def _check_up(inquiry: Inquiry, node: NodeItem) -> Objection | None:
    if (objection := objection_to_limits(inquiry, node)) is not None:
        return objection
    for _, drive in sorted(node.drives.items()):
        # Who swaps it needs the host to stay. Replicas ask for their drives themselves.
        if not drive.vdisks and (objection := objection_to(inquiry, drive)) is not None:
            return objection
    for replica in node.vdisks:
        if (objection := _take_replica(inquiry, replica, through=node)) is not None:
            return objection
    for group in node.guests.values():
        if (objection := objection_to_step(inquiry, group)) is not None:
            return objection
    return objection_to_rings(inquiry, node)


def _check_down(inquiry: Inquiry, node: NodeItem) -> Objection | None:
    for group in (*(replica.group for replica in node.vdisks), *node.guests.values()):
        if (objection := objection_to_step(inquiry, group)) is not None:
            if not inquiry.forced:
                return objection
            inquiry.costs.append(objection.message)
    for replica in node.vdisks:
        if replica not in inquiry.trial.taken:
            inquiry.trial.take(replica, inquiry.taken)
    return None


def _is_surely_down(node: NodeItem) -> bool:
    return node.info is not None and node.info.surely_down and node.state is HostState.DOWN


def _objection_to_state(inquiry: Inquiry, node: NodeItem) -> Objection | None:
    """Of a node that did not answer in time nobody knows what to expect."""
    if node.state is not HostState.UNKNOWN or inquiry.ideal:
        return None
    obstacle = Obstacle(node.label, False, inquiry.retry_at, name=node.name)
    message = f"the state of {node.label} is not known"
    return Objection(StatusCode.DISALLOW_TEMP, IssueType.GENERIC, message, (obstacle,), inquiry.retry_at)

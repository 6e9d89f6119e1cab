"""PublishSucceeded, for ``publishOn`` (attachments say theirs themselves), and DualPrimaryLinkLost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quorate.api.conditions import Verdict
from quorate.api.conditions.declaration import Reason
from quorate.api.conditions.rv import DualPrimaryLinkLost, PublishSucceeded
from quorate.api.meta import NodeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage.drbd import Role
from quorate.api.storage.rv import ComparisonReason
from quorate.volumes.attach.comparison import hindrance
from quorate.volumes.attach.guards import why_not
from quorate.volumes.attach.turns import member_on
from quorate.volumes.attach.two_primaries import link_lost
from quorate.volumes.datamesh import younger_of_two
from quorate.volumes.view import VolumeView

#: The worst is said first.
_BY_CODE: Final[Mapping[str, Reason]] = {
    reason.code: reason
    for reason in (
        PublishSucceeded.UNABLE_TO_PROVIDE_LOCAL_VOLUME_ACCESS,
        PublishSucceeded.NODE_NOT_ELIGIBLE,
        PublishSucceeded.TWO_PRIMARIES_NOT_ALLOWED,
        PublishSucceeded.NO_FREE_NODE_ID,
        PublishSucceeded.PERMISSION_HELD,
        PublishSucceeded.PENDING,
        PublishSucceeded.WAITING_FOR_REPLICA,
    )
}


def publish_succeeded(view: VolumeView) -> Verdict:
    """000, ``rv-publish-controller``: on every node of publishOn, and on no other that nobody asks for."""
    asked = () if view.volume.deleting else view.volume.spec.publish_on
    held = _held_open(view)
    if held is not None:
        return held
    if not asked:
        return PublishSucceeded.NOTHING_TO_PUBLISH()
    missing = [node for node in asked if not _is_usable(view, node)]
    if not missing:
        standing = [node for node in asked if _stands(view, node)]
        return PublishSucceeded.PUBLISHED(f"I/O stands on {', '.join(standing)}: no quorum" if standing else "")
    said = [(node, why_not(view, node)) for node in missing]
    for code, reason in _BY_CODE.items():
        told = [wait.message for _, wait in said if wait is not None and wait.reason == code]
        if told:
            return reason("; ".join(told))
    told = [wait.message for _, wait in said if wait is not None]
    return PublishSucceeded.PUBLISHING("; ".join(told) or f"not yet usable on {', '.join(missing)}")


def dual_primary_link_lost(view: VolumeView) -> Verdict:
    """True from the cut until the copies have been compared; Unknown while the guard of two primaries is not heard."""
    lost = link_lost(view)
    if lost is not None:
        older, younger = lost
        return DualPrimaryLinkLost.LINK_LOST(f"{younger.name} has lost a link and yields to {older.name}")
    comparisons = view.volume.status.comparisons
    open_ones = [each for each in comparisons if each.reason is ComparisonReason.TWO_PRIMARIES]
    if not open_ones:
        unguarded = _unguarded(view)
        return DualPrimaryLinkLost.UNGUARDED(unguarded) if unguarded else DualPrimaryLinkLost.COPIES_AGREE()
    against = f"the copies are compared with that of {open_ones[0].reference}"
    wait = hindrance(view, open_ones[0])
    if wait is not None and not view.comparisons:
        return DualPrimaryLinkLost.LINK_LOST(f"{against} when this is over: {wait.message}")
    return DualPrimaryLinkLost.VERIFYING(against)


def _unguarded(view: VolumeView) -> str:
    """The younger of two primaries whose agent is not heard, or cannot look: only that agent keeps the two apart."""
    younger = younger_of_two(view.volume)
    replica = view.replica(ReplicaName(younger)) if younger is not None else None
    if replica is None or replica.fresh:
        return ""
    return (
        f"the agent of {replica.name} on {replica.node_name} is silent, or cannot look at its kernel: if it does not"
        " run when a link is lost, both primaries go on writing"
    )


def _is_usable(view: VolumeView, node: NodeName) -> bool:
    member = member_on(view, node)
    return member is not None and member.attached and view.state_of(member.name).role == Role.PRIMARY


def _stands(view: VolumeView, node: NodeName) -> bool:
    member = member_on(view, node)
    return member is not None and view.state_of(member.name).quorum is False


def _held_open(view: VolumeView) -> Verdict | None:
    """A node that was taken off publishOn, and whose device somebody still holds."""
    told = [
        each.message
        for each in view.volume.status.datamesh_transitions
        if each.reason == PublishSucceeded.DEVICE_IN_USE.code
    ]
    return PublishSucceeded.DEVICE_IN_USE("; ".join(told)) if told else None

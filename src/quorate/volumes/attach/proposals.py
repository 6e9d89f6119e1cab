"""Which attachments and detachments could begin: whoever leaves first, then whoever comes, in the queue's order.

| seen                                                                       | proposed                            |
|----------------------------------------------------------------------------|-------------------------------------|
| an attached member whose node nobody asks for                              | Detach                              |
| a node whose turn it is, beside another that is attached; two not allowed  | EnableMultiattach                   |
| a node whose turn it is, with a member that is not attached                | Attach                              |
| two are allowed, and nobody needs it                                       | DisableMultiattach                  |
"""

from __future__ import annotations

from collections.abc import Iterator

from quorate.api.scalars import ReplicaName
from quorate.api.storage.datamesh import Member, TransitionType
from quorate.volumes.attach.guards import not_serving
from quorate.volumes.attach.permissions import held_for
from quorate.volumes.attach.turns import member_on, queued, served, using
from quorate.volumes.view import VolumeView


def proposals(view: VolumeView) -> Iterator[tuple[TransitionType, ReplicaName | None]]:
    """All of them, each with the replica that it is about; a deleting volume only lets go."""
    asked = queued(view)
    for member in view.members:
        if member.attached and member.node_name not in asked:
            yield TransitionType.DETACH, member.name
    if view.volume.deleting:
        return
    coming = _coming(view)
    allowed = view.volume.status.drbd.config.allow_two_primaries
    if coming and not allowed and _needs_two(view, coming[0]):
        yield TransitionType.ENABLE_MULTIATTACH, None
    for member in coming:
        yield TransitionType.ATTACH, member.name
    if allowed and len(using(view)) < 2 and (len(served(view)) < 2 or view.volume.status.comparisons):
        yield TransitionType.DISABLE_MULTIATTACH, None


def _coming(view: VolumeView) -> list[Member]:
    """Members that could serve now: one that has to join, or to change, first is left to whoever proposes that."""
    found = (member_on(view, node) for node in served(view))
    return [each for each in found if each is not None and not each.attached and not_serving(view, each) is None]


def _needs_two(view: VolumeView, member: Member) -> bool:
    """Whether nothing else than leave for two stands between a member and the volume."""
    if held_for(view, member.node_name) is not None:
        return False
    others = [each for each in using(view) if each is not member]
    staying = [each for each in others if each.attached and each.node_name in served(view)]
    return bool(staying) and staying == others

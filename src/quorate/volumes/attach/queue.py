"""The queue of those who want the volume on a node: attachments and ``publishOn``, first come, first served.

A place is kept while anybody asks for that node, whoever it was first. A deleting volume reads publishOn as empty; its
attachments keep what they have, and nobody new is let in. ``since`` grows strictly along the queue, so that it alone
says which of two is the younger.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from quorate.api.meta import NodeName
from quorate.api.storage.rv import AttachRequest, AttachSource
from quorate.volumes.view import VolumeView

_LEAST: Final = timedelta(microseconds=1)


def requests(view: VolumeView, now: datetime) -> tuple[AttachRequest, ...]:
    """The queue as it should stand."""
    if view.rv is None:
        return ()
    asked = _asked(view)
    queue = [
        AttachRequest(node_name=each.node_name, since=each.since, source=_source(each.source, asked[each.node_name]))
        for each in view.rv.status.attach_requests
        if each.node_name in asked
    ]
    if view.rv.deleting:
        return tuple(queue)
    known = {each.node_name for each in queue}
    last = queue[-1].since if queue else None
    for node, sources in asked.items():
        if node in known:
            continue
        since = now if last is None else max(now, last + _LEAST)
        queue.append(AttachRequest(node_name=node, since=since, source=sources[0]))
        last = since
    return tuple(queue)


def _asked(view: VolumeView) -> dict[NodeName, list[AttachSource]]:
    """Who asks for which node: attachments by age, then publishOn in its own order."""
    assert view.rv is not None
    asked: dict[NodeName, list[AttachSource]] = {}
    living = [each for each in view.attachments if not each.deleting]
    living.sort(key=lambda each: (str(each.metadata.creation_timestamp or ""), each.name))
    for attachment in living:
        asked.setdefault(attachment.spec.node_name, []).append(AttachSource.ATTACHMENT)
    for node in () if view.rv.deleting else view.rv.spec.publish_on:
        asked.setdefault(node, []).append(AttachSource.PUBLISH_ON)
    return asked


def _source(known: AttachSource, sources: list[AttachSource]) -> AttachSource:
    return known if known in sources else sources[0]

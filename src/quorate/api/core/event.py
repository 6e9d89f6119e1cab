"""Event (core): something happened to an object; for people, best effort."""

from __future__ import annotations

from datetime import datetime

from quorate.api.groups import CORE
from quorate.api.kind import Column, Scope, kind
from quorate.api.meta import MicroTime, Resource
from quorate.api.struct import Struct


class ObjectReference(Struct):
    """Which object."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class EventSource(Struct):
    """Who says so, in the older form."""

    component: str = ""
    host: str = ""


class EventSeries(Struct):
    """The same again."""

    count: int = 0
    last_observed_time: MicroTime | None = None


@kind(
    group=CORE.name,
    version=CORE.version,
    plural="events",
    scope=Scope.NAMESPACED,
    short_names=("ev",),
    columns=(
        Column("Last Seen", ".lastTimestamp", "date"),
        Column("Type", ".type"),
        Column("Reason", ".reason"),
        Column("Kind", ".involvedObject.kind"),
        Column("Object", ".involvedObject.name"),
        Column("Message", ".message"),
        Column("Count", ".count", "integer", priority=1),
        Column("Source", ".reportingComponent", priority=1),
    ),
    selectable_fields=(
        ".involvedObject.kind",
        ".involvedObject.namespace",
        ".involvedObject.name",
        ".involvedObject.uid",
        ".involvedObject.apiVersion",
        ".involvedObject.resourceVersion",
        ".involvedObject.fieldPath",
        ".reason",
        ".reportingComponent",
        ".type",
    ),
    status_subresource=False,
    crd=False,
)
class Event(Resource):
    """Something that happened to an object."""

    involved_object: ObjectReference
    reason: str = ""
    message: str = ""
    type: str = ""
    action: str = ""
    count: int = 0
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    event_time: MicroTime | None = None
    series: EventSeries | None = None
    source: EventSource = EventSource()
    related: ObjectReference | None = None
    reporting_component: str = ""
    reporting_instance: str = ""

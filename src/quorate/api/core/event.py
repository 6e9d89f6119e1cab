"""Event (core): something happened to an object; for people, best effort."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta

from quorate.api.groups import CORE
from quorate.api.kind import Column, Scope, kind
from quorate.api.meta import MicroTime, Resource
from quorate.api.struct import Struct


class ObjectReference(Struct):
    """Which object."""

    api_version: Annotated[str, Meta(description="Group and version of the object's kind.")] = ""
    kind: Annotated[str, Meta(description="The object's kind.")] = ""
    namespace: Annotated[str, Meta(description="Where the object is; empty: it is in none.")] = ""
    name: Annotated[str, Meta(description="The object's name.")] = ""
    uid: Annotated[str, Meta(description="The object's UID: another object of that name is not meant.")] = ""
    resource_version: Annotated[str, Meta(description="In which state the object was.")] = ""
    field_path: Annotated[str, Meta(description="Which part of the object is meant.")] = ""


class EventSource(Struct):
    """Who says so, in the older form."""

    component: Annotated[str, Meta(description="Who tells of it.")] = ""
    host: Annotated[str, Meta(description="On which node.")] = ""


class EventSeries(Struct):
    """The same again."""

    count: Annotated[int, Meta(description="How often it has happened.")] = 0
    last_observed_time: Annotated[MicroTime, Meta(description="When it was last seen.")] | None = None


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
    reason: Annotated[str, Meta(description="Why, as a code: what happened.")] = ""
    message: Annotated[str, Meta(description="What happened, for people.")] = ""
    type: Annotated[str, Meta(description="Normal or Warning.")] = ""
    action: Annotated[str, Meta(description="What was done or failed, as a code.")] = ""
    count: Annotated[int, Meta(description="How often it has happened.")] = 0
    first_timestamp: Annotated[datetime, Meta(description="When it happened first.")] | None = None
    last_timestamp: Annotated[datetime, Meta(description="When it happened last.")] | None = None
    event_time: Annotated[MicroTime, Meta(description="When it happened first, to the microsecond.")] | None = None
    series: EventSeries | None = None
    source: EventSource = EventSource()
    related: ObjectReference | None = None
    reporting_component: Annotated[str, Meta(description="Who tells of it, such as quorate-controller.")] = ""
    reporting_instance: Annotated[str, Meta(description="Which process of that component.")] = ""

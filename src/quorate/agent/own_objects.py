"""The store as one node's agent uses it: it shows only that node's objects, and takes writes to no others.

A server's admission refuses an agent's write to another node's object. This refuses it before it is sent, for servers
without that admission and against our own mistakes: an agent that confused two nodes would take a healthy one's volumes
down. Lists and watches are narrowed here too, so an agent neither pays for the rest of the cluster nor knows of it:

| kind                                        | shown                 | written          |
|---------------------------------------------|-----------------------|------------------|
| RVR, LLV, LVG, DRBDResourceOperation, Drive | with the node's label | those, once seen |
| core Node, longhorn Node                    | the node's own        | that one         |
| ClusterConfig                               | the one               | never            |
| Event                                       | all                   | all              |
| Secret                                      | one, by its name      | never            |
| anything else                               | never                 | never            |
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, TypeVar, cast

from quorate.api import labels as label_names
from quorate.api import longhorn
from quorate.api.baremetal import Drive
from quorate.api.cluster_config import ClusterConfig
from quorate.api.core import Event, Node, SecretObject
from quorate.api.meta import NodeName, Resource
from quorate.api.names import CLUSTER, NAMESPACE
from quorate.api.storage import (
    DRBDResourceOperation,
    LVMLogicalVolume,
    LVMVolumeGroup,
    ReplicatedVolumeReplica,
)
from quorate.engine import Selection
from quorate.engine.passing import PassingStore
from quorate.engine.selectors import EVERYTHING, Selector, match
from quorate.engine.store import EventType, ObjectList, Store, WatchEvent
from quorate.errors import Forbidden

R = TypeVar("R", bound=Resource)

#: Of Secrets the server shows it only those that it is named for.
_EVERYBODYS = (ClusterConfig, Event, SecretObject)

#: Kinds whose objects carry the label of the node whose agent acts on them.
LABELLED: tuple[type[Resource], ...] = (
    DRBDResourceOperation,
    Drive,
    LVMLogicalVolume,
    LVMVolumeGroup,
    ReplicatedVolumeReplica,
)

#: Kinds of which one object is the node's: that of its name.
_NAMED_LIKE_THE_NODE: tuple[type[Resource], ...] = (Node, longhorn.Node)


def selections(node: NodeName) -> dict[type[Resource], Selection]:
    """What an agent keeps in its caches."""
    own = Selection(labels=match({label_names.NODE: node}))
    return dict.fromkeys(LABELLED, own)


class OwnObjects(PassingStore):
    """Passes on only what concerns the node."""

    def __init__(self, store: Store, node: NodeName, *, check: Callable[[], None]) -> None:
        """``check`` raises when nothing may be written at the moment. Events claim nothing, and are written still."""
        super().__init__(store)
        self._node = node
        self._check = check
        self._label = match({label_names.NODE: node})
        #: The names of the node's own objects, as far as they were seen.
        self._seen: dict[type[Resource], set[str]] = {cls: set() for cls in LABELLED}

    async def get(self, cls: type[R], name: str, namespace: str = "") -> R:
        if cls is not SecretObject:
            self._narrowed(cls, EVERYTHING, EVERYTHING)
        found = await self._store.get(cls, name, namespace)
        if not self._is_own(found):
            raise self._refused("read", cls, name)
        self._note(cls, found)
        return found

    async def list(
        self, cls: type[R], *, namespace: str = "", labels: Selector = EVERYTHING, fields: Selector = EVERYTHING
    ) -> ObjectList[R]:
        labels, fields = self._narrowed(cls, labels, fields)
        listing = await self._store.list(cls, namespace=namespace, labels=labels, fields=fields)
        if cls in self._seen and labels == self._label and not fields:
            # Of all that is ours, this is all: a name that is not in it may be another node's by now.
            self._seen[cls].clear()
        for found in listing.items:
            self._note(cls, found)
        return listing

    async def watch(
        self,
        cls: type[R],
        *,
        resource_version: str,
        namespace: str = "",
        labels: Selector = EVERYTHING,
        fields: Selector = EVERYTHING,
    ) -> AsyncIterator[WatchEvent[R]]:
        labels, fields = self._narrowed(cls, labels, fields)
        events = self._store.watch(
            cls, resource_version=resource_version, namespace=namespace, labels=labels, fields=fields
        )
        async with aclosing(cast("Any", events)):
            async for event in events:
                if event.object is not None:
                    self._note(cls, event.object, gone=event.type is EventType.DELETED)
                yield event

    async def create(self, obj: R, *, dry_run: bool = False) -> R:
        cls = type(obj)
        if cls in (ClusterConfig, SecretObject) or not self._is_own(obj):
            raise self._refused("create", cls, obj.name)
        self._allow(cls)
        created = await self._store.create(obj, dry_run=dry_run)
        if not dry_run:
            self._note(cls, created)
        return created

    def _narrowed(self, cls: type[Resource], labels: Selector, fields: Selector) -> tuple[Selector, Selector]:
        """The selectors, with what limits them to what is the node's."""
        if cls in self._seen:
            return _both(labels, self._label), fields
        if cls in _NAMED_LIKE_THE_NODE:
            return labels, _both(fields, match({"metadata.name": self._node}))
        if cls is ClusterConfig:
            return labels, _both(fields, match({"metadata.name": CLUSTER}))
        if cls is Event:
            return labels, fields
        raise self._refused("read", cls, "")

    def _is_own(self, obj: Resource) -> bool:
        if type(obj) in self._seen:
            return self._label.matches(obj.metadata.labels)
        if isinstance(obj, longhorn.Node) and obj.namespace != NAMESPACE:
            return False
        return isinstance(obj, _EVERYBODYS) or (type(obj) in _NAMED_LIKE_THE_NODE and obj.name == self._node)

    def _admit(self, verb: str, cls: type[Resource], name: str = "") -> None:
        """Of changes to what is there: reading and creating are seen to above."""
        known = self._seen.get(cls)
        own = (
            name in known if known is not None else cls is Event or (cls in _NAMED_LIKE_THE_NODE and name == self._node)
        )
        if not own:
            raise self._refused(verb, cls, name)
        self._allow(cls)

    def _allow(self, cls: type[Resource]) -> None:
        if cls is not Event:
            self._check()

    def _note(self, cls: type[Resource], obj: Resource, *, gone: bool = False) -> None:
        if cls in self._seen:
            (self._seen[cls].discard if gone else self._seen[cls].add)(obj.name)

    def _refused(self, verb: str, cls: type[Resource], name: str) -> Forbidden:
        kind = cls.KIND
        return Forbidden(
            f"the agent of node {self._node} may not {verb} {kind.name} {name}".rstrip()
            + ": it is not known to be that node's",
            group=kind.group,
            kind=kind.plural,
            name=name,
        )


def _both(one: Selector, other: Selector) -> Selector:
    return Selector((*one.requirements, *(clause for clause in other.requirements if clause not in one.requirements)))

"""Where objects live, as one small interface.

Two engines implement it: ``engine.embedded`` (a SQLite file in this process) and ``engine.kubernetes``
(a real API server). Everything above speaks only this, and cannot tell them apart: a behaviour that differs
is a bug of the embedded engine, and one conformance suite runs against both.

Semantics are Kubernetes':

- ``resource_version`` is opaque text that only grows; ``generation`` moves when the spec does.
- a write with a stale ``resource_version`` is a Conflict and changes nothing; a write that changes nothing
  leaves the resourceVersion alone and makes no event.
- ``patch`` cannot touch status, ``patch_status`` cannot touch anything else (metadata's resourceVersion apart).
- deleting an object with finalizers sets deletionTimestamp; it goes when the last finalizer is removed.
- ``watch`` replays everything after a resourceVersion in order, or raises Expired: then list again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from quorate.api.meta import Resource
from quorate.engine.selectors import EVERYTHING, Selector

R = TypeVar("R", bound=Resource)

#: A JSON merge patch (RFC 7386) as a dict tree: null removes, lists are replaced whole. Of status, they may be typed.
MergePatch = Mapping[str, Any]


class EventType(StrEnum):
    """What a watch says happened."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class WatchEvent(msgspec.Struct, Generic[R], frozen=True):
    """One change. A bookmark has no object: it says that everything up to its resourceVersion was seen."""

    type: EventType
    resource_version: str
    object: R | None = None
    #: In a bookmark: (namespace, name) of an object that was just seen and does not fit its type here.
    undecodable: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ObjectList(Generic[R]):
    """Objects of one kind as they were at one resourceVersion, sorted by namespace and name."""

    items: tuple[R, ...]
    resource_version: str
    #: (namespace, name) of objects that exist and do not fit their type here, because a newer version wrote them.
    #: They are not gone: a cache keeps what it knew of them.
    undecodable: tuple[tuple[str, str], ...] = ()


class Store(Protocol):
    """The verbs. Every one may raise :class:`quorate.errors.ApiError`; a write may also raise OutcomeUnknown."""

    async def get(self, cls: type[R], name: str, namespace: str = "") -> R:
        """The object as it is now (never from a cache); NotFound if there is none."""
        ...

    async def list(
        self,
        cls: type[R],
        *,
        namespace: str = "",
        labels: Selector = EVERYTHING,
        fields: Selector = EVERYTHING,
    ) -> ObjectList[R]:
        """All objects as they are now, consistent at one resourceVersion; an empty namespace means all."""
        ...

    def watch(
        self,
        cls: type[R],
        *,
        resource_version: str,
        namespace: str = "",
        labels: Selector = EVERYTHING,
        fields: Selector = EVERYTHING,
    ) -> AsyncIterator[WatchEvent[R]]:
        """Every change after ``resource_version``, in order, with bookmarks, until the connection ends.

        Raises Expired when that history is gone. An iterator that ends without an error may be resumed from
        the resourceVersion of the last event. Close it (``aclosing``) to stop watching.
        """
        ...

    async def create(self, obj: R, *, dry_run: bool = False) -> R:
        """Store a new object and return it as stored; AlreadyExists if the name is taken."""
        ...

    async def patch(
        self,
        cls: type[R],
        name: str,
        namespace: str = "",
        *,
        patch: MergePatch,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> R:
        """Merge into metadata and spec; with ``resource_version``, only if that is still the current one."""
        ...

    async def patch_status(
        self,
        cls: type[R],
        name: str,
        namespace: str = "",
        *,
        patch: MergePatch,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> R:
        """Merge into the status (``patch`` is what goes under ``status``), as :meth:`patch` otherwise."""
        ...

    async def delete(
        self,
        cls: type[R],
        name: str,
        namespace: str = "",
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> R | None:
        """Ask for deletion. Returns the object while finalizers hold it, None when it is gone."""
        ...

    async def close(self) -> None:
        """Let go of connections and files. Idempotent."""
        ...

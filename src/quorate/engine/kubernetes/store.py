"""The Store over an API server."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, TypeVar

import msgspec

from quorate.api import codec
from quorate.api.meta import Resource
from quorate.api.struct import Struct
from quorate.engine.clock import Clock
from quorate.engine.kubernetes.answers import is_status
from quorate.engine.kubernetes.connection import Connection
from quorate.engine.kubernetes.paths import birthplace, collection, query, single
from quorate.engine.kubernetes.transport import DEFAULT_LIMITS, Limits, Observer, Transport
from quorate.engine.kubernetes.watching import OnUndecodable, typed_event, undecodable
from quorate.engine.logs import get_logger
from quorate.engine.selectors import EVERYTHING, Selector
from quorate.engine.store import MergePatch, ObjectList, WatchEvent
from quorate.errors import Expired, InternalError, OutcomeUnknown, QuorateError, UndecodableObject

R = TypeVar("R", bound=Resource)

PAGE_SIZE = 500
#: A watch is ended by the server after a random time between one and two of these, so that all the watches of a
#: process that started together do not come back together.
WATCH_SECONDS = 300
MERGE_PATCH = "application/merge-patch+json"

_log = get_logger(__name__)


class _ListMeta(Struct):
    resource_version: str
    #: ``continue`` on the wire, which is a word of Python.
    continue_: str = msgspec.field(default="", name="continue")


class _Page(Struct):
    #: Must be there: a stranger's answer would otherwise be an empty list, and everything gone.
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


def _log_undecodable(skipped: UndecodableObject) -> None:
    _log.error(
        "object left out: a newer version wrote it",
        kind=skipped.kind,
        namespace=skipped.namespace,
        name=skipped.name,
        problem=skipped.problem,
    )


class KubernetesStore:
    """Objects in a real API server. Must be made inside a running event loop, and closed.

    Beside ApiError every verb may raise StoreUnreachable, and a write OutcomeUnknown. A watch that ends with
    StoreUnreachable may be resumed like one that ends by itself.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        clock: Clock,
        random: Random,
        limits: Limits = DEFAULT_LIMITS,
        observe: Observer | None = None,
        on_undecodable: OnUndecodable = _log_undecodable,
    ) -> None:
        self._transport = Transport(connection, clock=clock, limits=limits, observe=observe)
        self._random = random
        self._on_undecodable = on_undecodable

    async def get(self, cls: type[R], name: str, namespace: str = "") -> R:
        answer = await self._transport.read(single(cls.KIND, name, namespace))
        with _understood_or(InternalError):
            return _typed(cls, answer)

    async def list(
        self, cls: type[R], *, namespace: str = "", labels: Selector = EVERYTHING, fields: Selector = EVERYTHING
    ) -> ObjectList[R]:
        try:
            return await self._list(cls, namespace, labels, fields)
        except Expired:
            # The history that the pages were read from was compacted while we were reading.
            return await self._list(cls, namespace, labels, fields)

    async def watch(
        self,
        cls: type[R],
        *,
        resource_version: str,
        namespace: str = "",
        labels: Selector = EVERYTHING,
        fields: Selector = EVERYTHING,
    ) -> AsyncIterator[WatchEvent[R]]:
        parameters = _selection(labels, fields) | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(WATCH_SECONDS + self._random.randrange(WATCH_SECONDS)),
        }
        target = collection(cls.KIND, namespace) + query(parameters)
        async with self._transport.stream(target) as lines:
            async for line in lines:
                yield typed_event(cls, line, self._on_undecodable)

    async def create(self, obj: R, *, dry_run: bool = False) -> R:
        target = birthplace(obj.KIND, obj.name, obj.namespace) + _dry(dry_run)
        answer = await self._transport.write("POST", target, codec.encode(codec.to_dict(obj)))
        with _understood_or(OutcomeUnknown):
            return _typed(type(obj), answer)

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
        target = single(cls.KIND, name, namespace) + _dry(dry_run)
        return await self._patch(cls, target, dict(patch), resource_version)

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
        target = f"{single(cls.KIND, name, namespace)}/status{_dry(dry_run)}"
        return await self._patch(cls, target, {"status": patch}, resource_version)

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
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if given := {key: value for key, value in preconditions.items() if value is not None}:
            options["preconditions"] = given
        if dry_run:
            # Not in the query, as elsewhere: a server that finds options in the body does not look there.
            options["dryRun"] = ["All"]
        answer = await self._transport.write("DELETE", single(cls.KIND, name, namespace), codec.encode(options))
        with _understood_or(OutcomeUnknown):
            if is_status(answer):
                return None
            # Some kinds of Kubernetes' own come back as they were at their end: gone, unless they are still going.
            left = _typed(cls, answer)
        return left if left.deleting else None

    async def close(self) -> None:
        await self._transport.close()

    async def _patch(self, cls: type[R], target: str, patch: dict[str, Any], resource_version: str | None) -> R:
        if resource_version is not None:
            patch["metadata"] = {**patch.get("metadata", {}), "resourceVersion": resource_version}
        answer = await self._transport.write("PATCH", target, codec.encode(patch), MERGE_PATCH)
        with _understood_or(OutcomeUnknown):
            return _typed(cls, answer)

    async def _list(self, cls: type[R], namespace: str, labels: Selector, fields: Selector) -> ObjectList[R]:
        """All pages; the server reads every one of them at the resourceVersion of the first."""
        parameters = _selection(labels, fields) | {"limit": str(PAGE_SIZE)}
        decoder = codec.decoder(cls)
        items: builtins.list[R] = []
        left_out: builtins.list[UndecodableObject] = []
        while True:
            answer = await self._transport.read(collection(cls.KIND, namespace) + query(parameters))
            with _understood_or(InternalError):
                page = codec.decode(_Page, answer)
                for item in page.items or ():
                    try:
                        items.append(decoder.decode(item))
                    except msgspec.ValidationError as error:
                        left_out.append(undecodable(cls, item, error))
            if not page.metadata.continue_:
                break
            parameters["continue"] = page.metadata.continue_
        for skipped in left_out:
            self._on_undecodable(skipped)
        # The server sorts by "namespace/name" as one text, where "a-b/x" comes before "a/x".
        items.sort(key=lambda each: (each.metadata.namespace, each.metadata.name))
        keys = tuple((skipped.namespace, skipped.name) for skipped in left_out)
        return ObjectList(tuple(items), page.metadata.resource_version, keys)


@contextmanager
def _understood_or(failure: Callable[[str], QuorateError]) -> Iterator[None]:
    """For an answer that is not the server's at all, such as the login page of a proxy in between."""
    try:
        yield
    except msgspec.DecodeError as error:
        raise failure(f"the answer cannot be an API server's, is there a proxy in between? {error}") from error


def _typed(cls: type[R], body: bytes) -> R:
    try:
        return codec.decode(cls, body)
    except msgspec.ValidationError as error:
        raise undecodable(cls, body, error) from error


def _selection(labels: Selector, fields: Selector) -> dict[str, str]:
    return {"labelSelector": str(labels), "fieldSelector": str(fields)}


def _dry(dry_run: bool) -> str:
    return "?dryRun=All" if dry_run else ""

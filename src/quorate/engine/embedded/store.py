"""The embedded engine as a Store: the typed face of ``raw``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypeVar, cast

from quorate.api.codec import to_dict
from quorate.api.kind import Kind
from quorate.api.meta import Resource
from quorate.engine import merge
from quorate.engine.embedded.raw import RawStore
from quorate.engine.embedded.record import FieldValidation, Key, version_number
from quorate.engine.embedded.subscriptions import Subscription
from quorate.engine.embedded.wording import in_words
from quorate.engine.selectors import EVERYTHING, Selector
from quorate.engine.store import MergePatch, ObjectList, WatchEvent
from quorate.errors import BadRequest

R = TypeVar("R", bound=Resource)

_STATUS = frozenset({"status"})


class EmbeddedStore(RawStore):
    """A store in this process (see :class:`quorate.engine.store.Store`). Open it with :meth:`open`."""

    async def get(self, cls: type[R], name: str, namespace: str = "") -> R:
        namespace, name = _address(cls.KIND, name, namespace)
        return cast("R", self.read(cls.KIND, name, namespace).typed)

    async def list(
        self,
        cls: type[R],
        *,
        namespace: str = "",
        labels: Selector = EVERYTHING,
        fields: Selector = EVERYTHING,
    ) -> ObjectList[R]:
        page = self.read_page(cls.KIND, namespace=_space(cls.KIND, namespace), labels=labels, fields=fields)
        return ObjectList(tuple(cast("R", record.typed) for record in page.records), str(page.resource_version))

    def watch(
        self,
        cls: type[R],
        *,
        resource_version: str,
        namespace: str = "",
        labels: Selector = EVERYTHING,
        fields: Selector = EVERYTHING,
    ) -> Watch[R]:
        version = parse_version(resource_version)
        space = _space(cls.KIND, namespace)
        return Watch(self.subscribe(cls.KIND, resource_version=version, namespace=space, labels=labels, fields=fields))

    async def create(self, obj: R, *, dry_run: bool = False) -> R:
        written = await self.create_raw(
            obj.KIND,
            to_dict(obj),
            namespace=obj.namespace,
            dry_run=dry_run,
            field_validation=FieldValidation.IGNORE,
        )
        return cast("R", written.record.typed)

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
        written = await self._update(
            cls.KIND,
            _address(cls.KIND, name, namespace),
            lambda current, _: merge.apply(current, patch),
            subresource="",
            resource_version=resource_version,
            dry_run=dry_run,
            validation=FieldValidation.IGNORE,
            patch=True,
            changed=frozenset(patch),
        )
        return cast("R", written.record.typed)

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
        written = await self._update(
            cls.KIND,
            _address(cls.KIND, name, namespace),
            lambda current, last: merge.apply(
                current, {"status": in_words(patch, current.get("status", {}), getattr(last, "status", None))}
            ),
            subresource="status",
            resource_version=resource_version,
            dry_run=dry_run,
            validation=FieldValidation.IGNORE,
            patch=True,
            changed=_STATUS,
            fields=patch,
        )
        return cast("R", written.record.typed)

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
        namespace, name = _address(cls.KIND, name, namespace)
        deleted = await self.delete_raw(
            cls.KIND, name, namespace=namespace, uid=uid, resource_version=resource_version, dry_run=dry_run
        )
        return None if deleted.gone else cast("R", deleted.record.typed)


class Watch(AsyncIterator[WatchEvent[R]]):
    """A subscription, typed."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription

    def __aiter__(self) -> Watch[R]:
        return self

    async def __anext__(self) -> WatchEvent[R]:
        change = await self._subscription.__anext__()
        record = change.record
        return WatchEvent(change.type, str(change.version), None if record is None else cast("R", record.typed))

    async def aclose(self) -> None:
        """Stop watching."""
        await self._subscription.aclose()


def _address(kind: Kind, name: str, namespace: str) -> Key:
    """Where an object is. What no path of an API server could mean is refused here too."""
    if kind.namespaced and not namespace:
        # "Not found" would be taken for "gone".
        raise BadRequest(f"{kind.name} is namespaced: a namespace is needed", group=kind.group, kind=kind.plural)
    if not name:
        raise BadRequest("'' cannot be the name of an object", group=kind.group, kind=kind.plural)
    return (_space(kind, namespace), name)


def _space(kind: Kind, namespace: str) -> str:
    """A namespace says nothing of objects that have none."""
    return namespace if kind.namespaced else ""


def parse_version(text: str) -> int:
    """A resourceVersion as clients send it; empty is 0."""
    version = version_number(text)
    if version is None:
        shown = f"{text[:40]}…" if len(text) > 40 else text
        raise BadRequest(f"invalid resource version: resourceVersion: Invalid value: {shown!r}: a number was expected")
    return version

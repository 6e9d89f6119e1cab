"""A store whose writes go wrong as a script says, one after the other.

    done      it works
    lost      it never arrives, and nobody can know
    unheard   it arrives, its answer does not
    late      it arrives when told to (``deliver``), its answer does not
    refused   the store says why not, and nothing is written
    away      no connection: nothing was sent
    touched   somebody changes a label at the same moment: a conflict, though nobody else writes the ledger
    stop      the process ends before it is sent
    ended     the process ends after it arrived

What ends a process is ``Ended``; nothing more is sent by it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from quorate.api.meta import Resource
from quorate.engine.selectors import EVERYTHING, Selector
from quorate.engine.store import MergePatch, ObjectList, Store
from quorate.errors import Conflict, OutcomeUnknown, StorageFull, StoreUnreachable

R = TypeVar("R", bound=Resource)

UNKNOWN = ("lost", "unheard", "late")
FAULTS = (*UNKNOWN, "refused", "away", "touched")


class Ended(BaseException):
    """The process is no more."""


class FaultyStore:
    """Passes everything on, more or less. Reads work, unless ``deaf``."""

    def __init__(self, store: Store, script: Iterable[str] = ()) -> None:
        self.store = store
        self.script = list(script)
        self.deaf = False
        #: Writes that were asked for, by what happened to them.
        self.history: list[str] = []
        self._late: list[Callable[[], Awaitable[object]]] = []
        self._over = False

    async def deliver(self) -> list[str]:
        """Let arrive what is late; what came of it."""
        results = []
        for write in self._late:
            try:
                await write()
                results.append("done")
            except Conflict:
                results.append("conflict")
        self._late.clear()
        return results

    async def get(self, cls: type[R], name: str, namespace: str = "") -> R:
        self._check()
        if self.deaf:
            raise StoreUnreachable("the test says: no connection")
        return await self.store.get(cls, name, namespace)

    async def list(
        self, cls: type[R], *, namespace: str = "", labels: Selector = EVERYTHING, fields: Selector = EVERYTHING
    ) -> ObjectList[R]:
        self._check()
        return await self.store.list(cls, namespace=namespace, labels=labels, fields=fields)

    def watch(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def create(self, obj: R, *, dry_run: bool = False) -> R:
        return await self._write(lambda: self.store.create(obj, dry_run=dry_run), type(obj), obj.name)

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
        return await self._write(
            lambda: self.store.patch(cls, name, namespace, patch=patch, resource_version=resource_version), cls, name
        )

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
        return await self._write(
            lambda: self.store.patch_status(cls, name, namespace, patch=patch, resource_version=resource_version),
            cls,
            name,
        )

    async def delete(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        await self.store.close()

    def _check(self) -> None:
        if self._over:
            raise Ended

    async def _write(self, write: Callable[[], Awaitable[R]], cls: type[R], name: str) -> R:
        self._check()
        fate = self.script.pop(0) if self.script else "done"
        self.history.append(fate)
        match fate:
            case "done":
                return await write()
            case "lost":
                raise OutcomeUnknown("the test says: no answer")
            case "unheard":
                await write()
                raise OutcomeUnknown("the test says: no answer")
            case "late":
                self._late.append(write)
                raise OutcomeUnknown("the test says: no answer")
            case "refused":
                raise StorageFull("the test says: disk full")
            case "away":
                raise StoreUnreachable("the test says: no connection")
            case "touched":
                await self.store.patch(cls, name, patch={"metadata": {"labels": {"touched": str(len(self.history))}}})
                return await write()
            case "stop":
                self._over = True
                raise Ended
            case "ended":
                await write()
                self._over = True
                raise Ended
        raise AssertionError(f"the script has an unknown word: {fate}")

"""What Kubernetes' garbage collector makes of owner references: its rules, on any store.

An object that names owners is deleted once none of them is there. An owner is there if an object of that kind and name
exists with that very uid, in the object's own namespace or in none. One made anew under an old name is somebody else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from quorate.api import all_kinds
from quorate.api.kind import Scope
from quorate.api.meta import OwnerReference, Resource
from quorate.engine.clock import Clock
from quorate.engine.store import Store
from quorate.errors import NotFound


def is_there(owner: OwnerReference, dependent: Resource, known: Iterable[Resource]) -> bool:
    """Whether an owner that an object names exists."""
    return any(
        each.metadata.uid == owner.uid
        and (each.KIND.api_version, each.KIND.name, each.name) == (owner.api_version, owner.kind, owner.name)
        and each.metadata.namespace in ("", dependent.metadata.namespace)
        for each in known
    )


def misplaced(dependent: Resource, known: Iterable[Resource]) -> list[OwnerReference]:
    """References that Kubernetes cannot resolve: from an object without a namespace to one that has one."""
    if dependent.KIND.scope is Scope.NAMESPACED:
        return []
    uids = {each.metadata.uid for each in known if each.KIND.scope is Scope.NAMESPACED}
    return [owner for owner in dependent.metadata.owner_references if owner.uid in uids]


@dataclass
class Collector:
    """The collector of one cluster."""

    store: Store
    #: Kind and name of everything that it has deleted.
    deleted: list[tuple[str, str]] = field(default_factory=list)

    async def everything(self) -> list[Resource]:
        """All objects of our own kinds."""
        kinds = [kind for kind in all_kinds() if kind.crd]
        return [each for kind in kinds for each in (await self.store.list(kind.type)).items]

    async def garbage(self) -> list[Resource]:
        """Objects whose owners are all gone."""
        known = await self.everything()
        owned = [each for each in known if each.metadata.owner_references]
        return [each for each in owned if not any(is_there(o, each, known) for o in each.metadata.owner_references)]

    async def sweep(self) -> None:
        """Delete what is garbage. Finalizers hold it as they hold everything."""
        for each in await self.garbage():
            if each.deleting:
                continue
            try:
                await self.store.delete(type(each), each.name, each.metadata.namespace, uid=each.metadata.uid)
            except NotFound:
                continue
            self.deleted.append((each.KIND.name, each.name))

    async def run(self, clock: Clock) -> None:
        """Sweep for ever, every second."""
        while True:
            await self.sweep()
            await clock.sleep(1.0)

"""What people do when nodes are delivered: say which of their drives are for volumes.

``quorate up`` and ``quorate lab nodes`` do it for simulated nodes. What is there already is left as it is: somebody may
have changed it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress

from quorate.api import labels, names
from quorate.api.core import Namespace
from quorate.api.meta import NodeName, ObjectMeta, Resource
from quorate.api.storage import LVMVolumeGroup
from quorate.api.storage.lvg import DeviceSelector, LocalGroup, LVMVolumeGroupSpec
from quorate.engine.store import Store
from quorate.errors import AlreadyExists
from quorate.lab.layout import NodePlan, object_name, volume_group

#: Objects that are written at once.
_TOGETHER = 32


async def deliver(store: Store, plans: Iterable[NodePlan]) -> None:
    """Create a volume group for every drive. The nodes register themselves."""
    await _create(store, Namespace(metadata=ObjectMeta(name=names.NAMESPACE)))
    objects = [obj for plan in plans for obj in _objects(plan)]
    for begin in range(0, len(objects), _TOGETHER):
        await asyncio.gather(*(_create(store, obj) for obj in objects[begin : begin + _TOGETHER]))


def _objects(plan: NodePlan) -> Iterator[Resource]:
    for slot in map(str, range(1, plan.drives + 1)):
        yield LVMVolumeGroup(
            metadata=ObjectMeta(name=object_name(plan.name, slot), labels={labels.NODE: plan.name}),
            spec=LVMVolumeGroupSpec(
                actual_vg_name_on_the_node=volume_group(slot),
                local=LocalGroup(node_name=NodeName(plan.name)),
                device_selector=DeviceSelector(slots=(slot,)),
            ),
        )


async def _create(store: Store, obj: Resource) -> None:
    with suppress(AlreadyExists):
        await store.create(obj)

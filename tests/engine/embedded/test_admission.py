"""A label that says whose an object is stays: also for our own controllers, which use the store without HTTP."""

from __future__ import annotations

from random import Random

import pytest

from quorate.api import labels
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import DriveSpec
from quorate.api.meta import NodeName, ObjectMeta
from quorate.engine.clock import SystemClock
from quorate.engine.embedded import EmbeddedStore
from quorate.errors import Invalid


def drive(**metadata: object) -> Drive:
    spec = DriveSpec(uuid="d", serial_number="s", node_id=NodeName("n1"))
    return Drive(metadata=ObjectMeta(name="d", **metadata), spec=spec)  # type: ignore[arg-type]


async def test_a_nodes_label_can_be_set_once() -> None:
    store = await EmbeddedStore.open(None, kinds=[Drive.KIND], clock=SystemClock(), random=Random(1))
    await store.create(drive())
    labelled = await store.patch(Drive, "d", patch={"metadata": {"labels": {labels.NODE: "n1"}}})
    for changed in ("n2", "", None):
        with pytest.raises(Invalid, match="immutable once it is set") as refused:
            await store.patch(Drive, "d", patch={"metadata": {"labels": {labels.NODE: changed}}})
        assert (refused.value.kind, refused.value.name) == ("drives", "d")
    with pytest.raises(Invalid, match="immutable once it is set"):
        await store.patch(Drive, "d", patch={"metadata": {"labels": None}})
    assert await store.get(Drive, "d") == labelled
    await store.patch(Drive, "d", patch={"metadata": {"labels": {"other": "label"}}})
    await store.close()

"""Managers to test with: of a controller that finishes widgets, over a store that may take its time."""

from __future__ import annotations

import asyncio
from datetime import datetime
from random import Random
from typing import TypeVar

from quorate.api.meta import Resource
from quorate.api.struct import replace
from quorate.engine.controller import Controller, Watch
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.keys import Key
from quorate.engine.manager import Manager
from quorate.engine.plan import PatchStatus, Plan
from quorate.engine.reader import Reader
from quorate.engine.simulation import Simulation
from quorate.engine.store import MergePatch
from tests.support.kinds import Widget

R = TypeVar("R", bound=Resource)


def observe(reader: Reader, key: Key) -> Widget | None:
    return reader.get(Widget, key.name)


def finish(this: Widget, now: datetime, random: Random) -> Plan:
    return Plan(status=PatchStatus(this, replace(this, status=replace(this.status, phase="Done"))))


FINISHER = Controller(name="finisher", watches=(Watch(Widget),), observe=observe, decide=finish)


def manager(sim: Simulation, store: EmbeddedStore, *controllers: Controller[Widget], **options: object) -> Manager:
    return Manager(
        store,
        controllers or (FINISHER,),
        clock=sim.clock,
        random=sim.random("manager"),
        identity="test",
        **options,  # type: ignore[arg-type]
    )


class SlowStore(EmbeddedStore):
    """Takes its time for every status write."""

    seconds = 2.0

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
        await asyncio.sleep(self.seconds)
        return await super().patch_status(
            cls, name, namespace, patch=patch, resource_version=resource_version, dry_run=dry_run
        )

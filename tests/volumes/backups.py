"""Copies of the whole store, and how a lab goes on with one of them, as after a mistake or a fire."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field

from quorate.api import all_kinds
from quorate.api.storage import ReplicatedVolume
from quorate.api.storage.datamesh import FormationPhase
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.embedded.database import Database
from quorate.engine.embedded.semantics import KindRules
from quorate.engine.embedded.state import HistoryLimits
from quorate.errors import NotFound
from tests.support.faults import Sent
from tests.volumes.laboratory import VolumeLab


def copy_of(store: EmbeddedStore) -> bytes:
    """All of it, as it is now."""
    writer = store._database._writer
    assert writer is not None
    return writer.serialize()


async def restore(lab: VolumeLab, copy: bytes) -> None:
    """Put the store back. The controllers are stopped; agents that run see their watches end, and the old objects."""
    if lab.controller is not None:
        lab.kill()
    old, database, saved = lab.store, Database(None), sqlite3.connect(":memory:")
    writer = database._writer
    assert writer is not None
    saved.deserialize(copy)
    saved.backup(writer)
    saved.close()
    lab.store = EmbeddedStore(
        database,
        [KindRules(kind) for kind in all_kinds()],
        clock=lab.sim.clock,
        random=lab.sim.random("restored store"),
        inline=True,
        limits=HistoryLimits(),
    )
    for client in lab.clients:
        client.redirect(lab.store)
    await old.close()


@dataclass
class Birth:
    """Copies of the time in which a volume is formed: of every phase the first, and the last."""

    lab: VolumeLab
    first: dict[FormationPhase, bytes] = field(default_factory=dict)
    last: dict[FormationPhase, bytes] = field(default_factory=dict)

    def watch(self) -> None:
        """After each write of the controllers."""
        self.lab.watcher = self._after

    def _after(self, _: Sent) -> None:
        try:
            volume = self.lab.store.read(ReplicatedVolume.KIND, "v").typed
        except NotFound:
            return
        assert isinstance(volume, ReplicatedVolume)
        for each in volume.status.datamesh_transitions:
            if each.formation is not None:
                copy, phase = copy_of(self.lab.store), each.formation.phase
                self.first.setdefault(phase, copy)
                self.last[phase] = copy

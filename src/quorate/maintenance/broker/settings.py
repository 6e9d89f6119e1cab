"""The broker's configuration as the BrokerConfig object of a store."""

from __future__ import annotations

from quorate.api.codec import to_builtins
from quorate.api.maintenance.broker_config import BrokerConfig, BrokerConfigSpec
from quorate.api.meta import ObjectMeta
from quorate.api.names import BROKER
from quorate.engine.merge import difference
from quorate.engine.store import Store
from quorate.errors import AlreadyExists, NotFound


class StoredSettings:
    """Implements :class:`quorate.maintenance.broker.ports.Settings`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def load(self) -> BrokerConfigSpec | None:
        try:
            return (await self._store.get(BrokerConfig, BROKER)).spec
        except NotFound:
            return None

    async def save(self, config: BrokerConfigSpec) -> None:
        while True:
            try:
                found = await self._store.get(BrokerConfig, BROKER)
            except NotFound:
                try:
                    await self._store.create(BrokerConfig(metadata=ObjectMeta(name=BROKER), spec=config))
                except AlreadyExists:
                    continue
                return
            change = difference(to_builtins(found.spec), to_builtins(config))
            if change:
                await self._store.patch(BrokerConfig, BROKER, patch={"spec": change})
            return

"""What was changed of a described cluster, kept beside the ledger: a restart finds it as it was left.

One object for each node, drive or replica that ever changed its state, and one for the clock: a change costs one small
write, however large the cluster. These objects live only in the file of ``quorate broker``; no API serves them, so
their kind is in no registry.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from quorate.api.codec import to_builtins
from quorate.api.groups import MAINTENANCE
from quorate.api.kind import Kind, Scope
from quorate.api.maintenance.action import HostState
from quorate.api.meta import ObjectMeta, Resource
from quorate.api.struct import Struct
from quorate.engine.logs import get_logger
from quorate.engine.store import Store
from quorate.errors import NotFound, QuorateError
from quorate.maintenance.described import DescribedCluster
from quorate.maintenance.nouns import DriveId, parse_device

_log = get_logger(__name__)

_CLOCK: Final = "clock"
_NODE: Final = "node-"


class DescribedChangeSpec(Struct):
    """How something is now."""

    state: HostState | None = None
    #: When the node was started, in microseconds since 1970.
    start_time: int | None = None
    #: Of the clock: how far it was moved, in microseconds.
    ahead: int | None = None


class DescribedChange(Resource):
    """Something is not as its file describes it; the name says what."""

    spec: DescribedChangeSpec = DescribedChangeSpec()


DescribedChange.KIND = Kind(
    group=MAINTENANCE.name,
    version=MAINTENANCE.version,
    name=DescribedChange.__name__,
    plural="describedchanges",
    scope=Scope.CLUSTER,
    type=DescribedChange,
)


class Kept:
    """A described cluster and the memory of what happened to it."""

    def __init__(self, cluster: DescribedCluster, store: Store) -> None:
        self.cluster = cluster
        self._store = store
        self._known: set[str] = set()
        self._ahead = timedelta()

    async def restore(self) -> None:
        """Put the cluster into the state it was left in. What the file no longer describes is passed over."""
        for change in (await self._store.list(DescribedChange)).items:
            self._known.add(change.name)
            try:
                self._apply(change.name, change.spec)
            except NotFound:
                _log.warning("a changed state is of something that is described no more", name=change.name)

    async def set_node_state(self, node: int, state: HostState) -> None:
        """A node's; kept when this returns."""
        info = self.cluster.set_node_state(node, state)
        await self._write(f"{_NODE}{node}", DescribedChangeSpec(state=state, start_time=info.start_time))

    async def set_drive_state(self, drive: DriveId, state: HostState) -> None:
        """A drive's."""
        self.cluster.set_drive_state(drive, state)
        await self._write(str(drive), DescribedChangeSpec(state=state))

    async def set_vdisk_state(self, name: str, state: HostState) -> None:
        """A replica's."""
        self.cluster.set_vdisk_state(name, state)
        await self._write(name, DescribedChangeSpec(state=state))

    async def advance(self, by: timedelta) -> None:
        """Time passes."""
        self.cluster.clock.advance(by)
        self._ahead += by
        await self._write(_CLOCK, DescribedChangeSpec(ahead=self._ahead // timedelta(microseconds=1)))

    def _apply(self, name: str, spec: DescribedChangeSpec) -> None:
        if spec.ahead is not None:
            self._ahead = timedelta(microseconds=spec.ahead)
            self.cluster.clock.advance(self._ahead)
        if spec.state is None:
            return
        if name.startswith(_NODE):
            self._restore_node(int(name.removeprefix(_NODE)), spec)
        elif isinstance(device := parse_device(name), DriveId):
            self.cluster.set_drive_state(device, spec.state)
        else:
            self.cluster.set_vdisk_state(name, spec.state)

    def _restore_node(self, node: int, spec: DescribedChangeSpec) -> None:
        """As it was, not as if it had just started."""
        info = self.cluster.set_node_state(node, spec.state or HostState.UNKNOWN)
        if spec.start_time is not None:
            self.cluster.model.put_node(replace(info, start_time=spec.start_time))

    async def _write(self, name: str, spec: DescribedChangeSpec) -> None:
        """The step that changed the cluster begins this write too, so writes of one thing are in its order."""
        if name in self._known:
            await self._store.patch(DescribedChange, name, patch={"spec": to_builtins(spec)})
            return
        self._known.add(name)
        try:
            await self._store.create(DescribedChange(metadata=ObjectMeta(name=name), spec=spec))
        except QuorateError:
            self._known.discard(name)
            raise

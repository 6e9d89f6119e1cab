"""A cluster that exists only by description, and changes when it is told to."""

from __future__ import annotations

from dataclasses import replace

from quorate.api.maintenance.action import HostState
from quorate.api.maintenance.broker_config import BrokerConfigSpec
from quorate.engine.clock import Clock
from quorate.errors import NotFound
from quorate.maintenance.described.clock import DescribedClock
from quorate.maintenance.described.document import Description
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.moments import from_datetime
from quorate.maintenance.nouns import DriveId, NodeInfo, VDiskId, parse_device


class DescribedCluster:
    """The model of a described cluster, its clock, and what may happen to it."""

    def __init__(self, description: Description, clock: Clock | None = None) -> None:
        self.clock = DescribedClock(clock)
        self.model = ClusterModel(description.settings)
        for node in description.nodes:
            self.model.put_node(node)
        for drive in description.drives:
            self.model.put_drive(drive)
        for group in description.groups:
            self.model.put_group(group)
        self.model.set_rings(description.rings)

    def set_node_state(self, node_id: int, state: HostState) -> NodeInfo:
        """A node goes down, restarts, comes back, or is silent."""
        info = self.model.node(node_id)
        if info is None:
            raise NotFound(f"there is no node {node_id}")
        back = state is HostState.UP and info.state in (HostState.DOWN, HostState.RESTART)
        started = from_datetime(self.clock.now()) if back else info.start_time
        changed = replace(info, state=state, surely_down=state is HostState.DOWN, start_time=started)
        self.model.put_node(changed)
        return changed

    def set_drive_state(self, drive_id: DriveId, state: HostState) -> None:
        """A drive fails, or is back."""
        info = self.model.drive(drive_id)
        if info is None:
            raise NotFound(f"there is no drive {drive_id}")
        self.model.put_drive(replace(info, state=state))

    def set_vdisk_state(self, name: str, state: HostState) -> None:
        """A replica fails, or is whole again."""
        identity = parse_device(name)
        info = self.model.vdisk(identity) if isinstance(identity, VDiskId) else None
        if info is None:
            raise NotFound(f"there is no vdisk {name!r}: a name such as vdisk-0-1-0-0-0 is expected")
        self.model.put_vdisk(replace(info, state=state))

    def configure(self, settings: BrokerConfigSpec) -> None:
        """Other limits and durations."""
        self.model.configure(settings)

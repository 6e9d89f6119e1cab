"""The frozen picture of one node's drives: what they hold, what is asked of them, and how far its removal is.

A pass is about a node: a volume group may lie on several of its drives, a technician may pull the wrong one of them,
and a new drive comes in another's place. All of that is seen at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from functools import cached_property
from typing import Any, Final

from quorate.api import annotation_keys, core, names
from quorate.api.baremetal import Drive, Volume
from quorate.api.baremetal.drive import OperationalStatus, Presence
from quorate.api.baremetal.volume import VolumeUsage
from quorate.api.cluster_config import ClusterConfig, ClusterConfigSpec
from quorate.api.core import Lease, PersistentVolumeClaim
from quorate.api.longhorn import BackingImage, DiskSchedule
from quorate.api.maintenance import PermissionRequest
from quorate.api.meta import NodeName
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup, ReplicatedVolumeReplica
from quorate.disks.groups import PIECES_IN, PIECES_INDEX
from quorate.disks.images.copies import IMAGE_LABEL
from quorate.drives.phases import Release
from quorate.engine import Index, Key, Reader
from quorate.volumes.observe import agent_is_fresh

DRIVES_OF: Final = "drives of a node"
GROUPS_OF: Final = "volume groups of a node"
VOLUMES_ON: Final = "volumes on a node"
CLAIM_OF: Final = "claim of a volume"
REQUESTS_FOR: Final = "requests for drives of a node"

#: Whose requests to the broker are ours.
USER: Final = names.DRIVES_USER

CLAIM_INDEX: Final = Index(PersistentVolumeClaim, CLAIM_OF, lambda claim: filter(None, (claim.spec.volume_name,)))

INDEXES: Final[tuple[Index[Any], ...]] = (
    Index(Drive, DRIVES_OF, lambda drive: (drive.spec.node_id,)),
    Index(LVMVolumeGroup, GROUPS_OF, lambda group: (group.spec.local.node_name,)),
    PIECES_INDEX,
    Index(Volume, VOLUMES_ON, lambda volume: (volume.spec.node_id,)),
    Index(PermissionRequest, REQUESTS_FOR, lambda request: hosts_in(request)),
    CLAIM_INDEX,
)


class Owner(Enum):
    """Whose a logical volume is."""

    REPLICA = "replica"
    IMAGE = "copy of an image"
    FOREIGN = "nobody that we know"


@dataclass(frozen=True, slots=True)
class Piece:
    """A logical volume, and the object that stands for it while its drive is on its way out."""

    llv: LVMLogicalVolume
    volume: Volume | None
    owner: Owner
    #: Of a copy: its image.
    image: BackingImage | None = None

    @property
    def name(self) -> str:
        """Of both."""
        return self.llv.name

    @property
    def release(self) -> Release:
        """How far its release is. One of which nothing has been said yet is in the way."""
        usage = self.volume.status.usage if self.volume is not None else None
        if usage is VolumeUsage.RELEASED:
            return Release.RELEASED
        return Release.FAILED if usage is VolumeUsage.FAILED else Release.WORKING

    @property
    def title(self) -> str:
        """What people know it by."""
        return self.llv.volume_name or self.llv.metadata.labels.get(IMAGE_LABEL) or self.name


@dataclass(frozen=True, slots=True)
class Group:
    """A volume group, and everything that is in it."""

    lvg: LVMVolumeGroup
    drives: tuple[Drive, ...]
    pieces: tuple[Piece, ...]
    #: Volumes that speak of it, also of logical volumes that are gone.
    volumes: tuple[Volume, ...] = ()
    #: Owners with space on one of its disks, asked for or granted.
    entries: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Of the LVMVolumeGroup."""
        return self.lvg.name

    @property
    def leaving(self) -> bool:
        """Whether a drive under it is on its way out: it drains as a whole."""
        return any(drive.leaving for drive in self.drives)


@dataclass(frozen=True, slots=True)
class DriveView:
    """A drive, and everything that concerns it."""

    drive: Drive
    groups: tuple[Group, ...] = ()
    #: The question whether it may be pulled, once it is asked.
    request: PermissionRequest | None = None

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Everything that must leave before it can be pulled."""
        return tuple(piece for group in self.groups for piece in group.pieces)

    @property
    def unmanaged(self) -> tuple[str, ...]:
        """Logical volumes on it that no object stands for; of groups that drain as a whole, all of theirs."""
        of_groups = (place for group in self.groups for place in group.lvg.status.unmanaged_volumes)
        return tuple(dict.fromkeys((*self.drive.status.unmanaged_volumes, *of_groups)))

    @property
    def contents(self) -> tuple[Release, ...]:
        """How far everything on it is from not being needed there. What nobody looks after, nobody moves."""
        here = self.drive.status.presence is not Presence.OFFLINE
        stays = Release.WORKING if here else Release.FAILED
        return (*(piece.release for piece in self.pieces), *(stays for _ in self.unmanaged))

    @property
    def phase(self) -> OperationalStatus:
        """How far it is."""
        return self.drive.phase


@dataclass(frozen=True)
class NodeView:
    """The drives of one node."""

    name: NodeName
    #: None: there is no such core Node.
    machine: core.Node | None
    #: Its agent reports: what it does not see is not there.
    up: bool
    drives: tuple[DriveView, ...] = ()
    groups: tuple[Group, ...] = ()
    #: Volumes of groups that are not there any more.
    lost_volumes: tuple[Volume, ...] = ()
    #: Questions about drives that are not there any more.
    lost_requests: tuple[PermissionRequest, ...] = ()
    config: ClusterConfigSpec = field(default_factory=ClusterConfigSpec)
    #: Since when its agent reports without having been down; None: that is not known.
    up_since: datetime | None = None

    @cached_property
    def by_name(self) -> Mapping[str, DriveView]:
        """Drives by name."""
        return {view.drive.name: view for view in self.drives}


def hosts_in(request: PermissionRequest) -> tuple[str, ...]:
    """The nodes that a request of ours is about."""
    ours = request.spec.user == USER
    return tuple(dict.fromkeys(action.host for action in request.spec.actions if action.host)) if ours else ()


def request_name(drive: Drive) -> str:
    """The PermissionRequest of a drive's removal."""
    return f"drive-{drive.name}"


def is_released_outside(reader: Reader, volume: str) -> bool:
    """Whether an outside operator has promised to release the volume."""
    return any(support_of(claim) == "yes" for claim in reader.find(PersistentVolumeClaim, CLAIM_OF, volume))


def support_of(claim: PersistentVolumeClaim) -> str:
    """What a claim says of outside operators, in lower case; "yes" alone is a promise."""
    return claim.metadata.annotations.get(annotation_keys.RELEASE_SUPPORT, "").strip().lower()


def observe(reader: Reader, key: Key) -> NodeView | None:
    """Gather the picture; None when there is nothing to decide about."""
    name = NodeName(key.name)
    drives = reader.find(Drive, DRIVES_OF, name)
    volumes = reader.find(Volume, VOLUMES_ON, name)
    requests = reader.find(PermissionRequest, REQUESTS_FOR, name)
    if not drives and not volumes and not requests:
        return None
    found = reader.get(ClusterConfig, names.CLUSTER)
    config = ClusterConfigSpec() if found is None else found.spec
    known = {drive.name: drive for drive in drives}
    groups = tuple(_group(reader, lvg, known, volumes) for lvg in reader.find(LVMVolumeGroup, GROUPS_OF, name))
    there = {group.name for group in groups}
    lease = reader.get(Lease, names.agent_lease(name), names.NAMESPACE)
    return NodeView(
        name=name,
        machine=reader.get(core.Node, name),
        up=agent_is_fresh(reader, config, name),
        drives=tuple(
            DriveView(
                drive,
                tuple(group for group in groups if drive in group.drives),
                reader.get(PermissionRequest, request_name(drive)),
            )
            for drive in drives
        ),
        groups=groups,
        lost_volumes=tuple(volume for volume in volumes if volume.spec.location not in there),
        lost_requests=tuple(each for each in requests if each.name not in {request_name(drive) for drive in drives}),
        config=config,
        up_since=_acquired(lease),
    )


def _acquired(lease: Lease | None) -> datetime | None:
    if lease is None or lease.spec.acquire_time is None:
        return None
    try:
        return datetime.fromisoformat(lease.spec.acquire_time).astimezone(UTC)
    except ValueError:
        return None  # A Lease's schema is Kubernetes' own: what is in it may be anybody's.


def _group(reader: Reader, lvg: LVMVolumeGroup, drives: Mapping[str, Drive], volumes: Iterable[Volume]) -> Group:
    under = dict.fromkeys(device.drive_uuid for device in lvg.status.devices if device.drive_uuid in drives)
    here = tuple(volume for volume in volumes if volume.spec.location == lvg.name)
    group = Group(lvg, tuple(drives[uuid] for uuid in under), (), here)
    if not group.leaving and not here:
        # Nobody asks what is on a drive in service.
        return group
    by_name = {volume.name: volume for volume in here}
    pieces = reader.find(LVMLogicalVolume, PIECES_IN, lvg.name)
    return Group(
        lvg,
        group.drives,
        tuple(_piece(reader, piece, by_name.get(piece.name)) for piece in pieces),
        here,
        tuple(_entries(reader, lvg)),
    )


def _piece(reader: Reader, piece: LVMLogicalVolume, volume: Volume | None) -> Piece:
    image = piece.metadata.labels.get(IMAGE_LABEL)
    if image is not None:
        return Piece(piece, volume, Owner.IMAGE, reader.get(BackingImage, image, names.NAMESPACE))
    replica = reader.get(ReplicatedVolumeReplica, names.owner_of_logical_volume(piece.name))
    return Piece(piece, volume, Owner.REPLICA if replica is not None else Owner.FOREIGN)


def _entries(reader: Reader, lvg: LVMVolumeGroup) -> Iterable[str]:
    for uuid in (lvg.status.vg_uuid, *(pool.uuid for pool in lvg.status.thin_pools)):
        ledger = reader.get(DiskSchedule, names.disk_schedule(uuid), names.NAMESPACE) if uuid else None
        if ledger is not None:
            yield from dict.fromkeys(
                (
                    *ledger.spec.replicas,
                    *ledger.status.replicas,
                    *ledger.spec.backing_images,
                    *ledger.status.backing_images,
                )
            )

"""Names: pure functions of what they are derived from, so that a name found again means the same thing.

A child's name follows from its parent's: creating it twice is AlreadyExists, never two children.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Mapping
from typing import Final

from quorate.api.meta import NodeName, VolumeName
from quorate.api.scalars import MAX_MEMBERS, ReplicaName
from quorate.api.secret import Secret

#: The one ClusterConfig.
CLUSTER: Final = "cluster"
#: The one BrokerLedger, and the one BrokerConfig.
BROKER: Final = "broker"
#: The broker's user for whom drives are removed.
DRIVES_USER: Final = "quorate-drives"
#: Where our namespaced objects are.
NAMESPACE: Final = "quorate-system"
#: Where events of cluster-scoped objects go, as Kubernetes does it.
EVENT_NAMESPACE: Final = "default"

_SHARED_SECRET = "quorate-drbd-"  # noqa: S105 - of a name
#: The key in such a Secret.
SECRET_KEY: Final = "shared-secret"  # noqa: S105 - not the secret itself
_REPLICA = re.compile(r"(.+)-([0-7])\Z")
_PDISK = re.compile(r"pdisk-(0|[1-9][0-9]*)-(0|[1-9][0-9]*)\Z")
_VDISK = re.compile(r"vdisk" + 5 * r"-(0|[1-9][0-9]*)" + r"\Z")
_OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_BROKER_ID = re.compile(r".+-([rpn])-([1-9][0-9]*)\Z")


def replica(volume: VolumeName, replica_id: int) -> ReplicaName:
    """``<rv>-<id>``; the id is also the DRBD node id."""
    if not 0 <= replica_id < MAX_MEMBERS:
        raise ValueError(
            f"replica id {replica_id} of volume {volume} is out of range: allowed are 0 to {MAX_MEMBERS - 1}"
        )
    return ReplicaName(f"{volume}-{replica_id}")


def replica_id(name: ReplicaName) -> int:
    """The id in a replica's name."""
    return int(_parsed_replica(name)[1])


def volume_of_replica(name: ReplicaName) -> VolumeName:
    """The volume in a replica's name."""
    return VolumeName(_parsed_replica(name)[0])


@functools.lru_cache(maxsize=16384)
def _parsed_replica(name: ReplicaName) -> tuple[str, str]:
    match = _REPLICA.match(name)
    if match is None:
        raise ValueError(f"{name!r} is not a replica's name: expected <volume>-0 to <volume>-{MAX_MEMBERS - 1}")
    return match[1], match[2]


def disk(volume_group: str, thin_pool: str = "") -> str:
    """A disk: a volume group's own space, or one of its thin pools. Also the key in the node's inventory."""
    return f"{volume_group}/{thin_pool}" if thin_pool else volume_group


def logical_volume(owner: str, volume_group: str, thin_pool: str = "") -> str:
    """The LVMLogicalVolume of a replica, or of an image's copy, on a disk.

    The disk is part of the name: a replica that moves to another disk gets another volume, and never an old one's data.
    """
    return f"{owner}-{_digest(volume_group, thin_pool)}"


def owner_of_logical_volume(name: str) -> str:
    """Whose it is, by the name of an LVMLogicalVolume: a replica's name, or an image's and ``-copy``."""
    return name[: -len("-01234567")]


def volume_of_logical_volume(name: str) -> VolumeName | None:
    """The volume of the replica whose LVMLogicalVolume would have this name; None: it would be no replica's."""
    match = _REPLICA.match(owner_of_logical_volume(name))
    return VolumeName(match[1]) if match is not None else None


@functools.lru_cache(maxsize=16384)
def _digest(volume_group: str, thin_pool: str) -> str:
    return hashlib.sha256(f"{volume_group}\0{thin_pool}".encode()).hexdigest()[:8]


def disk_schedule(disk_uuid: str) -> str:
    """The ledger of a disk. LVM's UUIDs have capitals, object names must not."""
    return disk_uuid.lower()


def formation_operation(volume: VolumeName) -> str:
    """The one operation that gives a volume its first data."""
    return f"{volume}-formation"


def comparison_operation(volume: VolumeName, revision: int) -> str:
    """The operation that compares a volume's copies, or overwrites a part of them (``rv.status.comparisons``)."""
    return f"{volume}-comparison-{revision}"


def rejoin_operation(replica: ReplicaName, revision: int) -> str:
    """The operation that brings back a primary that has yielded to another."""
    return f"{replica}-rejoin-{revision}"


def log_operation(replica: ReplicaName) -> str:
    """The operation that gives a disk that grew its activity log."""
    return f"{replica}-log"


def kernel_resource(volume: VolumeName) -> str:
    """The DRBD resource, and its ``.res`` file, on every node."""
    return volume


def shared_secret(volume: VolumeName) -> str:
    """The Secret with what authenticates a volume's members to one another; its Role and RoleBinding too."""
    return f"{_SHARED_SECRET}{volume}"


def volume_of_shared_secret(name: str) -> VolumeName | None:
    """The volume whose Secret has this name; None: it would be no volume's."""
    volume = name.removeprefix(_SHARED_SECRET)
    return VolumeName(volume) if volume and volume != name else None


def secret_value(data: Mapping[str, Secret]) -> Secret | None:
    """What a Secret with these data holds for DRBD; None: nothing that could be read."""
    held = data.get(SECRET_KEY)
    try:
        return None if held is None else Secret(base64.b64decode(held.reveal(), validate=True).decode("ascii"))
    except ValueError:
        return None


def agent_user(node: str) -> str:
    """Who a node's agent is to an API server, by its certificate or its token."""
    return f"system:quorate:agent:{node}"


def device_path(minor: int) -> str:
    """The block device of a volume, on every node where it is up."""
    return f"/dev/drbd{minor}"


def csi_attachment(volume: VolumeName, node: NodeName) -> str:
    """The attachment that a CSI driver makes; shortened with a hash where an object name could not hold it."""
    name = f"csi-{volume}-{node}"
    if len(name) <= 253:
        return name
    return f"{name[:244]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def agent_lease(node: NodeName) -> str:
    """The Lease by which a node's agent shows that it lives."""
    return f"quorate-agent-{node}"


def request(number: int) -> str:
    """A PermissionRequest made by the broker for a caller that is not Kubernetes."""
    return f"r-{number}"


def permission(number: int) -> str:
    """A Permission."""
    return f"p-{number}"


def notification(number: int) -> str:
    """A Notification."""
    return f"n-{number}"


def walle_task(task_id: str) -> str:
    """A WalleTask. Its id is anything that Wall-E likes; an object's name is not."""
    if len(task_id) <= 253 and _OBJECT_NAME.match(task_id):
        return task_id
    return f"walle-{hashlib.sha256(task_id.encode()).hexdigest()[:16]}"


def broker_id(user: str, name: str) -> str:
    """The id that the broker's interfaces show: the user, and an object's name."""
    return f"{user}-{name}"


def parse_broker_id(text: str) -> tuple[str, int] | None:
    """Letter and number of an id such as ``alice-p-7``; None if it is not one."""
    match = _BROKER_ID.match(text)
    return (match[1], int(match[2])) if match else None


def pdisk(node_id: int, drive_id: int) -> str:
    """A drive, as the broker's interfaces name it."""
    return f"pdisk-{node_id}-{drive_id}"


def parse_pdisk(text: str) -> tuple[int, int] | None:
    """Node id and drive id; None if it is not a drive's name."""
    match = _PDISK.match(text)
    return (int(match[1]), int(match[2])) if match else None


def vdisk(group: int, generation: int, realm: int, domain: int, number: int) -> str:
    """A replica, as the broker's interfaces name it."""
    return f"vdisk-{group}-{generation}-{realm}-{domain}-{number}"


def parse_vdisk(text: str) -> tuple[int, int, int, int, int] | None:
    """Group, generation, realm, domain and number; None if it is not a replica's name."""
    match = _VDISK.match(text)
    if match is None:
        return None
    group, generation, realm, domain, number = map(int, match.groups())
    return group, generation, realm, domain, number

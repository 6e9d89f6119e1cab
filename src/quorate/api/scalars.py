"""Scalars with a meaning and bounds, shared by many kinds.

Every text that a CEL rule looks at is bounded: an API server refuses a rule whose worst case it cannot afford.
"""

from __future__ import annotations

from typing import Annotated, NewType

from msgspec import Meta

from quorate.api.meta import Bytes, NodeName, VolumeName
from quorate.api.struct import rule

ReplicaName = NewType("ReplicaName", str)

#: A replica's name is its volume's and ``-0`` to ``-7``; a logical volume's adds nine characters to that.
VOLUME_NAME_MAX_LENGTH = 120
#: What a DRBD resource has room for: node ids are 0 to 7 (M18).
MAX_MEMBERS = 8

# Names of other objects, as fields.
NodeRef = Annotated[NodeName, Meta(min_length=1, max_length=253, description="The name of a node.")]
VolumeRef = Annotated[
    VolumeName, Meta(min_length=1, max_length=VOLUME_NAME_MAX_LENGTH, description="The name of a ReplicatedVolume.")
]
ReplicaRef = Annotated[
    ReplicaName,
    Meta(
        min_length=3,
        max_length=VOLUME_NAME_MAX_LENGTH + 2,
        pattern="-[0-7]$",
        description="The name of a replica: its volume's, and -0 to -7.",
    ),
]
ObjectRef = Annotated[str, Meta(min_length=1, max_length=253)]

# Words.
Word = Annotated[str, Meta(min_length=1, max_length=63)]
Zone = Annotated[
    str, Meta(min_length=1, max_length=63, description="A zone: the node's label topology.kubernetes.io/zone.")
]
Message = Annotated[str, Meta(max_length=1024, description="What there is to say of it, for people.")]
ReasonCode = Annotated[
    str, Meta(max_length=128, pattern="^([A-Z][A-Za-z0-9]*)?$", description="Why, as a code; see docs/conditions.md.")
]
#: A file, from a directory that a node's agent knows: no way leads out of it. Not a pattern: objects from before, with
#: any path, must still be read.
ImagePath = Annotated[
    str,
    Meta(min_length=1, max_length=512),
    rule(
        "!self.startsWith('/') && !self.matches('(^|/)[.]{0,2}(/|$)')",
        "must be a path from the image directory of the node's agent (imageDir), without . and ..",
    ),
]
DevicePath = Annotated[str, Meta(min_length=1, max_length=512, pattern="^/", description="A path on the node.")]
#: A logical volume as LVM's commands take it: ``group/name``.
VolumePath = Annotated[str, Meta(min_length=1, max_length=256)]
#: So many logical volumes that no object stands for are named; there may be more.
MOST_UNMANAGED = 16

# Numbers.
NodeId = Annotated[int, Meta(ge=0, le=MAX_MEMBERS - 1, description="A DRBD node id: the number in a replica's name.")]
DeviceMinor = Annotated[
    int, Meta(ge=0, le=1_048_575, description="The number of the volume's device, /dev/drbd<minor>, on every node.")
]
Port = Annotated[int, Meta(ge=1025, le=65535, description="A TCP port.")]
Count = Annotated[int, Meta(ge=0)]
Percent = Annotated[int, Meta(ge=0, le=100)]
ByteCount = Annotated[Bytes, Meta(ge=0)]

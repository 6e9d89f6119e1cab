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
NodeRef = Annotated[NodeName, Meta(min_length=1, max_length=253)]
VolumeRef = Annotated[VolumeName, Meta(min_length=1, max_length=VOLUME_NAME_MAX_LENGTH)]
ReplicaRef = Annotated[ReplicaName, Meta(min_length=3, max_length=VOLUME_NAME_MAX_LENGTH + 2, pattern="-[0-7]$")]
ObjectRef = Annotated[str, Meta(min_length=1, max_length=253)]

# Words.
Word = Annotated[str, Meta(min_length=1, max_length=63)]
Zone = Annotated[str, Meta(min_length=1, max_length=63)]
Message = Annotated[str, Meta(max_length=1024)]
ReasonCode = Annotated[str, Meta(max_length=128, pattern="^([A-Z][A-Za-z0-9]*)?$")]
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
DevicePath = Annotated[str, Meta(min_length=1, max_length=512, pattern="^/")]
#: A logical volume as LVM's commands take it: ``group/name``.
VolumePath = Annotated[str, Meta(min_length=1, max_length=256)]
#: So many logical volumes that no object stands for are named; there may be more.
MOST_UNMANAGED = 16

# Numbers.
NodeId = Annotated[int, Meta(ge=0, le=MAX_MEMBERS - 1)]
DeviceMinor = Annotated[int, Meta(ge=0, le=1_048_575)]
Port = Annotated[int, Meta(ge=1025, le=65535)]
Count = Annotated[int, Meta(ge=0)]
Percent = Annotated[int, Meta(ge=0, le=100)]
ByteCount = Annotated[Bytes, Meta(ge=0)]

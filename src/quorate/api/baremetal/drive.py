"""Drive: a physical device, its health, and how far its removal is."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta, field

from quorate.api import labels
from quorate.api.groups import BAREMETAL
from quorate.api.kind import Column, kind
from quorate.api.meta import Bytes, Condition, Resource
from quorate.api.scalars import MOST_UNMANAGED, ByteCount, Count, Message, NodeRef, ObjectRef, Percent, VolumePath
from quorate.api.struct import Struct, list_map

Label = Annotated[str, Meta(max_length=128)]


class DriveType(StrEnum):
    """What it is made of."""

    HDD = "HDD"
    SSD = "SSD"
    NVME = "NVME"


class DriveHealth(StrEnum):
    """How far a drive can be trusted."""

    GOOD = "GOOD"
    SUSPECT = "SUSPECT"
    BAD = "BAD"
    UNKNOWN = "UNKNOWN"


class OperationalStatus(StrEnum):
    """How far a drive is on its way out."""

    OPERATIVE = "OPERATIVE"
    RELEASING = "RELEASING"
    RELEASED = "RELEASED"
    FAILED = "FAILED"
    REMOVING = "REMOVING"
    REMOVED = "REMOVED"


class Presence(StrEnum):
    """Whether the device answers."""

    ONLINE = "ONLINE"
    OFFLINE = "OFFLINE"


SerialNumber = Annotated[str, Meta(min_length=1, max_length=128)]
#: So many drives that were in a place before are remembered.
MOST_REPLACED: Final = 16


class DriveSpec(Struct):
    """What is known of the device. Written by the node's agent; serial, vendor and product are its identity."""

    uuid: Annotated[ObjectRef, Meta(description="The name of this object.")] = field(name="UUID")
    serial_number: Annotated[SerialNumber, Meta(description="As the drive itself says.")] = field(name="SerialNumber")
    vid: Annotated[Label, Meta(description="Vendor.")] = field(default="", name="VID")
    pid: Annotated[Label, Meta(description="Product.")] = field(default="", name="PID")
    node_id: NodeRef = field(name="NodeId")
    path: Annotated[str, Meta(max_length=512, description="Such as /dev/sdb; may differ after a reboot.")] = field(
        default="", name="Path"
    )
    size: Annotated[ByteCount, Meta(description="Bytes.")] = field(default=Bytes(0), name="Size")
    type: DriveType | None = field(default=None, name="Type")
    enclosure: Annotated[Label, Meta(description="The enclosure that it sits in.")] = field(
        default="", name="Enclosure"
    )
    slot: Annotated[Label, Meta(description="The slot of that, as people number them.")] = field(
        default="", name="Slot"
    )
    bay: Annotated[Label, Meta(description="The bay, where the enclosure names one.")] = field(default="", name="Bay")
    firmware: Annotated[Label, Meta(description="The version of its firmware.")] = field(default="", name="Firmware")
    is_system: Annotated[bool, Meta(description="The node runs from it: its health only alerts.")] = field(
        default=False, name="IsSystem"
    )
    is_clean: Annotated[bool, Meta(description="Nothing is on it.")] = field(default=False, name="IsClean")


class SmartReport(Struct):
    """What the device says of itself."""

    health: DriveHealth = DriveHealth.UNKNOWN
    message: Message = ""
    temperature_celsius: Annotated[int, Meta(description="Degrees Celsius.")] | None = None
    endurance_used_percent: (
        Annotated[Count, Meta(description="How much of its rated life is used; may be more than 100.")] | None
    ) = None


class DetachmentPhase(StrEnum):
    """How far the agent is with a device that it is to give up."""

    WORKING = "Working"
    DONE = "Done"
    FAILED = "Failed"


class Detachment(Struct):
    """What the agent has done to a device that is to be pulled: out of its group, wiped, its light on."""

    phase: DetachmentPhase
    step: Annotated[str, Meta(max_length=63, description="Which step is under way, or failed.")] = ""
    light: Annotated[bool, Meta(description="Whether its locate light could be switched on; absent: not tried.")] | (
        None
    ) = None
    message: Message = ""


class DriveStatus(Struct):
    """How the drive is.

    The agent writes ``presence``, ``missingSince``, ``smart``, ``ledOn``, ``foreignData``, ``unmanagedVolumes`` and
    ``detachment``; the drives controller decides the rest.
    """

    presence: Presence | None = None
    missing_since: Annotated[datetime, Meta(description="When the agent last could not find it.")] | None = None
    smart: SmartReport | None = None
    led_on: Annotated[bool, Meta(description="The locate light; absent: the enclosure has none.")] | None = None
    foreign_data: Annotated[
        str, Meta(max_length=1000, description="What is on it outside of LVM: not ours to move, nor to wipe.")
    ] = ""
    unmanaged_volumes: Annotated[
        tuple[VolumePath, ...],
        Meta(
            max_length=MOST_UNMANAGED,
            description="Logical volumes on it, in groups without an LVMVolumeGroup. While it is away: those it had.",
        ),
    ] = ()
    detachment: Detachment | None = None
    observed_generation: Annotated[Count, Meta(description="The generation that this status is about.")] | None = None
    health: DriveHealth | None = None
    operational_status: OperationalStatus | None = None
    operational_status_since: Annotated[datetime, Meta(description="When operationalStatus became what it is.")] | (
        None
    ) = None
    progress: Annotated[Percent, Meta(description="How much of what must leave has left.")] | None = None
    permission_id: Annotated[
        str, Meta(max_length=253, description="The broker's permission for the removal, once asked for.")
    ] = ""
    detach: Annotated[bool, Meta(description="To the agent: take it out of its group, wipe it and light its lamp.")] = (
        False
    )
    replaces: Annotated[
        tuple[SerialNumber, ...],
        Meta(
            max_length=MOST_REPLACED,
            description="Serial numbers of the drives that were in its place before it, the last one first.",
        ),
    ] = ()
    message: Message = ""
    conditions: Annotated[
        tuple[Condition, ...], list_map("type"), Meta(description="How the drive is; docs/conditions.md has every one.")
    ] = ()


@kind(
    group=BAREMETAL.name,
    version=BAREMETAL.version,
    plural="drives",
    categories=("quorate", "storage"),
    columns=(
        Column("Node", ".spec.NodeId"),
        Column("Path", ".spec.Path"),
        Column("Type", ".spec.Type"),
        Column("Size", ".spec.Size", "integer"),
        Column("Presence", ".status.presence"),
        Column("SMART", ".status.smart.health"),
        Column("Health", ".status.health"),
        Column("Status", ".status.operationalStatus"),
        Column("Progress", ".status.progress", "integer"),
        Column("Serial", ".spec.SerialNumber", priority=1),
        Column("Slot", ".spec.Slot", priority=1),
        Column("Message", ".status.message", priority=1),
    ),
    selectable_fields=(".spec.NodeId",),
    immutable_labels=(labels.NODE,),
)
class Drive(Resource):
    """A physical device."""

    spec: DriveSpec
    status: DriveStatus = DriveStatus()

    @property
    def phase(self) -> OperationalStatus:
        """How far it is on its way out; one that has just been found is in service."""
        return self.status.operational_status or OperationalStatus.OPERATIVE

    @property
    def leaving(self) -> bool:
        """Whether it is on its way out, or out."""
        return self.phase is not OperationalStatus.OPERATIVE

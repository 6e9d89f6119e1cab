"""Conditions of an LVMVolumeGroup, and why an LVMLogicalVolume failed."""

from __future__ import annotations

from quorate.api.conditions.declaration import ConditionType, ReasonCodes, false, true, unknown


class Ready(ConditionType):
    """The volume group and its thin pools can be used."""

    READY = true("Ready", "The volume group can be used.")
    VOLUME_GROUP_NOT_FOUND = false(
        "VolumeGroupNotFound",
        "The node has no volume group of that name.",
        "Create it, or give drives to deviceSelector.",
    )
    VOLUME_GROUP_INCOMPLETE = false(
        "VolumeGroupIncomplete", "Devices of the group are missing.", "See the Drives of the node."
    )
    THIN_POOL_NOT_READY = false(
        "ThinPoolNotReady", "A thin pool is not there or not usable.", "The message says which."
    )
    AGENT_NOT_READY = unknown(
        "AgentNotReady",
        "The node's agent has not reported lately, so nothing is known.",
        "See the node, and the agent on it.",
    )


class Removable(ConditionType):
    """Nothing is in the volume group any more, so that its object may go. Told while it is being deleted."""

    EMPTY = true("Empty", "Nothing is in the group: its object goes.")
    NOT_EMPTY = false(
        "NotEmpty",
        "Something is in the group, and without its object nobody would look after it.",
        "Move or delete what the message names: volumes by quorate drive replace, or by deleting a replica;"
        " a logical volume that no object stands for by quorate orphan remove. Or leave it as it is: nothing is lost.",
    )
    DRIVE_LEAVES = false(
        "DriveLeaves",
        "Nothing is in the group, but a drive of it is on its way out, and is taken apart as a part of it.",
        "End the drive's replacement: quorate drive ready, or quorate drive restart.",
    )
    CLOSING = false("Closing", "Nothing is in the group; that its disks give nothing any more is being seen to.")


class LogicalVolumeFailure(ReasonCodes):
    """Why the agent could not make, extend or remove a logical volume (``llv.status.reason``)."""

    LV_EXISTS = false(
        "LVExists",
        "A logical volume of that name is there already, and it is not ours to wipe.",
        "Look at what is on it; rename or remove it on the node by hand.",
    )
    LV_MISSING = false(
        "LVMissing",
        "The logical volume was there and is gone; it is not made again, because an empty one must not replace data.",
        "Look on the node. Where the volume has another copy, delete the replica to have this one made anew; the only"
        " copy can only be brought back as it was, or given up with the volume.",
    )
    NO_SPACE = false("NoSpace", "The volume group has not got the extents.", "Add a drive to the group, or free space.")
    VOLUME_GROUP_NOT_FOUND = false(
        "VolumeGroupNotFound", "The node has no such volume group.", "See the LVMVolumeGroup."
    )
    THIN_POOL_NOT_FOUND = false("ThinPoolNotFound", "The group has no such thin pool.", "See the LVMVolumeGroup.")
    DEVICE_IN_USE = false("DeviceInUse", "Somebody holds the logical volume open.", "The message names who.")
    SOURCE_NOT_FOUND = false("SourceNotFound", "The file to fill it from is not on the node.", "Put it there.")
    SOURCE_REFUSED = false(
        "SourceRefused",
        "The file to fill it from is not one beneath the node's image directory (imageDir of its agent), or no regular"
        " file: links and devices are not read.",
        "Put the file itself there, and name it by its path from there.",
    )
    UNUSABLE_NAME = false(
        "UnusableName",
        "LVM gives the name a meaning of its own, or has no room for it; nothing is done with it.",
        "Delete the object, and make one with another name.",
    )
    CHECKSUM_MISMATCH = false(
        "ChecksumMismatch", "What was filled in is not what was asked for.", "See the source file."
    )
    COMMAND_FAILED = false("CommandFailed", "A command of LVM failed.", "The message has its words.")

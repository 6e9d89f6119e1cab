"""Conditions of a Drive, and of a csi-baremetal Volume."""

from __future__ import annotations

from quorate.api.conditions.declaration import ConditionType, false, true, unknown


class Healthy(ConditionType):
    """The drive is GOOD; otherwise the reason says who found it wanting."""

    GOOD = true("Good", "Nothing is known against the drive.")
    MARKED_ACTIVE = true("MarkedActive", "The drive is marked ACTIVE, which overrides everything else.")
    OVERRIDDEN_GOOD = true("OverriddenGood", "A person set the drive's health to GOOD by annotation.")
    OVERRIDDEN = false("Overridden", "A person set the drive's health by annotation.", "Remove the annotation health.")
    MARKED_BROKEN = false("MarkedBroken", "The drive is marked BROKEN.", "Replace it, or reset the marker.")
    MARKED_FAULTY = false("MarkedFaulty", "The drive is marked FAULTY.", "Replace it soon, or reset the marker.")
    SMART_FAILED = false("SmartFailed", "The drive says that it fails.", "Replace it.")
    SMART_WARNING = false("SmartWarning", "The drive says that it is ageing.", "Replace it soon.")
    MONITOR_BROKEN = false("MonitorBroken", "The drive is, or will be, away too long.", "Bring it back, or replace it.")
    MONITOR_FAULTY = false("MonitorFaulty", "The drive will be away too long.", "Bring it back in time, or replace it.")
    MISSING = false("Missing", "The device is gone while its node is up.", "Look at cable and slot, or replace it.")
    NOT_REPORTED = unknown("NotReported", "The drive does not say how it is.")


class Present(ConditionType):
    """The device answers."""

    ONLINE = true("Online", "The device is there.")
    OFFLINE = false(
        "Offline", "The device is gone.", "Put it back: after a grace it counts as lost, and its data is made anew."
    )
    NOT_REPORTED = unknown("NotReported", "Its node's agent has not said yet.")


class Clean(ConditionType):
    """Nothing is on the device but what is ours."""

    CLEAN = true("Clean", "Nothing of anybody else's is on it.")
    SYSTEM = false("System", "The node runs from it.")
    HAS_DATA = false(
        "HasData",
        "Something is on it that is not ours, or that no object stands for: it is neither moved nor wiped.",
        "The message says what. Save what is needed; then wipe it by hand, or remove the logical volumes.",
    )


class Released(ConditionType):
    """Of a Drive: everything on it has left. Of a Volume: it may go."""

    RELEASED = true("Released", "Nothing is on it any more that is needed.")
    FOREIGN_DATA = true(
        "ForeignData",
        "Nothing of ours is on it any more, but somebody else's data, which is neither moved nor wiped.",
        "Save what is needed, then wipe it by hand: wipefs --all.",
    )
    NOT_REQUESTED = false("NotRequested", "The drive is in service.")
    RELEASING = false("Releasing", "Data is being moved away.", "Wait; the message has the progress.")
    LAST_COPY = false(
        "LastCopy",
        "It holds the last up-to-date copy of a volume, which is not touched.",
        "Bring another member of the volume that the message names back.",
    )
    UNMANAGED_VOLUMES = false(
        "UnmanagedVolumes",
        "Logical volumes are on it that no object stands for. Nobody moves them; they may be the last of something.",
        "Find out what they are. If the LVMVolumeGroup of their group was deleted, create it again: they are moved."
        " Else save what is needed, and remove them on the node (lvremove). If the drive is gone and they are given"
        " up, delete its Drive object.",
    )
    WAITING_FOR_RESYNC = false(
        "WaitingForResync", "A SUSPECT drive is emptied only while its volumes are whole.", "Wait for their resync."
    )
    IN_USE = false(
        "InUse",
        "A volume is in use on the drive's node, and a replica in use is not taken away.",
        "Detach the volume that the message names there, or move its user.",
    )
    WAITING_FOR_OPERATOR = false(
        "WaitingForOperator", "An outside operator has promised to release the volume.", "See that operator."
    )
    WAITING_FOR_DELETION = false(
        "WaitingForDeletion", "The data is not ours to move.", "Save it, then delete the Volume object."
    )
    MISUNDERSTOOD = false(
        "Misunderstood",
        "An annotation of the Volume has a word that means nothing here: no further step is made.",
        "Correct the annotation that the message names.",
    )
    PAUSED = false("Paused", "The release is paused.", "Set the process annotation to start.")
    STOPPED = false("Stopped", "The release was stopped.", "Set the process annotation to start.")
    FAILED = false(
        "Failed",
        "Something could not be released.",
        "See the volumes that the message names; then replacement=restart.",
    )


class Removed(ConditionType):
    """The drive can be pulled."""

    REMOVED = true("Removed", "The drive can be pulled; its light is on where there is one.")
    NOT_REQUESTED = false("NotRequested", "The drive is in service.")
    WAITING_FOR_RELEASE = false("WaitingForRelease", "Data is still on it.", "See Released.")
    WAITING_FOR_USER = false(
        "WaitingForUser",
        "The drive is empty and waits for a person.",
        "When the new one is at hand: annotate it driveremove.csi-baremetal/replacement=ready.",
    )
    WAITING_FOR_PERMISSION = false(
        "WaitingForPermission",
        "The maintenance broker has not allowed it yet.",
        "The message says what stands in the way.",
    )
    WAITING_FOR_COPIES = false(
        "WaitingForCopies", "A volume has not got its promised copies elsewhere.", "The message names the volume."
    )
    REMOVING = false("Removing", "Volumes, group and signatures are being removed.")
    STEP_FAILED = false(
        "StepFailed", "A step of the removal failed.", "The message says which; then replacement=restart."
    )
    WITHDRAWN = false(
        "Withdrawn",
        "ready was taken back in the middle of the removal: nothing more is destroyed, and what is gone is gone.",
        "replacement=ready to go on, or replacement=restart to take the drive into service again.",
    )


class LocateLight(ConditionType):
    """The drive's locate light is on."""

    ON = true("On", "The light is on.")
    OFF = false("Off", "The light is off.")
    NOT_AVAILABLE = false(
        "NotAvailable", "The enclosure has no light that we can switch.", "Find it by slot and serial."
    )

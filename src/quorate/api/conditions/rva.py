"""Conditions of a ReplicatedVolumeAttachment."""

from __future__ import annotations

from quorate.api.conditions.declaration import ConditionType, false, true, unknown


class Attached(ConditionType):
    """The volume is Primary on the node."""

    ATTACHED = true("Attached", "The volume is attached.")
    ATTACHING = false("Attaching", "The volume is being attached.")
    DETACHING = false("Detaching", "The volume is being detached.")
    DETACHED = false("Detached", "The volume is not attached.")
    PENDING = false(
        "Pending", "Other nodes came first and the volume can be on no more at once.", "Detach it elsewhere, or wait."
    )
    DEVICE_IN_USE = true(
        "DeviceInUse",
        "The device is held open, so it cannot be detached.",
        "Stop the process that the message names; if it waits for a write that stands still, detach by force.",
    )
    WAITING_FOR_REPLICA = false("WaitingForReplica", "The node has no replica that could serve yet.")
    WAITING_FOR_REPLICATED_VOLUME = false(
        "WaitingForReplicatedVolume", "The volume does not exist, or is not formed yet.", "See the volume."
    )
    NODE_NOT_ELIGIBLE = false(
        "NodeNotEligible", "The node is not among the pool's eligible nodes.", "See status.eligibleNodes of the pool."
    )
    REPLICATED_VOLUME_TERMINATING = false("ReplicatedVolumeTerminating", "The volume is being deleted.")
    VOLUME_ACCESS_LOCALITY_NOT_SATISFIED = false(
        "VolumeAccessLocalityNotSatisfied",
        "The class allows only local access and the node has no replica with a disk.",
        "Attach on a node that has one, or use a class with another volumeAccess.",
    )
    TWO_PRIMARIES_NOT_ALLOWED = false(
        "TwoPrimariesNotAllowed",
        "This volume cannot be used on two nodes at once: its layout would not survive a cut link.",
        "Detach it where it is; it follows then.",
    )
    NO_FREE_NODE_ID = false(
        "NoFreeNodeId", "The volume has eight members, which is all that DRBD has room for.", "Remove one first."
    )
    PERMISSION_HELD = false(
        "PermissionHeld",
        "A node or drive that somebody may take down holds what the volume could not be written to without.",
        "Wait until the permission that the message names has ended, or have its owner give it back.",
    )


class ReplicaReady(ConditionType):
    """The replica on the node is Ready; with that condition's own reason."""

    WAITING_FOR_REPLICA = unknown("WaitingForReplica", "The node has no replica of the volume.")


class Ready(ConditionType):
    """Attached, the replica is Ready, and nobody has asked for the detachment."""

    READY = true("Ready", "The volume can be used on the node.")
    NOT_ATTACHED = false("NotAttached", "The volume is not attached.", "See Attached.")
    REPLICA_NOT_READY = false("ReplicaNotReady", "The replica on the node is not ready.", "See ReplicaReady.")
    TERMINATING = false("Terminating", "The attachment is being removed.")

"""Conditions of a DiskSchedule. Schedulable is also one of a longhorn Node, and of each disk in its inventory."""

from __future__ import annotations

from quorate.api.conditions.declaration import ConditionType, Reason, ReasonCodes, false, true


def _disabled() -> Reason:
    return false("Disabled", "Scheduling on this disk is switched off.", "Set allowScheduling in the longhorn Node.")


def _cordoned() -> Reason:
    return false("Cordoned", "The node takes nothing new.", "Uncordon it, or remove the evacuate annotation.")


def _unhealthy() -> Reason:
    return false("Unhealthy", "A drive under the disk is SUSPECT or BAD.", "See the Drive.")


def _inactive() -> Reason:
    return false(
        "Inactive", "A drive under the disk is marked INACTIVE.", "Reset the marker when it may be used again."
    )


def _deleting() -> Reason:
    return false(
        "Deleting",
        "The disk's DiskSchedule is being deleted, and takes nothing new.",
        "Nothing: it goes when nobody has space there any more, and is made again if the disk is still there.",
    )


def _low_space() -> Reason:
    return false(
        "LowSpace", "Less is free than the low-water mark.", "Free space, or extend the group or the thin pool."
    )


def _disk_not_found() -> Reason:
    return false("DiskNotFound", "The disk is not in the node's inventory.", "See the LVMVolumeGroup.")


def _disk_not_ready() -> Reason:
    return false("DiskNotReady", "The disk cannot be used now.", "See the LVMVolumeGroup and its node.")


def _kernel_stuck() -> Reason:
    return false(
        "KernelStuck", "Commands hang in the node's kernel: it takes nothing new.", "Drain the node and reboot it."
    )


class Schedulable(ConditionType):
    """The disk takes new entries."""

    SCHEDULABLE = true("Schedulable", "The disk takes new entries.")
    DISABLED = _disabled()
    CORDONED = _cordoned()
    KERNEL_STUCK = _kernel_stuck()
    UNHEALTHY = _unhealthy()
    INACTIVE = _inactive()
    DELETING = _deleting()
    LOW_SPACE = _low_space()
    DISK_NOT_FOUND = _disk_not_found()
    DISK_NOT_READY = _disk_not_ready()


class OverCommitted(ConditionType):
    """More is granted than may be: the disk shrank. What was granted stays; nothing grows."""

    OVER_COMMITTED = true(
        "OverCommitted", "More is granted than the disk may give.", "Extend the disk, or move replicas away."
    )
    WITHIN_LIMIT = false("WithinLimit", "No more is granted than may be.")


class LowSpace(ConditionType):
    """Fewer bytes are free than the low-water mark: writes may fail soon."""

    LOW_SPACE = true(
        "LowSpace", "Less is free than the low-water mark.", "Free space, or extend the group or the thin pool."
    )
    ENOUGH_SPACE = false("EnoughSpace", "Enough is free.")


class Rejection(ReasonCodes):
    """Why a disk rejected an entry (``status.replicas[…].reason``). It stands while the same size is asked for."""

    NO_SPACE = false("NoSpace", "The disk has not got the room.", "Add space, or ask another disk.")
    TOO_MANY_ENTRIES = false("TooManyEntries", "The disk's ledger is full.", "Use another disk.")
    DISABLED = _disabled()
    CORDONED = _cordoned()
    KERNEL_STUCK = _kernel_stuck()
    UNHEALTHY = _unhealthy()
    INACTIVE = _inactive()
    DELETING = _deleting()
    LOW_SPACE = _low_space()
    DISK_NOT_FOUND = _disk_not_found()
    DISK_NOT_READY = _disk_not_ready()
    OVER_COMMITTED = false("OverCommitted", "More is granted already than may be.", "Extend the disk.")


class Kept(ReasonCodes):
    """Why a disk keeps bytes for an entry although fewer, or none, are asked for."""

    IN_USE = true("InUse", "Its logical volume is still that large: the bytes are in use until it is gone (M31).")

"""Conditions of a ReplicatedStoragePool."""

from __future__ import annotations

from quorate.api.conditions.declaration import ConditionType, false, true


class Ready(ConditionType):
    """The pool's volume groups exist and fit its type."""

    READY = true("Ready", "The pool can be used.")
    LVM_VOLUME_GROUP_NOT_FOUND = false(
        "LVMVolumeGroupNotFound",
        "A volume group of the pool does not exist.",
        "Create the LVMVolumeGroup that the message names, or take it out of spec.lvmVolumeGroups.",
    )
    INVALID_LVM_VOLUME_GROUP = false(
        "InvalidLVMVolumeGroup",
        "A volume group lacks the thin pool that this pool asks of it.",
        "Add the thin pool to the LVMVolumeGroup that the message names.",
    )
    INVALID_NODE_LABEL_SELECTOR = false(
        "InvalidNodeLabelSelector",
        "The node label selector cannot be used.",
        "Make a new pool with a correct selector: it is immutable.",
    )


class VolumeGroupsLeft(ConditionType):
    """Nothing of the pool is on a volume group that was taken out of it."""

    LEFT = true("Left", "Every copy is on a volume group of the pool.")
    LEAVING = false(
        "Leaving",
        "Copies are still on volume groups that were taken out of the pool.",
        "Wait: each is moved once its replacement is in sync. Where it does not go on, quorate explain VOLUME says why."
        " To keep a group after all, add it again.",
    )

"""Conditions of a ReplicatedStoragePool."""

from __future__ import annotations

from quorate.api.conditions.declaration import ConditionType, false, true


class Ready(ConditionType):
    """The pool's volume groups exist and fit its type."""

    READY = true("Ready", "The pool can be used.")
    LVM_VOLUME_GROUP_NOT_FOUND = false(
        "LVMVolumeGroupNotFound",
        "A volume group of the pool does not exist.",
        "Create the LVMVolumeGroup that the message names, or make a pool without it.",
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

"""Conditions of a longhorn Node, and of each disk in its inventory."""

from __future__ import annotations

from quorate.api.conditions.declaration import ConditionType, false, true, unknown


class Ready(ConditionType):
    """What the node, or the disk, has is known and can be used."""

    READY = true("Ready", "It can be used.")
    NO_DISKS = false("NoDisks", "The node has no disks.", "Create an LVMVolumeGroup on it.")
    VOLUME_GROUP_NOT_READY = false(
        "VolumeGroupNotReady", "The volume group or thin pool is not ready.", "See the LVMVolumeGroup."
    )
    AGENT_NOT_READY = unknown(
        "AgentNotReady",
        "The node's agent has not reported lately, so nothing is known.",
        "See the node, and the agent on it.",
    )

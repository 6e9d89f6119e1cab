"""Conditions of a longhorn Node; Ready is also one of each disk in its inventory."""

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


class Orphans(ConditionType):
    """The node has logical volumes or DRBD resources of ours that belong to no object. They are left as they are."""

    ORPHANS_FOUND = true(
        "OrphansFound",
        "Something of ours on the node belongs to no object; the message names each, and its volume.",
        "Find out whether its data are needed (its volume's objects may have been lost). If not:"
        " quorate orphan remove NODE/NAME.",
    )
    NO_ORPHANS = false("NoOrphans", "Nothing of ours is known to be on the node without an object.")
    NOT_REPORTED = unknown(
        "NotReported",
        "The node's agent has not said yet, since it started, whether there are any.",
        "If this lasts, see the agent's log: it cannot look at LVM.",
    )


class KernelStuck(ConditionType):
    """Commands hang in the node's kernel. It serves what it serves, and takes nothing new."""

    COMMANDS_HANG = true(
        "CommandsHang",
        "Commands hang in the kernel, where no signal reaches them; the message names them, and what waits for them.",
        "Drain the node, ask the broker (quorate maintenance request NODE), and reboot it: nothing else ends them."
        " The kernel log has why: a drive that does not answer, or DRBD.",
    )
    NOTHING_HANGS = false("NothingHangs", "No command is known to hang.")

"""Conditions of a ReplicatedVolumeReplica. All are composed by the controller, from what the agent reports."""

from __future__ import annotations

from quorate.api.conditions.declaration import ConditionType, Reason, false, true, unknown


def _agent_not_ready() -> Reason:
    """What is observed on a node counts only while its agent lives."""
    return unknown(
        "AgentNotReady",
        "The node's agent has not reported lately, or cannot look at its kernel, so nothing is known.",
        "See the node, and the agent on it.",
    )


class Scheduled(ConditionType):
    """A node and, if it needs one, a disk are chosen and the space is granted."""

    REPLICA_SCHEDULED = true("ReplicaScheduled", "Node and disk are chosen and the space is granted.")
    WAITING_FOR_ANOTHER_REPLICA = false("WaitingForAnotherReplica", "Another replica must find its place first.")
    WAITING_FOR_RESERVATION = false(
        "WaitingForReservation", "A disk has been asked for space and has not answered yet."
    )
    NO_AVAILABLE_NODES = false(
        "NoAvailableNodes",
        "No eligible node is ready and free of replicas of this volume.",
        "Bring nodes back or add some; `quorate explain` says why each fell out.",
    )
    TOPOLOGY_CONSTRAINTS_FAILED = false(
        "TopologyConstraintsFailed",
        "No zone that the topology allows has a node for it.",
        "Add nodes in the zones that the message names.",
    )
    NO_SPACE = false(
        "NoSpace",
        "No disk of a possible node has room for it.",
        "Add disks or free space; it is tried again as soon as a disk's free space changes.",
    )
    PUBLISH_NODE_UNAVAILABLE = false(
        "PublishNodeUnavailable",
        "Access is local only, and a node of publishOn cannot hold a replica with a disk.",
        "Publish on another node, or give that node space in the pool.",
    )
    STORAGE_POOL_NOT_READY = false(
        "StoragePoolNotReady", "The storage pool is not ready.", "See the pool: kubectl describe rsp."
    )
    WAITING_FOR_REPLICATED_VOLUME = unknown(
        "WaitingForReplicatedVolume", "The volume does not exist or has no configuration yet."
    )


class AddressConfigured(ConditionType):
    """The agent has chosen an address and a port."""

    ADDRESS_CONFIGURED = true("AddressConfigured", "The replica has an address.")
    WAITING_FOR_AGENT = false("WaitingForAgent", "The agent has not chosen an address yet.")
    NO_FREE_PORT_AVAILABLE = false(
        "NoFreePortAvailable",
        "All ports of the range are taken on the node.",
        "Widen minPort and maxPort in the ClusterConfig, or free ports on the node.",
    )
    NO_INTERNAL_IP = false(
        "NoInternalIP", "The node has no InternalIP address.", "See status.addresses of the core Node."
    )
    WRONG_LABEL = false(
        "WrongLabel",
        "Its label quorate.io/node and its nodeName say different nodes, so no agent acts on it.",
        "Delete it; the label cannot be changed. One made without that label gets it.",
    )


class BackingVolumeReady(ConditionType):
    """The logical volume exists at the needed size."""

    READY = true("Ready", "The logical volume is there.")
    NOT_APPLICABLE = true("NotApplicable", "This replica has no disk.")
    PENDING_SCHEDULING = false("PendingScheduling", "The disk is not chosen yet.")
    PROVISIONING = false("Provisioning", "The logical volume is being made.")
    PROVISIONING_FAILED = false(
        "ProvisioningFailed",
        "The logical volume could not be made.",
        "See the LVMLogicalVolume that the message names.",
    )
    LV_EXISTS = false(
        "LVExists",
        "A logical volume of that name is there already, and it is not ours to wipe.",
        "Look at what is on it; rename or remove it on the node by hand.",
    )
    DELETION_HELD = false(
        "DeletionHeld",
        "Somebody has deleted the logical volume of a member. It is kept, and serves as before.",
        "A deletion cannot be taken back: delete the ReplicatedVolumeReplica that the message names, and it is replaced"
        " in good order.",
    )
    RESIZING = false("Resizing", "The logical volume is being extended.")
    RESIZE_FAILED = false(
        "ResizeFailed", "The logical volume could not be extended.", "See the LVMLogicalVolume that the message names."
    )


class InitialSync(ConditionType):
    """The replica has been in sync once: its disk was UpToDate; diskless: its first adjust is done (M3)."""

    INITIAL_DEVICE_READINESS_REACHED = true("InitialDeviceReadinessReached", "The replica has been in sync.")
    SAFE_FOR_INITIAL_SYNC = false("SafeForInitialSync", "All members are connected; the first data may be given.")
    INITIAL_SYNC_REQUIRED_BUT_NOT_READY = false(
        "InitialSyncRequiredButNotReady", "The first data is still to be given, and not every member is connected."
    )


class DevicesReady(ConditionType):
    """The kernel has the device, in the intended kind."""

    DEVICE_IS_READY = true("DeviceIsReady", "The device is there.")
    DEVICE_IS_NOT_READY = false(
        "DeviceIsNotReady",
        "The device is not there, or has a disk where it should not, or the other way round.",
        "See ConfigurationAdjusted.",
    )
    AGENT_NOT_READY = _agent_not_ready()


class ConfigurationAdjusted(ConditionType):
    """The agent's last run succeeded."""

    CONFIGURATION_ADJUSTMENT_SUCCEEDED = true("ConfigurationAdjustmentSucceeded", "The agent's last run succeeded.")
    CONFIGURATION_FAILED = false(
        "ConfigurationFailed",
        "The configuration file was refused by drbdadm.",
        "The message has drbdadm's words; look for resources on the node that are not ours.",
    )
    METADATA_CHECK_FAILED = false(
        "MetadataCheckFailed", "The metadata on the disk could not be read.", "See the drive under the disk."
    )
    METADATA_CREATION_FAILED = false(
        "MetadataCreationFailed", "Metadata could not be written to the disk.", "See the drive under the disk."
    )
    METADATA_MISSING = false(
        "MetadataMissing",
        "The disk had metadata and has none now. It is left untouched.",
        "Find out what overwrote it; if its data is lost, remove the replica and let another take its place.",
    )
    METADATA_UNUSABLE = false(
        "MetadataUnusable",
        "The disk grew and lost its power before DRBD had written its activity log at the new end: it is not attached.",
        "It is replaced by itself while the other copies are good and serve. If none is, or this is the only one, see "
        "docs/operating.md, A disk whose metadata cannot be used.",
    )
    STATUS_CHECK_FAILED = false(
        "StatusCheckFailed", "The kernel's state could not be read.", "See the node's kernel log."
    )
    RESOURCE_UP_FAILED = false(
        "ResourceUpFailed", "The resource could not be brought up.", "See the node's kernel log."
    )
    RESOURCE_NOT_UP = unknown(
        "ResourceNotUp",
        "No command has failed, and the kernel has no such device: it is not up yet, or not any more.",
        "Wait for the agent; if it lasts, see BackingVolumeReady, and the agent's log on the node.",
    )
    CONFIGURATION_ADJUST_FAILED = false(
        "ConfigurationAdjustFailed", "The kernel refused a change of the configuration.", "The message has its words."
    )
    CONFIGURATION_ADJUSTMENT_PAUSED_UNTIL_INITIAL_SYNC = false(
        "ConfigurationAdjustmentPausedUntilInitialSync", "Nothing is changed before the first data is given."
    )
    PROMOTION_DEMOTION_FAILED = false(
        "PromotionDemotionFailed",
        "The role could not be changed.",
        "If the device is held open, stop the process that the message names.",
    )
    RESIZE_FAILED = false("ResizeFailed", "The device could not be resized.", "The message has the kernel's words.")
    UNSUPPORTED_ALGORITHM = false(
        "UnsupportedAlgorithm",
        "The kernel has not got the algorithm that members authenticate with.",
        "Load its module; otherwise the volume takes another algorithm by itself.",
    )
    AGENT_NOT_READY = _agent_not_ready()


class Configured(ConditionType):
    """Everything realised equals what is intended, and nothing failed."""

    CONFIGURED = true("Configured", "Everything is as intended.")
    NOT_APPLIED = false("NotApplied", "Not everything that is intended is realised yet.")
    COMMAND_FAILED = false("CommandFailed", "A command of the agent failed.", "The message has its words.")
    AGENT_NOT_READY = _agent_not_ready()


class DRBDConfigured(ConditionType):
    """Configured, at the datamesh's current revision."""

    CONFIGURED = true("Configured", "The kernel has the current revision.")
    PENDING_SCHEDULING = false("PendingScheduling", "Node and disk are not chosen yet.")
    WAITING_FOR_BACKING_VOLUME = false("WaitingForBackingVolume", "The logical volume is not ready yet.")
    PENDING_DATAMESH_JOIN = false("PendingDatameshJoin", "Ready to join: everything before membership is done.")
    APPLYING_CONFIGURATION = false("ApplyingConfiguration", "The agent has not shown the current revision yet.")
    CONFIGURATION_FAILED = false(
        "ConfigurationFailed", "The agent cannot realise the current revision.", "See ConfigurationAdjusted."
    )
    AGENT_NOT_READY = _agent_not_ready()


class Quorum(ConditionType):
    """The kernel says that this member is quorate."""

    QUORUM_STATUS = true("QuorumStatus", "The member is quorate.")
    NO_QUORUM_STATUS = false(
        "NoQuorumStatus",
        "The member sees too few others, and serves no I/O.",
        "Wait, if the volume is being formed; else bring the missing members or links back: FullyConnected names them.",
    )
    AGENT_NOT_READY = _agent_not_ready()


class InSync(ConditionType):
    """The replica's copy is up to date, or it has none to keep."""

    UP_TO_DATE = true("UpToDate", "The copy is up to date.")
    DISKLESS = true("Diskless", "The replica keeps no copy.")
    SYNCHRONIZING = false(
        "Synchronizing", "The copy is being brought up to date.", "Wait; the message has the percentage."
    )
    SYNC_STALLED = false(
        "SyncStalled", "The copy should be brought up to date, and nothing is copied.", "See DRBDMoving."
    )
    INCONSISTENT = false("Inconsistent", "The copy is not usable until it is synchronised.", "See FullyConnected.")
    OUTDATED = false(
        "Outdated", "The copy is of an earlier moment.", "See FullyConnected; it synchronises when connected."
    )
    DISK_FAILED = false(
        "DiskFailed", "The disk under the copy failed.", "See the Drive; a replacement is made elsewhere."
    )
    DISK_NOT_ATTACHED = false("DiskNotAttached", "The replica should have a disk, and the kernel has none attached.")
    STALE = false(
        "Stale",
        "DRBD calls the copy up to date, and members have bits against it: it lacks something that was acknowledged.",
        "Wait: it is compared and copied to. Do not reconnect, adjust or promote it by hand: that erases the trace.",
    )
    NOT_COMPARED = unknown(
        "NotCompared",
        "A primary lost quorum and went on: this copy may lack a write, until it has been compared with that primary.",
        "Wait for the comparison, which reads the whole volume.",
    )
    AGENT_NOT_READY = _agent_not_ready()


class DRBDMoving(ConditionType):
    """Nothing of the replica's DRBD stands still that should move; the agent has tried what is safe to try."""

    MOVING = true("Moving", "Nothing stands still that should move.")
    ATTACH_STALLED = false(
        "AttachStalled",
        "The disk is being attached for more than a minute.",
        "Wait: the agent takes the links down and up again, ever more rarely. If it lasts, or the replica is Primary,"
        " which is left alone: detach the volume from the node, then there: drbdadm down; it is brought up again.",
    )
    SYNC_STALLED = false(
        "SyncStalled",
        "A copy should be brought up to date, and nothing has been copied for a minute.",
        "Wait: the agent connects the links anew, one by one, ever more rarely. Where it may not (the member is"
        " Primary, somebody paused the resync) the message says so; then see the kernel logs of the nodes it names.",
    )
    LINK_STAND_ALONE = false(
        "LinkStandAlone",
        "The kernel does not even try to connect a link.",
        "Wait: the agent connects it, ever more rarely. If it lasts, the kernel logs of both nodes say why it was"
        " refused: settings that differ, or data that has parted (then see the volume's conditions).",
    )
    RECONNECT_LOOP = false(
        "ReconnectLoop",
        "A link is made and lost again many times a second.",
        "Wait: the agent has taken it down, and tries it once per pause, ever longer. If it lasts, see the kernel logs"
        " of both nodes.",
    )
    PORT_TAKEN = false(
        "PortTaken",
        "Another program listens on the replica's port.",
        "Wait: the agent chooses another port, and all peers are told. Keep other programs off the range:"
        " set net.ipv4.ip_local_reserved_ports on the node.",
    )
    COMMAND_HUNG = false(
        "CommandHung",
        "A command of the agent hangs in the kernel; nothing else is done to this replica until it ends.",
        "If it lasts, only a reboot of the node ends it: drain the node first. See KernelStuck of its disks.",
    )
    AGENT_NOT_READY = _agent_not_ready()


class DiskIOSuspended(ConditionType):
    """I/O on the device stands still."""

    DISK_IO_NOT_SUSPENDED_STATUS = false("DiskIONotSuspendedStatus", "I/O flows.")
    DISK_IO_SUSPENDED_UNKNOWN_REASON = true(
        "DiskIOSuspendedUnknownReason", "The kernel suspended I/O and does not say why.", "See the node's kernel log."
    )
    DISK_IO_SUSPENDED_BY_USER = true(
        "DiskIOSuspendedByUser", "Somebody suspended I/O by hand.", "On the node: drbdadm resume-io."
    )
    DISK_IO_SUSPENDED_FOR_COPIES = true(
        "DiskIOSuspendedForCopies",
        "The volume is used here without a disk, and fewer good copies are connected than every write is promised to"
        " be on: the agent holds I/O.",
        "Bring back the copies that the message names; the agent lets I/O go by itself then. Resumed by hand it is held"
        " again.",
    )
    DISK_IO_SUSPENDED_NO_DATA = true(
        "DiskIOSuspendedNoData", "No up-to-date copy can be reached.", "Bring a member with an up-to-date copy back."
    )
    DISK_IO_SUSPENDED_FENCING = true("DiskIOSuspendedFencing", "A peer is being fenced off.")
    DISK_IO_SUSPENDED_QUORUM = true(
        "DiskIOSuspendedQuorum",
        "Quorum is lost, or there is none yet.",
        "See Quorum. To reboot a node that uses it meanwhile: quorate node shutdown there first (docs/maintenance.md).",
    )
    IO_SUSPENDED_BY_SNAPSHOTTER = true("IOSuspendedBySnapshotter", "A snapshot is being taken.", "Wait.")
    AGENT_NOT_READY = _agent_not_ready()


class FullyConnected(ConditionType):
    """Every peer is Connected."""

    FULLY_CONNECTED = true("FullyConnected", "All peers are connected.")
    SOLE_MEMBER = true("SoleMember", "There is no peer.")
    PARTIALLY_CONNECTED = false(
        "PartiallyConnected",
        "Some peers are not connected.",
        "The message names them; see their nodes and the network.",
    )
    NOT_CONNECTED = false("NotConnected", "No peer is connected.", "See this node's network.")
    AGENT_NOT_READY = _agent_not_ready()


class Primary(ConditionType):
    """The device can be used on this node."""

    RESOURCE_ROLE_IS_PRIMARY = true("ResourceRoleIsPrimary", "The role is Primary.")
    RESOURCE_ROLE_IS_NOT_PRIMARY = false("ResourceRoleIsNotPrimary", "The role is not Primary.")
    AGENT_NOT_READY = _agent_not_ready()


class VolumeAccessReady(ConditionType):
    """The device is usable here and I/O flows. Only of diskful and access replicas."""

    VOLUME_ACCESS_READY = true("VolumeAccessReady", "The device is usable and I/O flows.")
    NOT_PUBLISHED = false("NotPublished", "The volume is not attached here.")
    NO_QUORUM = false("NoQuorum", "The member is not quorate.", "See Quorum.")
    IO_FAILS = false(
        "IOFails",
        "The node was overtaken while it was cut off, or demoted by force: what its users write fails until they have"
        " closed the device. A write that was in flight then may have been acknowledged and be on no copy, unless it"
        " was synced (fsync, O_DSYNC).",
        "Stop the users on that node; where they write directly and without syncing, compare their last write.",
    )
    IO_SUSPENDED_BY_UNKNOWN_REASON = false(
        "IOSuspendedByUnknownReason", "I/O stands still, and the kernel does not say why.", "See DiskIOSuspended."
    )
    IO_SUSPENDED_BY_USER = false("IOSuspendedByUser", "Somebody suspended I/O by hand.", "See DiskIOSuspended.")
    IO_SUSPENDED_FOR_COPIES = false(
        "IOSuspendedForCopies",
        "Fewer good copies are connected than every write is promised to be on: the agent holds I/O.",
        "See DiskIOSuspended.",
    )
    IO_SUSPENDED_BY_NO_DATA = false("IOSuspendedByNoData", "No up-to-date copy can be reached.", "See DiskIOSuspended.")
    IO_SUSPENDED_BY_FENCING = false("IOSuspendedByFencing", "A peer is being fenced off.", "See DiskIOSuspended.")
    IO_SUSPENDED_BY_QUORUM = false("IOSuspendedByQuorum", "I/O stands still: quorum is lost.", "See DiskIOSuspended.")
    IO_SUSPENDED_BY_SNAPSHOTTER = false("IOSuspendedBySnapshotter", "A snapshot is being taken.", "Wait.")
    AGENT_NOT_READY = _agent_not_ready()


class SatisfyEligibleNodes(ConditionType):
    """Node and disk are among those that the pool offers."""

    SATISFIED = true("Satisfied", "Node and disk are eligible.")
    NODE_MISMATCH = false(
        "NodeMismatch",
        "The node is not eligible any more.",
        "See status.eligibleNodes of the pool; the replica is moved.",
    )
    LVM_VOLUME_GROUP_MISMATCH = false("LVMVolumeGroupMismatch", "The disk does not belong to the pool.")
    THIN_POOL_MISMATCH = false("ThinPoolMismatch", "The thin pool does not belong to the pool.")
    PENDING_SCHEDULING = unknown("PendingScheduling", "Node and disk are not chosen yet.")
    WAITING_FOR_REPLICATED_VOLUME = unknown(
        "WaitingForReplicatedVolume", "The volume does not exist or has no configuration yet."
    )


class Ready(ConditionType):
    """Quorum, Scheduled, Configured and AddressConfigured are True, InSync is not False, I/O is not suspended."""

    READY = true("Ready", "The replica does what it should.")
    NOT_SCHEDULED = false("NotScheduled", "Node or disk is not chosen yet.", "See Scheduled.")
    ADDRESS_NOT_CONFIGURED = false("AddressNotConfigured", "The replica has no address yet.", "See AddressConfigured.")
    WAITING_FOR_INITIAL_SYNC = false(
        "WaitingForInitialSync", "The first data has not been given yet.", "See InitialSync."
    )
    DEVICES_ARE_NOT_READY = false("DevicesAreNotReady", "The device is not there.", "See DevicesReady.")
    ADJUSTMENT_FAILED = false("AdjustmentFailed", "The agent's last run failed.", "See ConfigurationAdjusted.")
    NOT_CONFIGURED = false("NotConfigured", "Not everything that is intended is realised yet.", "See Configured.")
    NO_QUORUM = false("NoQuorum", "The member is not quorate.", "See Quorum.")
    DISK_IO_SUSPENDED = false("DiskIOSuspended", "I/O stands still.", "See the condition DiskIOSuspended.")
    OUT_OF_SYNC = false("OutOfSync", "The copy is not up to date.", "See InSync.")
    TERMINATING = false(
        "Terminating", "The replica is being removed.", "The message says what is left and who holds it."
    )
    NODE_DOWN = false(
        "NodeDown",
        "The removal waits for a node that is down: only its agent can let go of what it has.",
        "Bring the node back; or, if it is gone for good, delete its Node object.",
    )
    AGENT_NOT_READY = _agent_not_ready()

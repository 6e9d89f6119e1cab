"""Conditions of a ReplicatedVolume."""

from __future__ import annotations

from quorate.api.conditions.declaration import ConditionType, false, true, unknown


class Ready(ConditionType):
    """QuorumConfigured, DiskfulReplicaCountReached, AllReplicasReady and SharedSecretAlgorithmSelected are all True.

    For people and ``kubectl wait``: no decision reads it (M23).
    """

    READY = true("Ready", "Every part of the volume is as promised.")
    FORMING = false("Forming", "The volume is being made.", "Wait; status.datameshTransitions shows the phase.")
    SHARED_SECRET_ALGORITHM_NOT_SELECTED = false(
        "SharedSecretAlgorithmNotSelected",
        "The members have no common algorithm to authenticate with.",
        "See SharedSecretAlgorithmSelected.",
    )
    DISKFUL_REPLICA_COUNT_NOT_REACHED = false(
        "DiskfulReplicaCountNotReached", "Replicas with a disk are missing.", "See DiskfulReplicaCountReached."
    )
    QUORUM_NOT_CONFIGURED = false(
        "QuorumNotConfigured", "The members do not hold the promised quorum yet.", "See QuorumConfigured."
    )
    REPLICAS_NOT_READY = false("ReplicasNotReady", "Some replicas are not ready.", "See AllReplicasReady.")
    TERMINATING = false(
        "Terminating", "The volume is being deleted.", "The message says what is left and who holds it."
    )
    NODE_DOWN = false(
        "NodeDown",
        "The deletion waits for a node that is down: only its agent can let go of what it has.",
        "Bring the node back; or, if it is gone for good, delete its Node object.",
    )


class QuorumConfigured(ConditionType):
    """Every member holds the promised quorum settings."""

    QUORUM_CONFIGURED = true("QuorumConfigured", "Every member holds the promised quorum settings.")
    FORMATION_IN_PROGRESS = false("FormationInProgress", "The volume is being made.")
    QUORUM_CHANGE_IN_PROGRESS = false(
        "QuorumChangeInProgress",
        "Quorum settings are being changed and not every member has confirmed them.",
        "Wait; the message names the members that have not.",
    )
    QUORUM_BELOW_PROMISE = false(
        "QuorumBelowPromise",
        "The promised redundancy cannot be demanded: too few members are up to date.",
        "Bring the missing members back, or wait for their replacements to synchronise.",
    )


class SharedSecretAlgorithmSelected(ConditionType):
    """All members support the algorithm they authenticate with."""

    ALGORITHM_SELECTED = true("AlgorithmSelected", "All members support the algorithm.")
    NOT_YET_SELECTED = unknown("NotYetSelected", "No member has tried the algorithm yet.")
    UNABLE_TO_SELECT_SHARED_SECRET_ALGORITHM = false(
        "UnableToSelectSharedSecretAlgorithm",
        "Some node's kernel supports none of the algorithms.",
        "Load the sha256 or sha1 module of the kernel on the node that the message names.",
    )


class PublishSucceeded(ConditionType):
    """The volume is Primary on every node of spec.publishOn, and on no other that nobody asks for."""

    PUBLISHED = true("Published", "The volume is usable on every node of publishOn.")
    NOTHING_TO_PUBLISH = true("NothingToPublish", "publishOn is empty.")
    PUBLISHING = false("Publishing", "The volume is being made usable.", "Wait; the message says for what.")
    PENDING = false(
        "Pending", "Other nodes came first and the volume can be on no more at once.", "Detach it elsewhere, or wait."
    )
    WAITING_FOR_REPLICA = false("WaitingForReplica", "The node has no replica that could serve yet.")
    UNABLE_TO_PROVIDE_LOCAL_VOLUME_ACCESS = false(
        "UnableToProvideLocalVolumeAccess",
        "The class allows only local access and the node has no replica with a disk.",
        "Publish on a node that has one, or use a class with another volumeAccess.",
    )
    NODE_NOT_ELIGIBLE = false(
        "NodeNotEligible", "The node is not among the pool's eligible nodes.", "See status.eligibleNodes of the pool."
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
    DEVICE_IN_USE = false(
        "DeviceInUse",
        "The device is held open, so it cannot be detached.",
        "Stop the process that the message names; if it waits for a write that stands still, detach by force.",
    )


class DiskfulReplicaCountReached(ConditionType):
    """The volume has as many replicas with a disk as its class promises."""

    COUNT_REACHED = true("CountReached", "All replicas with a disk are members.")
    FORMATION_IN_PROGRESS = false("FormationInProgress", "The volume is being made.")
    REPLICAS_MISSING = false("ReplicasMissing", "Replicas with a disk are missing and are being added.")
    WAITING_FOR_PLACE = false(
        "WaitingForPlace",
        "A replica is missing and there is no place for it.",
        "See the replica's Scheduled condition.",
    )
    NO_FREE_NODE_ID = false(
        "NoFreeNodeId", "The volume has eight members, which is all that DRBD has room for.", "Detach it somewhere."
    )


class AllReplicasReady(ConditionType):
    """Every replica that counts is Ready; the message names those that are to join."""

    ALL_REPLICAS_READY = true("AllReplicasReady", "Every replica that counts is ready.")
    REPLICAS_NOT_READY = false(
        "ReplicasNotReady", "Some replicas are not ready.", "The message names them; see their conditions."
    )
    NO_REPLICAS = false("NoReplicas", "There is no replica yet.")


class ConfigurationReady(ConditionType):
    """The volume lives by the present configuration of its class."""

    READY = true("Ready", "The configuration matches the class.")
    WAITING_FOR_STORAGE_CLASS = false(
        "WaitingForStorageClass",
        "The storage class does not exist or is not ready.",
        "See the class that spec.replicatedStorageClassName names: kubectl describe rsc.",
    )
    CONFIGURATION_ROLLOUT_IN_PROGRESS = false(
        "ConfigurationRolloutInProgress", "The volume is taking over the configuration of its class."
    )
    STALE_CONFIGURATION = false(
        "StaleConfiguration",
        "The class has changed since; this volume keeps the configuration it was made with.",
        "Nothing, or make a new volume of the class as it is now.",
    )


class DiskAllocation(ConditionType):
    """Every replica's space is granted, as the disks' ledgers say."""

    ALLOCATED = true("Allocated", "All space is granted.")
    PENDING = false("Pending", "Space is asked for and not yet granted.")
    REJECTED = false(
        "Rejected", "A disk refused the space.", "The message names disk and reason; add space, or another disk."
    )


class Resilient(ConditionType):
    """What the volume can survive from here is at least what its class promises."""

    RESILIENT = true("Resilient", "The volume can survive what its class promises.")
    FORMING = false("Forming", "The volume is being made.")
    DEGRADED = false(
        "Degraded",
        "One more loss may stop the volume, or lose redundancy that is promised.",
        "The message names the members that are missing; bring their nodes back, or wait for replacements.",
    )
    TRANSITION_IN_PROGRESS = false(
        "TransitionInProgress", "Members are being changed; until that is confirmed less can be survived.", "Wait."
    )
    STALE_COPY = false(
        "StaleCopy",
        "A copy that DRBD calls up to date lacks something that was acknowledged to users.",
        "Wait for the comparison. If the message asks for a word of yours, see docs/operating.md, 'A stale copy'.",
    )
    COPIES_NOT_COMPARED = false(
        "CopiesNotCompared",
        "A primary lost quorum and went on since: its peers may lack a write, and are compared with it.",
        "Wait for the comparison; the volume is promoted nowhere else before it is over.",
    )
    LOST_REPLICA_KEPT = false(
        "LostReplicaKept",
        "A lost replica is kept, because the class says removeLostReplica: false.",
        "Bring its node back, or delete the replica that the message names.",
    )
    STATUS_UNKNOWN = unknown("StatusUnknown", "No member has reported lately.", "See the agents on the volume's nodes.")


class DualPrimaryLinkLost(ConditionType):
    """The link of two primaries was cut, and the copies have not been compared since."""

    LINK_LOST = true(
        "LinkLost",
        "A link was lost while two nodes were writing; the younger one stands still.",
        "Repair the network; the younger one then comes back as a secondary.",
    )
    VERIFYING = true(
        "Verifying", "The copies are being compared with the older primary's.", "Wait; no second primary until then."
    )
    UNGUARDED = unknown(
        "Unguarded",
        "Two nodes use the volume, and the younger's agent, which cuts it off if their link is lost, is not heard.",
        "Bring that agent back; until then do not touch the network between the two, or detach one of them.",
    )
    COPIES_AGREE = false("CopiesAgree", "Nothing is open from an earlier cut.")


class StatusLost(ConditionType):
    """There are replicas with data and no record of them: nothing is created or deleted."""

    REPLICAS_WITH_DATA_FOUND = true(
        "ReplicasWithDataFound",
        "Replicas hold data, and the volume's own status is gone.",
        "Restore the status from a backup; or, if the data is not needed, delete the volume and make it anew.",
    )
    STATUS_PRESENT = false("StatusPresent", "The volume's status is there.")

"""Replicas: the members of a volume, each on its node.

**Purpose.** What becomes of ReplicatedVolumeReplicas. One pass sees all replicas of a volume.

    snapshot     what is looked at: the volume's picture, and which disks a drive's procedure keeps
    disk         the logical volume, from the granted space to the returned space (rvr-volume)
    lv_name      what that is called on the node
    membership   what a replica asks of the datamesh, and what its agent is told (rvr-status-config-*)
    leaving      whether one that is being deleted may let go of what it has (rvr-gc)
    holding      finalizers, and the owner (rvr-owner-reference)
    conditions   the table of 02, composed from what the snapshot shows (rvr-status-conditions)
    derived      addresses, peers, backing volume, size; ``phase`` the summary
    controller   all of it as one plan, with one status write for each replica

**Writes.** LVMLogicalVolumes (made, grown, deleted), its own key of a DiskSchedule (only withdrawn), of the replica its
finalizers, owner, and everything in status that is not its agent's. ``rvr.spec`` is written by
``quorate.volumes.volume``.
"""

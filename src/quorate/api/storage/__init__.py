"""``storage.deckhouse.io``: volumes, their replicas, and the disks they lie on.

A ReplicatedStorageClass promises; a ReplicatedStoragePool gives space. A ReplicatedVolume keeps a promise with
replicas (ReplicatedVolumeReplica), each on one node, the diskful ones on an LVMLogicalVolume of an LVMVolumeGroup.
Together they are the volume's datamesh, which is born by one DRBDResourceOperation and changes by transitions.
A ReplicatedVolumeAttachment asks for the volume on a node.
"""

from __future__ import annotations

from quorate.api.storage.drbdrop import DRBDResourceOperation
from quorate.api.storage.llv import LVMLogicalVolume
from quorate.api.storage.lvg import LVMVolumeGroup
from quorate.api.storage.rsc import ReplicatedStorageClass
from quorate.api.storage.rsp import ReplicatedStoragePool
from quorate.api.storage.rv import ReplicatedVolume
from quorate.api.storage.rva import ReplicatedVolumeAttachment
from quorate.api.storage.rvr import ReplicatedVolumeReplica

__all__ = [
    "DRBDResourceOperation",
    "LVMLogicalVolume",
    "LVMVolumeGroup",
    "ReplicatedStorageClass",
    "ReplicatedStoragePool",
    "ReplicatedVolume",
    "ReplicatedVolumeAttachment",
    "ReplicatedVolumeReplica",
]

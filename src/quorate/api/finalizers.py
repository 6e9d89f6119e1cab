"""Finalizers: who still has something to do before an object may go.

Forced removal strips those of controllers, never ``AGENT``: a kernel resource that nobody brings down is a leak.
"""

from __future__ import annotations

from typing import Final

_PREFIX: Final = "sds-replicated-volume.storage.deckhouse.io"

#: On RV while children are left; on RVA while its node is attached or detaching.
RV_CONTROLLER: Final = "sds-replicated-volume.deckhouse.io/rv-controller"
#: On RVR until it has left the datamesh and its volume is gone; on LLV while DRBD or a drive's procedure holds it; on
#: LVG while anything is in the group.
CONTROLLER: Final = f"{_PREFIX}/controller"
#: On RVR, a member: until the rest have confirmed the reduced quorum.
QUORUM: Final = f"{_PREFIX}/quorum"
#: On RVR, a member: until the rest have dropped and forgotten it.
PEERS: Final = f"{_PREFIX}/peers"
#: On RVR and LLV: until the node's agent has let go. Removed by a controller only if the core Node is gone.
AGENT: Final = f"{_PREFIX}/agent"
#: On DiskSchedule until its disk is gone; on BackingImage until its copies are deallocated.
LONGHORN: Final = "longhorn.io"
#: On csi-baremetal Volume until its drive has let go.
VOLUME_CLEANUP: Final = "dell.emc.csi/volume-cleanup"
#: On PermissionRequest, Permission and Notification until the broker has taken back what they stand for.
BROKER: Final = "maintenance.quorate.io/broker"

#: What a replica is created with: no window without them (M33).
OF_A_NEW_REPLICA: Final = (CONTROLLER, AGENT)
#: What a replica gets on becoming a member.
OF_A_MEMBER: Final = (QUORUM, PEERS)
#: What a logical volume is created with.
OF_A_NEW_LOGICAL_VOLUME: Final = (CONTROLLER, AGENT)

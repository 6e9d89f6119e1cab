"""Labels that mean something to us.

``NODE`` is immutable: agents watch by it. A CRD cannot say so, because of all metadata its rules are shown only the
name; it takes admission to refuse a change, in either engine.
"""

from __future__ import annotations

import hashlib
from typing import Final

#: The longest value of a label that Kubernetes takes.
_LONGEST: Final = 63
_DIGEST: Final = 8

#: The node whose agent acts on the object; set by its creator on RVR, LLV, LVG, DRBDResourceOperation and Drive.
NODE: Final = "quorate.io/node"
#: On RV: its class.
REPLICATED_STORAGE_CLASS: Final = "sds-replicated-volume.deckhouse.io/replicated-storage-class"
#: On RVR, RVA, LLV and DRBDResourceOperation: the volume they belong to.
REPLICATED_VOLUME: Final = "sds-replicated-volume.deckhouse.io/replicated-volume"
#: On LLV: the uid of the volume that it was made for, so that it is never taken for one of a later volume of that name.
VOLUME_UID: Final = "quorate.io/volume-uid"
#: On Secret, Role and RoleBinding: kept for the members of a volume ("drbd").
SHARED_SECRET: Final = "quorate.io/shared-secret"  # noqa: S105 - a label
#: On Secret: an invitation, by which somebody ("node") joins.
INVITATION: Final = "quorate.io/invitation"
#: On RVR and LLV: the volume group they lie on.
LVM_VOLUME_GROUP: Final = "sds-replicated-volume.deckhouse.io/lvm-volume-group"

#: On PermissionRequest and Notification: the broker made it, to show what was asked over another interface. Changing it
#: changes nothing.
PROJECTION: Final = "maintenance.quorate.io/projection"

#: On core Node: who made it. Where an agent did, the leader says whether it is Ready; elsewhere a kubelet does.
REGISTERED: Final = "quorate.io/registered-by"

# On core Node: where it stands, for spreading replicas and for limits.
ZONE: Final = "topology.kubernetes.io/zone"
TENANT: Final = "maintenance.quorate.io/tenant"
ROOM: Final = "maintenance.quorate.io/room"
RACK: Final = "maintenance.quorate.io/rack"


def value(name: str) -> str:
    """An object's name as the value of a label: shortened with a hash where a label could not hold it.

    So a label finds what belongs to an object, but does not always tell the object's name.
    """
    if len(name) <= _LONGEST:
        return name
    kept = name[: _LONGEST - _DIGEST - 1].rstrip("-.")
    return f"{kept}-{hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]}"

"""Annotations: what people and other operators say to us, and we to them, beside spec and status.

(Not ``annotations``: nearly every module has that name from ``__future__``.)
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

#: On core Node, "true": move every replica away. (``spec.unschedulable`` only bars new ones.)
EVACUATE: Final = "storage.deckhouse.io/evacuate"
#: On RV: the replica that a person wants removed by force; with ``ACCEPT_DATA_LOSS``. Removed when done.
FORCE_REMOVE: Final = "storage.deckhouse.io/force-remove"
#: On RV: the node that a person wants detached by force; with ``ACCEPT_DATA_LOSS``. Removed when done.
FORCE_DETACH: Final = "storage.deckhouse.io/force-detach"
#: On RV: the replica whose copy counts, where copies differ and nobody else can tell; with ``ACCEPT_DATA_LOSS``.
COMPARE_WITH: Final = "storage.deckhouse.io/compare-with"
#: On RV, "true": the person knows what force may cost.
ACCEPT_DATA_LOSS: Final = "storage.deckhouse.io/accept-data-loss"
#: On the DRBDResourceOperation that gives a volume its first data: when the formation began that it was made for.
FORMATION: Final = "quorate.io/formation"
#: On longhorn Node: the ids of orphans that a person wants removed, with commas between them. Removed when done.
REMOVE_ORPHANS: Final = "quorate.io/remove-orphans"
#: On LVG, present: takes nothing new.
UNSCHEDULABLE: Final = "sds-replicated-volume.deckhouse.io/unschedulable"

#: On core Node, Drive, RVR and RV: the number by which the broker knows it. Given once, never reused.
BROKER_ID: Final = "maintenance.quorate.io/id"
#: On core Node, Drive and RVR: the broker's marker, such as MARKER_DISK_FAULTY.
MARKER: Final = "maintenance.quorate.io/marker"
#: On Drive: what the broker's disk monitor thinks of it; the same values as of a marker.
MONITOR: Final = "maintenance.quorate.io/monitor"

#: On a PersistentVolumeClaim, "yes": an outside operator releases the volume.
RELEASE_SUPPORT: Final = "volumerelease.csi-baremetal/support"
#: On csi-baremetal Volume: health of the drives under it, in lower case.
VOLUME_HEALTH: Final = "volumehealth.csi-baremetal/health"
#: On csi-baremetal Volume: what the operator is to do, a ``Process``.
RELEASE_PROCESS: Final = "volumerelease.csi-baremetal/process"
#: On csi-baremetal Volume: how far the operator is, a ``Release``.
RELEASE: Final = "volumerelease.csi-baremetal/release"
#: On csi-baremetal Volume: percent recovered.
RELEASE_RECOVERY: Final = "volumerelease.csi-baremetal/recovery"
#: On csi-baremetal Volume: words about it.
RELEASE_STATUS: Final = "volumerelease.csi-baremetal/status"

#: On csi-baremetal Volume, by the drives controllers: the replica that takes the data over, once it may be copied.
MOVE_TO: Final = "drives.quorate.io/move-to"
#: On csi-baremetal Volume, by the same, "true": its drive gives nothing any more, and there is no other place for it.
COPY_LOST: Final = "drives.quorate.io/copy-lost"
#: On csi-baremetal Volume, by the same, "true": a person is ready for the removal, and what it stands for may go.
GIVEN_UP: Final = "drives.quorate.io/given-up"

# On Drive, by people. Both spellings are read; the first is ours.
DRIVE_REPLACEMENT: Final = ("driveremove.csi-baremetal/replacement", "replacement")
DRIVE_HEALTH: Final = ("driveremove.csi-baremetal/health", "health")


class Process(StrEnum):
    """Values of ``RELEASE_PROCESS``."""

    START = "start"
    PAUSE = "pause"
    STOP = "stop"


class Release(StrEnum):
    """Values of ``RELEASE``."""

    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"


class Replacement(StrEnum):
    """Values of ``DRIVE_REPLACEMENT``."""

    READY = "ready"
    RESTART = "restart"

"""Disks: what each node has, who may use how much of it, and images that are kept on it.

**Purpose.** A disk is a volume group's own space, or one of its thin pools. The DiskSchedule of a disk is the only gate
to its bytes: replicas, copies of images and their growth all pass it, from any number of controllers at once, and what
is granted never adds up to more than may be.

**Interactions.**

| object                               | read                              | written                              |
|--------------------------------------|-----------------------------------|--------------------------------------|
| LVMVolumeGroup                       | what its agent reports            | label of its node; condition Ready   |
| Node (longhorn)                      | what people allow                 | made where missing; all of status    |
| DiskSchedule                         | requests, one key per owner       | made, moved, removed; all of status  |
| BackingImage                         | what people ask for               | diskFileSpecMap, status, finalizer   |
| LVMLogicalVolume                     | whether bytes are in use          | those of images: made and deleted    |
| Drive, core Node, Lease              | health, cordon, freshness         |                                      |
| ClusterConfig; RV, RVR               | low-water mark; owners            |                                      |

**Algorithm.** ``inventory`` derives disks from groups (``space``) and judges each (``fitness``). ``schedules`` keeps a
ledger per disk where the disk is (``place``), and decides everything pending in one compare-and-swap write (``ledger``
has the rule). ``sweep`` takes back what nobody is left to give back. ``images`` keeps copies through the same gate.

**Conditions.** Of a disk and its ledger: Ready, Schedulable, OverCommitted, LowSpace; of each entry: its reason. See
``quorate.api.conditions.disks`` and ``inventory``.

**Watches.** Each module's controller names them at its end. A pass without news writes nothing and looks at no entry.

For owners in other packages (volumes): ``requests`` and ``expansion``, pure functions over DiskSchedules, with
``entries.replica(name)`` for whose request it is.
"""

from quorate.disks.images.controller import IMAGE_CONTROLLER
from quorate.disks.inventory import INVENTORY_CONTROLLER
from quorate.disks.schedules import SCHEDULE_CONTROLLER
from quorate.disks.sweep import SWEEP_CONTROLLER

CONTROLLERS = (INVENTORY_CONTROLLER, SCHEDULE_CONTROLLER, SWEEP_CONTROLLER, IMAGE_CONTROLLER)

__all__ = ["CONTROLLERS", "IMAGE_CONTROLLER", "INVENTORY_CONTROLLER", "SCHEDULE_CONTROLLER", "SWEEP_CONTROLLER"]

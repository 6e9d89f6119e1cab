"""Resize: a volume grows, online where that is safe. Never less: shrinking is refused at the door (02, Resize; M20).

Until its disks begin to grow (``status.growingTo``) what was asked for can be taken back.

    space    room on all disks, or on none (M13); ``replica`` tells the logical volumes their new size
    growth   ResizeVolume: one revision with the new size, when every disk has grown and all are connected
    verdicts what is said when a disk has no room

The order is what makes a loss of power at any moment harmless:

1. every disk's ledger grants the larger size; a disk that refuses returns the others' (nothing has changed);
2. ``status.growingTo`` says that it begins; each agent writes its old backing size ahead, grows its logical volume,
   and zeroes what is new where it must;
3. one revision says the new size; the member with the lowest id tells DRBD, ``--assume-clean`` where all new space is
   known to be zero, else by copying and only while nobody uses the volume;
4. what held DRBD's old metadata, [old usable size, old backing size), is now a part of the volume and differs from
   member to member: ``attach.comparison`` overwrites it with zeros, or compares it if somebody may have used it.

What DRBD shows is what counts, never an exit code. If a member is lost between 3 and its effect, the revision is taken
back: nothing else could happen to the volume meanwhile, and nobody must wait for who may never return.
"""

from quorate.volumes.resize.growth import begun, hindrance
from quorate.volumes.resize.space import reserve
from quorate.volumes.resize.verdicts import not_granted

__all__ = ["begun", "hindrance", "not_granted", "reserve"]

"""What a replica's logical volume is called on its node.

LVM allows 127 characters, and less: the device mapper joins the group's name and the volume's with a hyphen, doubles
every hyphen in both, adds a few characters for what lies beneath, and has 127 for all of that. Names that begin with
``snapshot`` or ``pvmove`` are LVM's own, so ours begin with ``replica-``, whatever the volume is called.
"""

from __future__ import annotations

import hashlib
from typing import Final

_PREFIX: Final = "replica-"
#: What the device mapper has for both names.
_MAPPED_LENGTH: Final = 127
#: Of that, what LVM may add for a hidden layer, such as ``-real`` or ``_tdata``.
_LAYER: Final = 8
_HASH: Final = 16


def name_on_the_node(logical_volume: str, volume_group: str) -> str:
    """The name of an LVMLogicalVolume's volume in a group, as the node calls both. The same always gives the same."""
    name = f"{_PREFIX}{logical_volume}"
    room = _MAPPED_LENGTH - _LAYER - 1 - _mapped(volume_group)
    if _mapped(name) <= room:
        return name
    # Too long to be told in full: as much of it as fits, and a hash of the whole.
    digest = hashlib.sha256(logical_volume.encode()).hexdigest()[:_HASH]
    kept = name[: max(len(_PREFIX), room)]
    while len(kept) > len(_PREFIX) and _mapped(kept) + 2 + _HASH > room:
        kept = kept[:-1]
    return f"{kept.rstrip('-.')}-{digest}"


def _mapped(name: str) -> int:
    return len(name) + name.count("-")

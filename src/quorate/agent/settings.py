"""Where an agent's files are, and how patient it is. Paths are the node's own, whatever the agent runs in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

IMAGE_DIRECTORY: Final = "/var/lib/quorate/images"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person may set per node."""

    #: The ``.res`` files. Not ``/etc/drbd.d``: nothing but the agent may bring these resources up, not even at boot.
    config_directory: str = "/var/lib/quorate/drbd.d"
    #: Where DRBD keeps what it knows of grown disks. It must outlive a reboot (recording grow_power_loss).
    drbd_state_directory: str = "/var/lib/drbd"
    #: The only files that logical volumes are filled from are beneath it.
    image_directory: str = IMAGE_DIRECTORY
    proc: str = "/proc"
    sys: str = "/sys"
    dev: str = "/dev"
    #: Seconds of silence after which a command counts as hung.
    silence: float = 10.0
    #: Commands at once.
    slots: int = 16
    #: Seconds after which everything is looked at again, although nothing should have been missed.
    look_again: float = 600.0

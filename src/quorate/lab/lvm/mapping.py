"""The beginning of a device as a device of its own: what device mapper's linear target makes of it, read only."""

from __future__ import annotations

from quorate.lab.kernel import BlockDevice

#: Who holds a device that is mapped: nobody else can have it for itself meanwhile.
HOLDER = "device-mapper"


class Mapping:
    """The first bytes of a device, while it is there."""

    def __init__(self, under: BlockDevice, size: int) -> None:
        self.device = BlockDevice(size)
        self.device.contents, self.device.metadata = under.contents, under.metadata
        self.device.failed = under.failed
        self._under = under
        under.holder = HOLDER

    def end(self) -> None:
        """Let go of what is under it."""
        self._under.holder = None

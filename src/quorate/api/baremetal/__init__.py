"""``csi-baremetal.dell.com``: drives, and what must leave a drive before it can be pulled.

Field names of ``spec`` are that project's own, capitals included. What it keeps in ``spec`` and changes as it goes
(health, usage) is in ``status`` here, so that what people write and what controllers write never meet.
"""

from __future__ import annotations

from quorate.api.baremetal.drive import Drive
from quorate.api.baremetal.volume import Volume

__all__ = ["Drive", "Volume"]

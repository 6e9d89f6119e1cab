"""The ``.res`` file of one member, from its complete config."""

from __future__ import annotations

from quorate.api.meta import NodeName, VolumeName
from quorate.api.storage.drbd import DrbdConfig


def missing(config: DrbdConfig) -> tuple[str, ...]:
    """The fields, by their wire names, that must be there before a file can be written; empty: complete."""
    raise NotImplementedError


def render(volume: VolumeName, node_name: NodeName, config: DrbdConfig) -> str:
    """The file for this node. The same config gives the same text. Raises UnwritableConfig."""
    raise NotImplementedError

"""``drbdsetup status --json``, read leniently."""

from __future__ import annotations

from quorate.api.storage.drbd import DrbdStatus


def parse_status(output: str | bytes) -> tuple[DrbdStatus, ...]:
    """Every resource that the output names, in its order. Raises UnreadableOutput and nothing else."""
    raise NotImplementedError

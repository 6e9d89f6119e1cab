"""What an agent says went wrong, in one line. Agents mask secrets before they report."""

from __future__ import annotations

from quorate.volumes.view import ReplicaView
from quorate.volumes.waits import shortened

_LIMIT = 160


def first_error(replica: ReplicaView) -> str:
    """The first of a replica's errors, with whose it is; "" if there is none."""
    errors = replica.replica.status.drbd.errors
    for error in (
        errors.last_config_error,
        errors.last_metadata_error,
        errors.shared_secret_alg_selection_error,
        errors.last_adjustment_error,
        errors.last_status_error,
    ):
        if error is not None:
            return shortened(f"{replica.name}: {error.reason or error.command}: {error.output}", _LIMIT)
    return ""

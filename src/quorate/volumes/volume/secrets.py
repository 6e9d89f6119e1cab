"""What the members authenticate to one another with (``rv-status-config-shared-secret-controller``).

The secret is made from the injected randomness when the members are first told of one another. The algorithms are
tried in order: a member whose kernel lacks one says so (``unsupportedAlg``, M19), and the next is written as a new
revision. That happens while a volume forms; later the members that are connected keep what they have.
"""

from __future__ import annotations

import string
from collections.abc import Iterable
from random import Random
from typing import Final

from quorate.api.conditions import Verdict
from quorate.api.conditions.rv import SharedSecretAlgorithmSelected
from quorate.api.scalars import ReplicaName
from quorate.api.secret import Secret
from quorate.api.storage.drbd import SharedSecretAlgorithm
from quorate.volumes.view import ReplicaView, VolumeView
from quorate.volumes.waits import ids

#: drbdadm takes up to 63 characters; so many of 62 sorts are 190 bits.
LENGTH: Final = 32
_ALPHABET: Final = string.ascii_letters + string.digits
ALGORITHMS: Final = tuple(SharedSecretAlgorithm)


def new_secret(random: Random) -> Secret:
    """One that nobody can guess, if the randomness is."""
    return Secret("".join(random.choice(_ALPHABET) for _ in range(LENGTH)))


def without(replicas: Iterable[ReplicaView], algorithm: SharedSecretAlgorithm) -> tuple[ReplicaName, ...]:
    """Replicas whose kernel has not got the algorithm, by the word of their agents."""
    return tuple(
        replica.name
        for replica in replicas
        if (error := replica.replica.status.drbd.errors.shared_secret_alg_selection_error) is not None
        and error.unsupported_alg == algorithm.value
    )


def next_algorithm(algorithm: SharedSecretAlgorithm) -> SharedSecretAlgorithm | None:
    """The one to try after it; None: the list has ended, and so do the attempts."""
    later = ALGORITHMS[ALGORITHMS.index(algorithm) + 1 :]
    return later[0] if later else None


def algorithm_selected(view: VolumeView) -> Verdict:
    """SharedSecretAlgorithmSelected."""
    algorithm = view.rv.status.drbd.config.shared_secret_alg if view.rv is not None else None
    if algorithm is None:
        return SharedSecretAlgorithmSelected.NOT_YET_SELECTED()
    lacking = without((each for each in view.replicas if each.member is not None), algorithm)
    if lacking:
        if next_algorithm(algorithm) is not None and view.forming:
            return SharedSecretAlgorithmSelected.NOT_YET_SELECTED(f"{algorithm} is not supported by {ids(lacking)}")
        return SharedSecretAlgorithmSelected.UNABLE_TO_SELECT_SHARED_SECRET_ALGORITHM(
            f"{', '.join(_where(view, name) for name in lacking)} supports none of {', '.join(ALGORITHMS)}"
            if view.forming
            else f"{', '.join(_where(view, name) for name in lacking)} does not support {algorithm}"
        )
    if all(replica.replica.status.datamesh_revision > 1 for replica in view.replicas if replica.member is not None):
        return SharedSecretAlgorithmSelected.ALGORITHM_SELECTED(f"all members use {algorithm}")
    return SharedSecretAlgorithmSelected.NOT_YET_SELECTED()


def _where(view: VolumeView, name: ReplicaName) -> str:
    replica = view.replica(name)
    return f"{name} on {replica.node_name}" if replica is not None else name

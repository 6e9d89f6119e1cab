"""The volume's own copy of its class's promise: taken once, kept for life (002, ``ensureRVConfiguration``).

``ConfigurationReady``:

| status | reason                         | when                                                        |
|--------|--------------------------------|-------------------------------------------------------------|
| True   | Ready                          | the copy is of the class's present generation, and its own  |
| False  | WaitingForStorageClass         | there is no such class, or it has no configuration          |
| False  | ConfigurationRolloutInProgress | the copy has not been taken yet                             |
| False  | StaleConfiguration             | the class has changed since, or the volume has been given   |
|        |                                | another one: existing volumes keep what they have           |

Generations of two classes say nothing of each other, so what was copied is compared as well. A formation that starts
again keeps the copy it has (M10).
"""

from __future__ import annotations

from quorate.api.conditions import Verdict
from quorate.api.conditions.rv import ConfigurationReady
from quorate.api.storage import ReplicatedStorageClass
from quorate.api.storage.rv import ReplicatedVolumeStatus
from quorate.api.struct import replace
from quorate.volumes.view import VolumeView
from quorate.volumes.waits import Blocker, Wait


def configured(status: ReplicatedVolumeStatus, rsc: ReplicatedStorageClass | None) -> ReplicatedVolumeStatus:
    """The status with the class's configuration, if it has none yet and the class is ready."""
    if status.configuration is not None or rsc is None or rsc.status.configuration is None:
        return status
    return replace(
        status,
        configuration=rsc.status.configuration,
        configuration_generation=rsc.status.configuration_generation,
    )


def waits_for_class(view: VolumeView) -> Wait | None:
    """Why the volume does not know yet what it promises; None: it does."""
    rv = view.volume
    if rv.status.configuration is not None:
        return None
    name = rv.spec.replicated_storage_class_name
    verdict = configuration_ready(rv.status, view.rsc, name)
    return Wait(verdict.reason, verdict.message, (Blocker(ReplicatedStorageClass.KIND.name, name),))


def configuration_ready(status: ReplicatedVolumeStatus, rsc: ReplicatedStorageClass | None, class_name: str) -> Verdict:
    """The condition, as the table has it."""
    if rsc is None:
        return ConfigurationReady.WAITING_FOR_STORAGE_CLASS(f"there is no ReplicatedStorageClass {class_name}")
    if rsc.status.configuration is None:
        said = f": {rsc.status.message}" if rsc.status.message else ""
        return ConfigurationReady.WAITING_FOR_STORAGE_CLASS(
            f"ReplicatedStorageClass {class_name} has no configuration yet{said}"
        )
    if status.configuration_generation == 0:
        return ConfigurationReady.CONFIGURATION_ROLLOUT_IN_PROGRESS()
    theirs, ours = rsc.status.configuration_generation, status.configuration_generation
    if theirs != ours:
        return ConfigurationReady.STALE_CONFIGURATION(
            f"the volume keeps generation {ours} of {class_name}, which is at {theirs} now"
        )
    if status.configuration != rsc.status.configuration:
        return ConfigurationReady.STALE_CONFIGURATION(
            f"the volume keeps the configuration of another class: it was made before it was given {class_name}"
        )
    return ConfigurationReady.READY()

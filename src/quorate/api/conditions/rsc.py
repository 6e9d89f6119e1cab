"""Conditions of a ReplicatedStorageClass."""

from __future__ import annotations

from quorate.api.conditions.declaration import ConditionType, false, true


class Ready(ConditionType):
    """Volumes of this class can be made."""

    READY = true("Ready", "Volumes of this class can be made.")
    WAITING_FOR_STORAGE_POOL = false(
        "WaitingForStoragePool",
        "The storage pool is not there or not ready.",
        "See the pool that spec.storagePool names: kubectl describe rsp.",
    )
    INSUFFICIENT_ELIGIBLE_NODES = false(
        "InsufficientEligibleNodes",
        "The pool has too few eligible nodes, or zones, for what this class promises.",
        "Add nodes or volume groups to the pool, or make a class with a lower replication.",
    )
    INVALID_CONFIGURATION = false(
        "InvalidConfiguration",
        "Replication, topology and zones of this class contradict one another.",
        "The message names the fields; make a new class, because they are immutable.",
    )


class StoragePoolReady(ConditionType):
    """The pool is ready; otherwise with the pool's own reason."""

    READY = true("Ready", "The storage pool is ready.")
    STORAGE_POOL_NOT_FOUND = false(
        "StoragePoolNotFound", "There is no ReplicatedStoragePool of that name.", "Create it."
    )
    PENDING = false("Pending", "The storage pool has not been looked at yet.")


class ConfigurationRolledOut(ConditionType):
    """Every volume of this class lives by its present configuration."""

    ROLLED_OUT_TO_ALL_VOLUMES = true("RolledOutToAllVolumes", "All volumes have the present configuration.")
    CONFIGURATION_ROLLOUT_DISABLED = false(
        "ConfigurationRolloutDisabled",
        "Some volumes keep an older configuration: this class changes new volumes only.",
        "Nothing, or replace those volumes; status.volumes.staleConfiguration counts them.",
    )

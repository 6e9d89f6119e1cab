"""Every field that the seeds and the designs name exists on the wire, under that name."""

from __future__ import annotations

import pytest

from quorate.api.kind import find_kind
from tests.api.paths import lookup

STORAGE, LONGHORN, BAREMETAL = "storage.deckhouse.io", "longhorn.io", "csi-baremetal.dell.com"
MAINTENANCE = "maintenance.quorate.io"

# (group, plural, where they come from, prefix, fields)
NAMED = [
    (STORAGE, "replicatedvolumes", "000", "spec", "size replicatedStorageClassName publishOn[]"),
    (STORAGE, "replicatedvolumes", "000", "status", "conditions publishedOn[] actualSize phase"),
    (
        STORAGE,
        "replicatedvolumes",
        "000, 01",
        "status.drbd.config",
        "sharedSecret sharedSecretAlg quorum quorumMinimumRedundancy allowTwoPrimaries deviceMinor",
    ),
    (
        STORAGE,
        "replicatedvolumes",
        "002, 01",
        "status",
        (
            "datameshRevision datamesh.members[] datamesh.size datamesh.systemNetworkNames datameshTransitions[].type"
            " datameshTransitions[].steps[].datameshRevision datameshTransitions[].formation.phase"
            " datameshTransitions[].message datameshTransitions[].startedAt configuration.replication"
            " configurationGeneration datameshPendingReplicaTransitions[].name"
            " datameshPendingReplicaTransitions[].message datameshPendingReplicaTransitions[].transition"
            " datameshPendingReplicaTransitions[].firstObservedAt"
        ),
    ),
    (
        STORAGE,
        "replicatedvolumes",
        "02",
        "status",
        (
            "attachRequests[].nodeName attachRequests[].since attachRequests[].source"
            " configuration.failuresToTolerate configuration.guaranteedMinimumDataRedundancy"
            " effectiveLayout.failuresToTolerate effectiveLayout.guaranteedMinimumDataRedundancy"
        ),
    ),
    (
        STORAGE,
        "replicatedvolumes",
        "002 phase 2",
        "status.datamesh.members[]",
        "name zone addresses[].systemNetworkName addresses[].address.ipv4 lvmVolumeGroupName attached hidden",
    ),
    (STORAGE, "replicatedvolumereplicas", "000", "spec", "replicatedVolumeName nodeName type"),
    (STORAGE, "replicatedvolumereplicas", "01 Names", "spec", "lvmVolumeGroupName lvmVolumeGroupThinPoolName"),
    (STORAGE, "replicatedvolumereplicas", "000", "status", "conditions actualType lvmLogicalVolumeName"),
    (
        STORAGE,
        "replicatedvolumereplicas",
        "002, 01",
        "status",
        (
            "datameshRevision datameshPendingTransition.member datameshPendingTransition.type addresses[] peers[].name"
            " backingVolume.size backingVolume.state size"
        ),
    ),
    (
        STORAGE,
        "replicatedvolumereplicas",
        "000, 01",
        "status.drbd.config",
        (
            "datameshRevision nodeId deviceMinor sharedSecret sharedSecretAlg quorum quorumMinimumRedundancy"
            " allowTwoPrimaries primary disk peersInitialized address.ipv4 address.port hidden down forget[] yields"
            " peers[].name peers[].nodeName peers[].nodeId peers[].type peers[].address.ipv4 peers[].hidden"
        ),
    ),
    (
        STORAGE,
        "replicatedvolumereplicas",
        "000, 01, 02",
        "status.drbd.actual",
        "disk allowTwoPrimaries initialSyncCompleted metadataCreated backingSize forgotten[]",
    ),
    (
        STORAGE,
        "replicatedvolumereplicas",
        "000",
        "status.drbd.status",
        (
            "name nodeId role suspended suspendedUser suspendedNoData suspendedFencing suspendedQuorum forceIOFailures"
            " writeOrdering"
        ),
    ),
    (
        STORAGE,
        "replicatedvolumereplicas",
        "000",
        "status.drbd.status.devices[]",
        "volume minor diskState client open quorum size read written alWrites bmWrites upperPending lowerPending",
    ),
    (
        STORAGE,
        "replicatedvolumereplicas",
        "000",
        "status.drbd.status.connections[]",
        (
            "peerNodeId name connectionState congested peerRole tls apInFlight rsInFlight paths[].thisHost.address"
            " paths[].thisHost.port paths[].thisHost.family paths[].remoteHost.address paths[].remoteHost.port"
            " paths[].remoteHost.family paths[].established"
        ),
    ),
    (
        STORAGE,
        "replicatedvolumereplicas",
        "000",
        "status.drbd.status.connections[].peerDevices[]",
        (
            "volume replicationState peerDiskState peerClient resyncSuspended outOfSync pending unacked hasSyncDetails"
            " hasOnlineVerifyDetails percentInSync"
        ),
    ),
    *(
        (STORAGE, "replicatedvolumereplicas", "000, 01", f"status.drbd.errors.{name}", "command exitCode output")
        for name in (
            "lastAdjustmentError",
            "lastPromotionError",
            "lastResizeError",
            "lastConfigError",
            "lastMetadataError",
            "lastStatusError",
            "sharedSecretAlgSelectionError",
        )
    ),
    (STORAGE, "replicatedvolumeattachments", "002", "", "spec.replicatedVolumeName spec.nodeName status.conditions"),
    (
        STORAGE,
        "drbdresourceoperations",
        "002, 01",
        "",
        (
            "spec.nodeName spec.drbdResourceName spec.type spec.createNewUUID.clearBitmap"
            " spec.createNewUUID.forceResync status.phase status.message status.startedAt status.completedAt"
        ),
    ),
    (
        STORAGE,
        "replicatedstorageclasses",
        "000, 02",
        "",
        (
            "spec.storagePool spec.replication spec.topology spec.zones[] spec.volumeAccess"
            " spec.eligibleNodesPolicy.notReadyGracePeriod spec.eligibleNodesPolicy.removeLostReplica"
            " status.configuration status.configurationGeneration"
        ),
    ),
    (
        STORAGE,
        "replicatedstoragepools",
        "000, 002",
        "",
        (
            "spec.type spec.lvmVolumeGroups[].name spec.lvmVolumeGroups[].thinPoolName status.eligibleNodes[].nodeName"
            " status.eligibleNodes[].zoneName status.eligibleNodes[].lvmVolumeGroups[].ready"
            " status.eligibleNodes[].nodeReady status.eligibleNodes[].agentReady status.eligibleNodes[].unschedulable"
        ),
    ),
    (
        STORAGE,
        "lvmvolumegroups",
        "01, 03",
        "",
        (
            "spec.actualVGNameOnTheNode spec.local.nodeName spec.deviceSelector spec.thinPools[].allocationLimit"
            " status.vgSize status.vgFree status.thinPools[].name status.devices[].path status.devices[].driveUUID"
            " status.devices[].size"
        ),
    ),
    (
        STORAGE,
        "lvmlogicalvolumes",
        "01",
        "",
        (
            "spec.actualLVNameOnTheNode spec.type spec.size spec.lvmVolumeGroupName spec.thin.poolName status.phase"
            " status.actualSize status.reason"
        ),
    ),
    (LONGHORN, "diskschedules", "003", "spec", "name nodeID replicas{} backingImages{}"),
    (
        LONGHORN,
        "diskschedules",
        "003",
        "status",
        (
            "replicas{}.state replicas{}.scheduledSize backingImages{}.state backingImages{}.scheduledSize"
            " storageScheduled conditions"
        ),
    ),
    (
        LONGHORN,
        "diskschedules",
        "M30",
        "status",
        "replicas{}.requestedSize replicas{}.reason replicas{}.message backingImages{}.requestedSize",
    ),
    (
        LONGHORN,
        "nodes",
        "003, 03",
        "",
        (
            "spec.disks{}.allowScheduling spec.disks{}.storageReserved spec.disks{}.tags[] status.diskStatus{}.diskUUID"
            " status.diskStatus{}.storageMaximum status.diskStatus{}.storageAvailable"
            " status.diskStatus{}.storageScheduled status.diskStatus{}.storageFree"
        ),
    ),
    (
        LONGHORN,
        "backingimages",
        "003, 03",
        "",
        "spec.minNumberOfCopies spec.sourcePath spec.checksum spec.diskFileSpecMap{} status.diskFileStatusMap{}",
    ),
    (
        BAREMETAL,
        "drives",
        "004, 03",
        "",
        (
            "spec.UUID spec.SerialNumber spec.VID spec.PID spec.Path spec.NodeId spec.Size spec.Type spec.Slot"
            " spec.IsSystem spec.IsClean status.health status.operationalStatus status.conditions"
        ),
    ),
    (BAREMETAL, "volumes", "004, 03", "", "spec.Id spec.Location spec.NodeId status.health"),
    (
        MAINTENANCE,
        "permissionrequests",
        "001 TPermissionRequest",
        "spec",
        (
            "user actions[].type actions[].host actions[].services[] actions[].devices[] actions[].duration"
            " partialPermissionAllowed schedule dryRun reason duration tenantPolicy availabilityMode priority"
        ),
    ),
    (
        MAINTENANCE,
        "permissionrequests",
        "001 TPermissionResponse, 04",
        "status",
        (
            "id code message permissions[] deadline refused[].issue.type refused[].issue.blockers[].object"
            " refused[].issue.blockers[].lock refused[].issue.blockers[].id refused[].issue.blockers[].owner"
            " refused[].issue.blockers[].until"
        ),
    ),
    (MAINTENANCE, "permissions", "001 TPermission", "", "spec.user spec.action.type status.id status.deadline"),
    (MAINTENANCE, "notifications", "001 TNotification", "", "spec.user spec.actions[] spec.time spec.reason status.id"),
    (
        MAINTENANCE,
        "walletasks",
        "001 Wall-E",
        "",
        "spec.taskId spec.type spec.issuer spec.action spec.hosts[] status.status status.requestId",
    ),
    (
        MAINTENANCE,
        "brokerconfigs",
        "001 TMonitorConfig, facts 1.9",
        "spec",
        (
            "defaultRetryTime defaultPermissionDuration tenantLimits.disabledNodesLimit"
            " clusterLimits.disabledNodesRatioLimit monitorConfig.enableAutoUpdates monitorConfig.updateInterval"
            " monitorConfig.ignoredDowntimeGap monitorConfig.brokenTimeout monitorConfig.brokenPrepTimeout"
            " monitorConfig.faultyPrepTimeout logConfig.ttl"
        ),
    ),
    (MAINTENANCE, "brokerledgers", "04", "status", "epoch counters.requests counters.permissions contents"),
    (
        MAINTENANCE,
        "downtimes",
        "001 TDowntime",
        "",
        "spec.kind spec.name status.segments[].start status.segments[].end",
    ),
    (
        MAINTENANCE,
        "logrecords",
        "001 TLogRecord",
        "status",
        "entries[].timestamp entries[].recordType entries[].message entries[].data",
    ),
    (
        "quorate.io",
        "clusterconfigs",
        "00",
        "spec",
        (
            "drbd.minPort drbd.maxPort drbd.maxPeers gracePeriods.nodeNotReady gracePeriods.driveMissing"
            " timeouts.preconfigure timeouts.establishConnectivity timeouts.bootstrapData drain.maxMoves"
        ),
    ),
]


@pytest.mark.parametrize(
    ("group", "plural", "prefix", "field"),
    [
        pytest.param(group, plural, prefix, field, id=f"{source}: {plural} {prefix}.{field}")
        for group, plural, source, prefix, fields in NAMED
        for field in fields.split()
    ],
)
def test_a_named_field_exists(group: str, plural: str, prefix: str, field: str) -> None:
    kind = find_kind(group, plural)
    assert kind is not None
    assert lookup(kind, f"{prefix}.{field}".strip(".")) is not None


def enum(group: str, plural: str, path: str) -> set[str]:
    kind = find_kind(group, plural)
    assert kind is not None
    schema = lookup(kind, path)
    assert schema is not None
    return set(schema["enum"])


@pytest.mark.parametrize(
    ("group", "plural", "path", "values"),
    [
        (STORAGE, "replicatedvolumes", "status.phase", "Terminating Synchronizing Ready Forming Degraded"),
        (
            STORAGE,
            "replicatedvolumes",
            "status.datameshTransitions[].formation.phase",
            "Preconfigure EstablishConnectivity BootstrapData Restarting",
        ),
        (STORAGE, "replicatedvolumereplicas", "spec.type", "Diskful Access TieBreaker"),
        (STORAGE, "replicatedvolumereplicas", "status.actualType", "Diskful Access TieBreaker"),
        (STORAGE, "replicatedvolumes", "status.drbd.config.sharedSecretAlg", "sha256 sha1"),
        (
            STORAGE,
            "replicatedstorageclasses",
            "spec.replication",
            "None Availability Consistency ConsistencyAndAvailability",
        ),
        (LONGHORN, "diskschedules", "status.replicas{}.state", "scheduled rejected"),
        (BAREMETAL, "drives", "status.health", "GOOD SUSPECT BAD UNKNOWN"),
        (
            BAREMETAL,
            "drives",
            "status.operationalStatus",
            "OPERATIVE RELEASING RELEASED FAILED REMOVING REMOVED",
        ),
        (
            MAINTENANCE,
            "permissionrequests",
            "spec.availabilityMode",
            "MODE_MAX_AVAILABILITY MODE_KEEP_AVAILABLE MODE_FORCE_RESTART",
        ),
        (
            MAINTENANCE,
            "permissionrequests",
            "spec.actions[].type",
            (
                "START_SERVICES RESTART_SERVICES STOP_SERVICES ADD_HOST SHUTDOWN_HOST DECOMMISSION_HOST ADD_DEVICES"
                " REPLACE_DEVICES REMOVE_DEVICES"
            ),
        ),
        (
            MAINTENANCE,
            "permissionrequests",
            "status.code",
            (
                "OK ALLOW ALLOW_PARTIAL DISALLOW DISALLOW_TEMP WRONG_REQUEST ERROR ERROR_TEMP UNAUTHORIZED NO_SUCH_HOST"
                " NO_SUCH_DEVICE NO_SUCH_SERVICE"
            ),
        ),
        (STORAGE, "drbdresourceoperations", "status.phase", "Pending Running Succeeded Failed"),
    ],
)
def test_an_enumeration_has_the_values_that_are_named(group: str, plural: str, path: str, values: str) -> None:
    assert enum(group, plural, path) == set(values.split())


def test_m7_both_words_for_no_topology_are_accepted() -> None:
    assert {"Any", "Ignored"} < enum(STORAGE, "replicatedstorageclasses", "spec.topology")


def test_m18_a_node_id_is_zero_to_seven() -> None:
    kind = find_kind(STORAGE, "replicatedvolumereplicas")
    assert kind is not None
    schema = lookup(kind, "status.drbd.config.nodeId")
    assert schema is not None
    assert (schema["minimum"], schema["maximum"]) == (0, 7)


def test_m19_an_unsupported_algorithm_is_reported_beside_the_command() -> None:
    kind = find_kind(STORAGE, "replicatedvolumereplicas")
    assert kind is not None
    assert lookup(kind, "status.drbd.errors.sharedSecretAlgSelectionError.unsupportedAlg") is not None


@pytest.mark.parametrize("path", ["status.drbd.initialSyncCompleted", "status.nodeId", "status.address"])
def test_m28_the_seeds_shortened_paths_are_not_fields(path: str) -> None:
    kind = find_kind(STORAGE, "replicatedvolumereplicas")
    assert kind is not None
    assert lookup(kind, path) is None

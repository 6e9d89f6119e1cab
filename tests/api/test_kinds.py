"""The kinds are those of the contract's table, and carry the names that it gives them."""

from __future__ import annotations

import pytest

from quorate.api import annotation_keys as keys
from quorate.api import finalizers, labels
from quorate.api.kind import Kind, all_kinds, find_kind
from tests.api.paths import lookup

# group/version, plural, short name, scope
CONTRACT = """
storage.deckhouse.io/v1alpha1   replicatedstorageclasses     rsc      Cluster
storage.deckhouse.io/v1alpha1   replicatedstoragepools       rsp      Cluster
storage.deckhouse.io/v1alpha1   replicatedvolumes            rv       Cluster
storage.deckhouse.io/v1alpha1   replicatedvolumereplicas     rvr      Cluster
storage.deckhouse.io/v1alpha1   replicatedvolumeattachments  rva      Cluster
storage.deckhouse.io/v1alpha1   drbdresourceoperations       drbdrop  Cluster
storage.deckhouse.io/v1alpha1   lvmvolumegroups              lvg      Cluster
storage.deckhouse.io/v1alpha1   lvmlogicalvolumes            llv      Cluster
longhorn.io/v1beta2             nodes                        lhn      Namespaced
longhorn.io/v1beta2             diskschedules                lhds     Namespaced
longhorn.io/v1beta2             backingimages                lhbi     Namespaced
csi-baremetal.dell.com/v1       drives                       -        Cluster
csi-baremetal.dell.com/v1       volumes                      -        Namespaced
maintenance.quorate.io/v1alpha1 brokerledgers                -        Cluster
maintenance.quorate.io/v1alpha1 permissionrequests           pr       Cluster
maintenance.quorate.io/v1alpha1 permissions                  -        Cluster
maintenance.quorate.io/v1alpha1 notifications                -        Cluster
maintenance.quorate.io/v1alpha1 walletasks                   -        Cluster
maintenance.quorate.io/v1alpha1 brokerconfigs                -        Cluster
maintenance.quorate.io/v1alpha1 downtimes                    -        Cluster
maintenance.quorate.io/v1alpha1 logrecords                   -        Cluster
quorate.io/v1alpha1             clusterconfigs               -        Cluster
v1                              nodes                        no       Cluster
v1                              events                       ev       Namespaced
v1                              namespaces                   ns       Cluster
v1                              persistentvolumeclaims       pvc      Namespaced
coordination.k8s.io/v1          leases                       -        Namespaced
v1                              secrets                      -        Namespaced
rbac.authorization.k8s.io/v1    roles                        -        Namespaced
rbac.authorization.k8s.io/v1    rolebindings                 -        Namespaced
"""
ROWS = [tuple(line.split()) for line in CONTRACT.strip().splitlines()]
OURS = [kind for kind in all_kinds() if kind.crd and kind.type.__module__.startswith("quorate.api.")]


@pytest.mark.parametrize(("api_version", "plural", "short_name", "scope"), ROWS)
def test_a_kind_of_the_contract_is_declared(api_version: str, plural: str, short_name: str, scope: str) -> None:
    group = api_version.rpartition("/")[0]
    kind = find_kind(group, plural)
    assert kind is not None
    assert kind.api_version == api_version
    assert kind.scope == scope
    assert kind.short_names == (() if short_name == "-" else (short_name,))
    assert kind.crd == (group not in ("", "coordination.k8s.io", "rbac.authorization.k8s.io"))


def test_no_kind_is_declared_beside_the_contract() -> None:
    declared = {
        (kind.api_version, kind.plural) for kind in all_kinds() if kind.type.__module__.startswith("quorate.api.")
    }
    assert declared == {(row[0], row[1]) for row in ROWS}


@pytest.mark.parametrize("kind", OURS, ids=repr)
def test_every_kind_can_be_listed_with_all_others_and_has_a_status(kind: Kind) -> None:
    assert "quorate" in kind.categories
    assert kind.status_subresource
    assert lookup(kind, "status") is not None
    assert kind.columns[-1].name == "Age"
    assert len(kind.columns) > 1


def test_short_names_are_unique() -> None:
    names = [name for kind in all_kinds() for name in kind.short_names]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("kind", OURS, ids=repr)
def test_conditions_are_a_map_by_type_with_the_generation_they_are_of(kind: Kind) -> None:
    conditions = lookup(kind, "status.conditions")
    if conditions is None:
        # What an agent or the broker writes by itself has phases or codes: an agent writes no conditions.
        assert kind.name in {
            "BrokerLedger",
            "DRBDResourceOperation",
            "Downtime",
            "LVMLogicalVolume",
            "LogRecord",
            "Permission",
            "WalleTask",
        }
    else:
        assert conditions["x-kubernetes-list-map-keys"] == ["type"]
        assert "observedGeneration" in conditions["items"]["properties"]
        assert lookup(kind, "status.observedGeneration") is not None


def test_finalizers_are_spelled_as_in_the_contract() -> None:
    prefix = "sds-replicated-volume.storage.deckhouse.io/"
    assert finalizers.RV_CONTROLLER == "sds-replicated-volume.deckhouse.io/rv-controller"
    assert prefix + "controller" == finalizers.CONTROLLER
    assert prefix + "quorum" == finalizers.QUORUM
    assert prefix + "peers" == finalizers.PEERS
    assert prefix + "agent" == finalizers.AGENT
    assert finalizers.LONGHORN == "longhorn.io"
    assert finalizers.VOLUME_CLEANUP == "dell.emc.csi/volume-cleanup"


def test_m33_agent_and_controller_hold_a_replica_from_its_creation() -> None:
    assert set(finalizers.OF_A_NEW_REPLICA) == {finalizers.CONTROLLER, finalizers.AGENT}


def test_labels_and_annotations_are_spelled_as_in_the_designs() -> None:
    assert labels.NODE == "quorate.io/node"
    assert labels.REPLICATED_STORAGE_CLASS == "sds-replicated-volume.deckhouse.io/replicated-storage-class"
    assert tuple(f"maintenance.quorate.io/{name}" for name in ("tenant", "room", "rack")) == (
        labels.TENANT,
        labels.ROOM,
        labels.RACK,
    )
    assert labels.ZONE == "topology.kubernetes.io/zone"
    assert keys.EVACUATE == "storage.deckhouse.io/evacuate"
    assert keys.FORCE_REMOVE == "storage.deckhouse.io/force-remove"
    assert keys.FORCE_DETACH == "storage.deckhouse.io/force-detach"
    assert keys.ACCEPT_DATA_LOSS == "storage.deckhouse.io/accept-data-loss"
    assert keys.BROKER_ID == "maintenance.quorate.io/id"
    assert keys.RELEASE_SUPPORT == "volumerelease.csi-baremetal/support"
    assert keys.VOLUME_HEALTH == "volumehealth.csi-baremetal/health"
    assert keys.RELEASE_PROCESS == "volumerelease.csi-baremetal/process"
    assert keys.RELEASE == "volumerelease.csi-baremetal/release"
    assert keys.RELEASE_RECOVERY == "volumerelease.csi-baremetal/recovery"
    assert keys.RELEASE_STATUS == "volumerelease.csi-baremetal/status"


def test_what_people_say_of_a_drive_is_read_bare_and_with_its_prefix() -> None:
    assert keys.DRIVE_REPLACEMENT == ("driveremove.csi-baremetal/replacement", "replacement")
    assert keys.DRIVE_HEALTH == ("driveremove.csi-baremetal/health", "health")

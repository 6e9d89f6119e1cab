"""What each kind's rules refuse, and what they let through. The same table is what an API server was shown by hand."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.api.kind import Kind, all_kinds, find_kind
from quorate.api.schema import structural_schema
from tests.api.rules import messages

STORAGE, LONGHORN, MAINTENANCE = "storage.deckhouse.io", "longhorn.io", "maintenance.quorate.io"


def kind_of(group: str, plural: str) -> Kind:
    kind = find_kind(group, plural)
    assert kind is not None
    return kind


def thing(name: str, /, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


def volume(name: str = "v", /, **spec: Any) -> dict[str, Any]:
    return thing(name, **{"size": "10Gi", "replicatedStorageClassName": "c"} | spec)


def asked(size: str, has: str, growing_to: str | None = None) -> dict[str, Any]:
    """A volume that has one size, and is to have another."""
    growth = {} if growing_to is None else {"growingTo": growing_to}
    return volume(size=size) | {"status": {"datamesh": {"size": has}, **growth}}


def replica(name: str = "v-0", /, **spec: Any) -> dict[str, Any]:
    return thing(name, **{"replicatedVolumeName": "v", "type": "Diskful"} | spec)


def storage_class(**spec: Any) -> dict[str, Any]:
    return thing("c", **{"storagePool": "p"} | spec)


def pool(**spec: Any) -> dict[str, Any]:
    return thing("p", **{"type": "LVM", "lvmVolumeGroups": [{"name": "a"}]} | spec)


def logical_volume(**spec: Any) -> dict[str, Any]:
    return thing(
        "v-0-x", **{"actualLVNameOnTheNode": "v", "type": "Thick", "size": "1Gi", "lvmVolumeGroupName": "g"} | spec
    )


def volume_group(**spec: Any) -> dict[str, Any]:
    return thing("g", **{"actualVGNameOnTheNode": "vg", "local": {"nodeName": "n"}} | spec)


def operation(**spec: Any) -> dict[str, Any]:
    return thing("v-formation", **{"nodeName": "n", "drbdResourceName": "v-0", "type": "CreateNewUUID"} | spec)


def schedule(**spec: Any) -> dict[str, Any]:
    return thing("uuid", **{"name": "data", "nodeID": "n"} | spec)


def request(**spec: Any) -> dict[str, Any]:
    return thing("r", **{"user": "u", "actions": [{"type": "SHUTDOWN_HOST", "host": "h"}]} | spec)


def notification(*durations: str | None) -> dict[str, Any]:
    actions = [{"type": "SHUTDOWN_HOST"} | ({"duration": text} if text else {}) for text in durations]
    return thing("n", user="u", time="2026-01-01T00:00:00Z", actions=actions)


def transition(**fields: Any) -> dict[str, Any]:
    body = {"group": "Formation", "startedAt": "2026-01-01T00:00:00Z"} | fields
    return volume() | {"status": {"datameshTransitions": [body]}}


def ledger(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "broker"}, "status": status}


CREATED = [
    (STORAGE, "replicatedvolumes", volume(), ""),
    # tests/api/test_reserved.py has more of these.
    (STORAGE, "replicatedvolumes", volume("all"), "DRBD's tools give this name a meaning"),
    (STORAGE, "lvmlogicalvolumes", logical_volume(actualLVNameOnTheNode="x_tdata"), "LVM keeps this name for itself"),
    (LONGHORN, "backingimages", thing("i", sourcePath="../x"), "must be a path from the image directory"),
    (STORAGE, "lvmvolumegroups", volume_group(actualVGNameOnTheNode=".."), "LVM has no group named"),
    (STORAGE, "replicatedvolumes", volume(size=1), ""),
    (STORAGE, "replicatedvolumes", volume(size=0), "size must be more than zero"),
    (STORAGE, "replicatedvolumes", volume(size="-1Gi"), "size must be more than zero"),
    # Left to the pattern: comparing it would take an API server minutes.
    (STORAGE, "replicatedvolumes", volume(size="1e99999999"), ""),
    # So is what is no quantity: that a rule cannot be evaluated helps nobody.
    (STORAGE, "replicatedvolumes", volume(size="1Gb"), ""),
    (STORAGE, "replicatedvolumes", volume("x" * 120), ""),
    (STORAGE, "replicatedvolumes", volume("x" * 121), "a volume's name has at most 120 characters"),
    (STORAGE, "replicatedvolumes", transition(type="Formation", formation={}), ""),
    (STORAGE, "replicatedvolumes", transition(type="Formation"), "formation must be given exactly when"),
    (STORAGE, "replicatedvolumes", transition(type="Attach", replicaName="v-0"), ""),
    (STORAGE, "replicatedvolumes", transition(type="Attach"), "replicaName must be given exactly when"),
    (STORAGE, "replicatedvolumes", transition(type="ChangeQuorum", replicaName="v-0"), "replicaName must be given"),
    (STORAGE, "replicatedvolumereplicas", replica(), ""),
    (STORAGE, "replicatedvolumereplicas", replica("v-7"), ""),
    (STORAGE, "replicatedvolumereplicas", replica("v-8"), "a replica's name is"),
    (STORAGE, "replicatedvolumereplicas", replica("v-x-1"), "a replica's name is"),
    (STORAGE, "replicatedvolumereplicas", replica("w-0"), "a replica's name is"),
    (STORAGE, "replicatedvolumereplicas", replica(nodeName="n", lvmVolumeGroupName="g"), ""),
    (STORAGE, "replicatedvolumereplicas", replica(lvmVolumeGroupName="g"), "lvmVolumeGroupName needs a nodeName"),
    (
        STORAGE,
        "replicatedvolumereplicas",
        replica(nodeName="n", type="Access", lvmVolumeGroupName="g"),
        "lvmVolumeGroupName is only for a Diskful replica",
    ),
    (
        STORAGE,
        "replicatedvolumereplicas",
        replica(nodeName="n", lvmVolumeGroupThinPoolName="t"),
        "lvmVolumeGroupThinPoolName needs a lvmVolumeGroupName",
    ),
    (STORAGE, "replicatedstorageclasses", storage_class(), ""),
    (STORAGE, "replicatedstorageclasses", storage_class(replication="None"), ""),
    (STORAGE, "replicatedstorageclasses", storage_class(replication="None", topology="Any"), ""),
    (STORAGE, "replicatedstorageclasses", storage_class(replication="None", topology="Zonal"), "a single copy has no"),
    (STORAGE, "replicatedstoragepools", pool(), ""),
    (STORAGE, "replicatedstoragepools", pool(type="LVMThin"), "every volume group needs a thinPoolName when"),
    (
        STORAGE,
        "replicatedstoragepools",
        pool(lvmVolumeGroups=[{"name": "a", "thinPoolName": "t"}]),
        "every volume group needs a thinPoolName when",
    ),
    (STORAGE, "lvmlogicalvolumes", logical_volume(), ""),
    (STORAGE, "lvmlogicalvolumes", logical_volume(size="0"), "size must be more than zero"),
    (STORAGE, "lvmlogicalvolumes", logical_volume(type="Thin"), "thin must be given exactly when"),
    (STORAGE, "lvmlogicalvolumes", logical_volume(type="Thin", thin={"poolName": "t"}), ""),
    (STORAGE, "drbdresourceoperations", operation(createNewUUID={"clearBitmap": True}), ""),
    (STORAGE, "drbdresourceoperations", operation(createNewUUID={"forceResync": True}), ""),
    (STORAGE, "drbdresourceoperations", operation(createNewUUID={}), "exactly one of clearBitmap and forceResync"),
    (
        STORAGE,
        "drbdresourceoperations",
        operation(createNewUUID={"clearBitmap": True, "forceResync": True}),
        "exactly one of clearBitmap and forceResync",
    ),
    (STORAGE, "drbdresourceoperations", operation(), "createNewUUID must be given exactly when"),
    (STORAGE, "drbdresourceoperations", operation(type="Verify"), ""),
    (STORAGE, "drbdresourceoperations", operation(type="Verify", range={"start": 0, "end": 4096}), ""),
    (STORAGE, "drbdresourceoperations", operation(type="ZeroRange"), "range must be given when type is ZeroRange"),
    (
        STORAGE,
        "drbdresourceoperations",
        operation(type="ZeroRange", range={"start": 4096, "end": 4096}),
        "end must be more than start",
    ),
    (
        STORAGE,
        "drbdresourceoperations",
        operation(type="ZeroRange", range={"start": 1, "end": 4096}),
        "a range is of whole blocks of 4096 bytes",
    ),
    (STORAGE, "drbdresourceoperations", operation(type="Rejoin"), "rejoin must be given exactly when type is Rejoin"),
    (STORAGE, "drbdresourceoperations", operation(type="Rejoin", rejoin={"peerNodeId": 0}), ""),
    (LONGHORN, "diskschedules", schedule(), ""),
    (LONGHORN, "diskschedules", schedule(replicas={f"r{i}": 1 for i in range(1000)}), ""),
    (
        LONGHORN,
        "diskschedules",
        schedule(replicas={f"r{i}": 1 for i in range(600)}, backingImages={f"b{i}": 1 for i in range(401)}),
        "a disk holds at most 1000",
    ),
    (LONGHORN, "backingimages", thing("b", size="1Gi"), ""),
    (LONGHORN, "backingimages", thing("b", size="0"), "size must be more than zero"),
    (LONGHORN, "backingimages", thing("x" * 63), ""),
    (LONGHORN, "backingimages", thing("x" * 64), "an image's name has at most 63 characters"),
    (MAINTENANCE, "notifications", notification("10m", "1us"), ""),
    (MAINTENANCE, "notifications", notification("10m", "0s"), "every action of a notification needs a duration"),
    (MAINTENANCE, "notifications", notification(None), "every action of a notification needs a duration"),
    (MAINTENANCE, "brokerledgers", ledger(), ""),
    (MAINTENANCE, "brokerledgers", {"metadata": {"name": "other"}}, "there is one ledger, named broker"),
    (MAINTENANCE, "brokerconfigs", thing("other"), "there is one broker configuration, named broker"),
    (MAINTENANCE, "brokerconfigs", thing("broker", defaultRetryTime="1us"), ""),
    (MAINTENANCE, "brokerconfigs", thing("broker", defaultRetryTime="0s"), "defaultRetryTime must be more than zero"),
    (
        MAINTENANCE,
        "brokerconfigs",
        thing("broker", defaultPermissionDuration="0h0m"),
        "defaultPermissionDuration must be more than zero",
    ),
    (
        MAINTENANCE,
        "brokerconfigs",
        thing("broker", monitorConfig={"updateInterval": "0.0s"}),
        "updateInterval must be more than zero",
    ),
    ("quorate.io", "clusterconfigs", thing("cluster", drbd={}), ""),
    ("quorate.io", "clusterconfigs", thing("other"), "there is one cluster configuration, named cluster"),
    ("quorate.io", "clusterconfigs", thing("cluster", drbd={"minPort": 8000}), "minPort must not be above maxPort"),
    ("quorate.io", "clusterconfigs", thing("cluster", agent={"renewInterval": "1m"}), "renewInterval must be below"),
]

CHANGED = [
    (STORAGE, "replicatedvolumes", volume(), volume(size="10240Mi"), ""),
    (STORAGE, "replicatedvolumes", volume(), volume(size="11Gi"), ""),
    (STORAGE, "replicatedvolumes", volume(), volume(size="9Gi"), "a volume cannot shrink"),
    # What was asked for can be taken back until the disks begin to grow.
    (STORAGE, "replicatedvolumes", asked("100Pi", "1Gi"), asked("1Gi", "1Gi"), ""),
    (STORAGE, "replicatedvolumes", asked("100Pi", "1Gi"), asked("1024Mi", "1Gi"), ""),
    (STORAGE, "replicatedvolumes", asked("100Pi", "1Gi"), asked("1023Mi", "1Gi"), "a volume cannot shrink"),
    (STORAGE, "replicatedvolumes", asked("9Gi", "1Gi", "5Gi"), asked("5Gi", "1Gi", "5Gi"), ""),
    (STORAGE, "replicatedvolumes", asked("9Gi", "1Gi", "5Gi"), asked("4Gi", "1Gi", "5Gi"), "a volume cannot shrink"),
    (STORAGE, "replicatedvolumes", asked("9Gi", "1Gi", "5Gi"), asked("10Gi", "1Gi", "5Gi"), ""),
    (STORAGE, "replicatedvolumereplicas", replica(), replica(nodeName="n"), ""),
    (STORAGE, "replicatedvolumereplicas", replica(nodeName="n"), replica(nodeName="m"), "nodeName is immutable once"),
    (STORAGE, "replicatedvolumereplicas", replica(nodeName="n"), replica(), "nodeName is immutable once set"),
    (
        STORAGE,
        "replicatedvolumereplicas",
        replica(nodeName="n", lvmVolumeGroupName="g"),
        replica(nodeName="n", type="Access"),
        "",
    ),
    (
        STORAGE,
        "replicatedvolumeattachments",
        thing("a", replicatedVolumeName="v", nodeName="n"),
        thing("a", replicatedVolumeName="v", nodeName="m"),
        "is immutable",
    ),
    (STORAGE, "replicatedstorageclasses", storage_class(), storage_class(reclaimPolicy="Retain"), ""),
    (STORAGE, "replicatedstorageclasses", storage_class(), storage_class(storagePool="q"), "is immutable"),
    (STORAGE, "replicatedstorageclasses", storage_class(), storage_class(volumeAccess="Local"), "is immutable"),
    # M7: one value, two words.
    (STORAGE, "replicatedstorageclasses", storage_class(topology="Any"), storage_class(topology="Ignored"), ""),
    (STORAGE, "replicatedstorageclasses", storage_class(), storage_class(topology="Zonal"), "topology is immutable"),
    (STORAGE, "replicatedstorageclasses", storage_class(zones=["a", "b"]), storage_class(zones=["b", "a"]), ""),
    (
        STORAGE,
        "replicatedstorageclasses",
        storage_class(zones=["a"]),
        storage_class(zones=["b"]),
        "zones are immutable",
    ),
    (STORAGE, "replicatedstorageclasses", storage_class(zones=["a"]), storage_class(), "zones are immutable"),
    (STORAGE, "replicatedstorageclasses", storage_class(), storage_class(zones=["a"]), "zones are immutable"),
    # Volume groups come and go; each fits the type, which stays.
    (STORAGE, "replicatedstoragepools", pool(), pool(lvmVolumeGroups=[{"name": "a"}, {"name": "b"}]), ""),
    (STORAGE, "replicatedstoragepools", pool(), pool(lvmVolumeGroups=[{"name": "b"}]), ""),
    (
        STORAGE,
        "replicatedstoragepools",
        pool(),
        pool(lvmVolumeGroups=[{"name": "a", "thinPoolName": "t"}]),
        "every volume group needs a thinPoolName when type is LVMThin, and none when it is LVM",
    ),
    (
        STORAGE,
        "replicatedstoragepools",
        pool(),
        pool(type="LVMThin", lvmVolumeGroups=[{"name": "a", "thinPoolName": "t"}]),
        "is immutable",
    ),
    (STORAGE, "replicatedstoragepools", pool(), pool(nodeLabelSelector={}), "nodeLabelSelector is immutable"),
    (STORAGE, "replicatedstoragepools", pool(), pool(systemNetworkNames=["X"]), ""),
    (
        STORAGE,
        "lvmvolumegroups",
        thing("g", actualVGNameOnTheNode="g", local={"nodeName": "n"}),
        thing("g", actualVGNameOnTheNode="g", local={"nodeName": "m"}),
        "is immutable",
    ),
    (STORAGE, "lvmlogicalvolumes", logical_volume(), logical_volume(size="2Gi"), ""),
    (STORAGE, "lvmlogicalvolumes", logical_volume(), logical_volume(size="1Mi"), "size must not shrink"),
    (STORAGE, "lvmlogicalvolumes", logical_volume(), logical_volume(lvmVolumeGroupName="h"), "is immutable"),
    (STORAGE, "lvmlogicalvolumes", logical_volume(), logical_volume(source={"path": "x"}), "source is immutable"),
    (STORAGE, "drbdresourceoperations", operation(type="Verify"), operation(type="Outdate"), "spec is immutable"),
    (LONGHORN, "diskschedules", schedule(), schedule(replicas={"v-0": 1}), ""),
    (LONGHORN, "diskschedules", schedule(), schedule(name="other"), ""),
    (LONGHORN, "diskschedules", schedule(), schedule(nodeID="m"), ""),
    (LONGHORN, "backingimages", thing("b"), thing("b", size="1Gi"), ""),
    (LONGHORN, "backingimages", thing("b", size="1Gi"), thing("b", size="2Gi"), "size is immutable once set"),
    (MAINTENANCE, "permissionrequests", request(), request(availabilityMode="MODE_FORCE_RESTART"), ""),
    (MAINTENANCE, "permissionrequests", request(), request(user="v"), "is immutable"),
    (MAINTENANCE, "permissionrequests", request(), request(actions=[]), "is immutable"),
    (MAINTENANCE, "permissionrequests", request(), request(priority=-100), "priority is immutable"),
    (MAINTENANCE, "notifications", notification("10m"), notification("10m"), ""),
    (MAINTENANCE, "notifications", notification("10m"), notification("20m"), "is immutable"),
    (MAINTENANCE, "brokerledgers", ledger(epoch=5), ledger(epoch=5), ""),
    (MAINTENANCE, "brokerledgers", ledger(epoch=5), ledger(epoch=6), ""),
    (MAINTENANCE, "brokerledgers", ledger(epoch=5), ledger(epoch=4), "the epoch cannot go back"),
    (MAINTENANCE, "brokerledgers", ledger(epoch=5), ledger(), "the epoch cannot go back"),
    ("quorate.io", "clusterconfigs", thing("cluster"), thing("cluster", drbd={"maxPeers": 7}), ""),
    ("quorate.io", "clusterconfigs", thing("cluster"), thing("cluster", drbd={"maxPeers": 3}), "maxPeers is immutable"),
    ("quorate.io", "clusterconfigs", thing("cluster", drbd={"maxPeers": 3}), thing("cluster"), "maxPeers is immutable"),
]


def agrees(found: list[str], expected: str) -> bool:
    return len(found) == 1 and expected in found[0] if expected else found == []


@pytest.mark.parametrize(("group", "plural", "new", "expected"), CREATED)
def test_an_object_is_admitted_or_refused_with_the_reason(
    group: str, plural: str, new: dict[str, Any], expected: str
) -> None:
    found = messages(kind_of(group, plural), new)
    assert agrees(found, expected), found


@pytest.mark.parametrize(("group", "plural", "old", "new", "expected"), CHANGED)
def test_a_change_is_admitted_or_refused_with_the_reason(
    group: str, plural: str, old: dict[str, Any], new: dict[str, Any], expected: str
) -> None:
    found = messages(kind_of(group, plural), new, old)
    assert agrees(found, expected), found


@pytest.mark.parametrize(("group", "plural", "new", "expected"), CREATED)
def test_no_rule_of_change_forbids_standing_still(group: str, plural: str, new: dict[str, Any], expected: str) -> None:
    # The embedded engine tries no rule on a part that did not change; an API server does.
    kind = kind_of(group, plural)
    of_new = {rule.message for rule in kind.type.RULES if rule.only_of_new}
    assert messages(kind, new, new) == [message for message in messages(kind, new) if message not in of_new]


def refusals() -> set[str]:
    return {row[-1] for row in CREATED if row[-1]} | {row[-1] for row in CHANGED if row[-1]}


def test_every_rule_is_refused_by_some_example() -> None:
    def stated(schema: dict[str, Any]) -> set[str]:
        own = {rule["message"] for rule in schema.get("x-kubernetes-validations", ())}
        inner = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
        return own.union(*(stated(part) for part in inner if isinstance(part, dict)))

    ours = [kind for kind in all_kinds() if kind.crd and kind.type.__module__.startswith("quorate.api.")]
    every = set[str]().union(*(stated(structural_schema(kind)) for kind in ours))
    seen = refusals()
    unseen = {message for message in every if not any(part in message for part in seen)}
    # One rule repeated for many fields is shown once.
    assert {message.partition(" ")[2] for message in unseen} <= {"is immutable", "is immutable once set"}

"""Who may write what: one table for both engines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quorate.api import labels
from tests.conformance.wire import JSON_PATCH, MERGE

STORAGE = "/apis/storage.deckhouse.io/v1alpha1"
DRIVES = "/apis/csi-baremetal.dell.com/v1/drives"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/quorate-system/leases"
LEASES_ELSEWHERE = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
EVENTS = "/api/v1/namespaces/default/events"
NODES = "/api/v1/nodes"
NAMESPACES = "/api/v1/namespaces"
RVRS, LLVS, LVGS, OPERATIONS = (
    f"{STORAGE}/{plural}"
    for plural in ("replicatedvolumereplicas", "lvmlogicalvolumes", "lvmvolumegroups", "drbdresourceoperations")
)
ATTACHMENTS = f"{STORAGE}/replicatedvolumeattachments"
#: A change that matters to nobody.
NOTE = {"metadata": {"annotations": {"a": "b"}}}
REPORT = {"status": {"message": "m"}}
BOOT = {"status": {"nodeInfo": {"bootID": "b"}}}
#: The label that objects carry, if any.
MINE, THEIRS, NOBODYS = "n1", "n2", ""

Json = dict[str, Any]


def drive(name: str, node: str) -> Json:
    spec = {"UUID": name, "SerialNumber": "s", "NodeId": "n"}
    return kubernetes_object("csi-baremetal.dell.com/v1", "Drive", name, node, spec)


def replica(name: str, node: str) -> Json:
    return _storage("ReplicatedVolumeReplica", name, node, {"replicatedVolumeName": name[:-2], "type": "TieBreaker"})


def logical_volume(name: str, node: str) -> Json:
    spec = {"actualLVNameOnTheNode": "lv", "type": "Thick", "size": "1Gi", "lvmVolumeGroupName": "g"}
    return _storage("LVMLogicalVolume", name, node, spec)


def volume_group(name: str, node: str) -> Json:
    spec = {"type": "Local", "local": {"nodeName": "n"}, "actualVGNameOnTheNode": "vg"}
    return _storage("LVMVolumeGroup", name, node, spec)


def operation(name: str, node: str) -> Json:
    return _storage("DRBDResourceOperation", name, node, {"nodeName": "n", "drbdResourceName": "v-0", "type": "Verify"})


def attachment(name: str) -> Json:
    return _storage("ReplicatedVolumeAttachment", name, MINE, {"replicatedVolumeName": "v", "nodeName": "n"})


def lease(name: str) -> Json:
    return kubernetes_object("coordination.k8s.io/v1", "Lease", name, NOBODYS, {"holderIdentity": "x"})


def node(name: str) -> Json:
    return kubernetes_object("v1", "Node", name, NOBODYS, {})


def namespace(name: str) -> Json:
    return kubernetes_object("v1", "Namespace", name, NOBODYS, {})


def event(name: str) -> Json:
    # A name like this is not a node's: an event is told by its kind alone.
    about = {"kind": "Drive", "namespace": "default", "name": "d"}
    return {
        **kubernetes_object("v1", "Event", name, NOBODYS, {}),
        "involvedObject": about,
        "reason": "Seen",
        "type": "Normal",
    }


def _storage(kind: str, name: str, of: str, spec: Json) -> Json:
    return kubernetes_object("storage.deckhouse.io/v1alpha1", kind, name, of, spec)


def kubernetes_object(version: str, kind: str, name: str, of: str, spec: Json) -> Json:
    meta: Json = {"name": name}
    if of:
        meta["labels"] = {labels.NODE: of}
    return {"apiVersion": version, "kind": kind, "metadata": meta, **({"spec": spec} if spec else {})}


#: Collections of the kinds that belong to a node, and how one of their objects is made.
OF_A_NODE = {
    DRIVES: drive,
    RVRS: replica,
    LLVS: logical_volume,
    LVGS: volume_group,
    OPERATIONS: operation,
}


@dataclass(frozen=True)
class Case:
    """A write, tried as a dry run. ``refused`` is the reason of the refusal; empty: it is allowed."""

    about: str
    method: str
    path: str
    body: Any = None
    refused: str = ""
    content_type: str = MERGE


def _label(value: str | None) -> Json:
    return {"metadata": {"labels": {labels.NODE: value}}}


#: What holds for everybody.
LABEL_CASES = [
    case
    for collection in OF_A_NODE
    for case in (
        Case("another node", "PATCH", f"{collection}/mine-0", _label(THEIRS), "Invalid"),
        Case("no label", "PATCH", f"{collection}/mine-0", _label(None), "Invalid"),
        Case("no labels", "PATCH", f"{collection}/mine-0", {"metadata": {"labels": None}}, "Invalid"),
        Case("an empty label", "PATCH", f"{collection}/mine-0", _label(""), "Invalid"),
        Case("the same", "PATCH", f"{collection}/mine-0", {"metadata": {"labels": {labels.NODE: MINE, "a": "b"}}}),
        Case("the first label", "PATCH", f"{collection}/nobodys-0", _label(THEIRS)),
    )
] + [
    Case(
        "by JSON patch",
        "PATCH",
        f"{DRIVES}/mine-0",
        [{"op": "remove", "path": "/metadata/labels"}],
        "Invalid",
        JSON_PATCH,
    ),
    Case("through status, where metadata is not read", "PATCH", f"{DRIVES}/mine-0/status", _label(THEIRS)),
    Case("of a kind of no node", "PATCH", f"{NODES}/n1", _label(THEIRS)),
]

#: What the agent of node n1 may do.
AGENT_CASES = [
    case
    for collection, made in OF_A_NODE.items()
    for case in (
        Case("create, mine", "POST", collection, made("new-0", MINE)),
        Case("create, theirs", "POST", collection, made("new-0", THEIRS), "Forbidden"),
        Case("create, nobody's", "POST", collection, made("new-0", NOBODYS), "Forbidden"),
        Case("change mine", "PATCH", f"{collection}/mine-0", NOTE),
        Case("change theirs", "PATCH", f"{collection}/theirs-0", NOTE, "Forbidden"),
        Case("change nothing of theirs", "PATCH", f"{collection}/theirs-0", {}, "Forbidden"),
        Case("take over nobody's", "PATCH", f"{collection}/nobodys-0", _label(MINE), "Forbidden"),
        Case("report on mine", "PATCH", f"{collection}/mine-0/status", REPORT),
        Case("report on theirs", "PATCH", f"{collection}/theirs-0/status", REPORT, "Forbidden"),
        Case("report on nobody's", "PATCH", f"{collection}/nobodys-0/status", REPORT, "Forbidden"),
        Case("delete mine", "DELETE", f"{collection}/mine-0"),
        Case("delete theirs", "DELETE", f"{collection}/theirs-0", None, "Forbidden"),
        Case("delete all of mine", "DELETE", f"{collection}?labelSelector={labels.NODE}%3Dn1"),
        Case("delete all", "DELETE", collection, None, "Forbidden"),
        Case("read theirs", "GET", f"{collection}/theirs-0"),
        Case("read all", "GET", collection),
    )
] + [
    Case("its own lease", "PATCH", f"{LEASES}/quorate-agent-n1", {"spec": {"holderIdentity": "y"}}),
    Case("another's lease", "PATCH", f"{LEASES}/quorate-agent-n2", {"spec": {"holderIdentity": "y"}}, "Forbidden"),
    Case("a new lease of another", "POST", LEASES, lease("quorate-agent-n3"), "Forbidden"),
    Case("the leader's lease", "POST", LEASES, lease("quorate-controller"), "Forbidden"),
    Case("its lease elsewhere", "POST", LEASES_ELSEWHERE, lease("quorate-agent-n1"), "Forbidden"),
    Case("its own node", "PATCH", f"{NODES}/n1", NOTE),
    Case("its own node's status", "PATCH", f"{NODES}/n1/status", BOOT),
    Case("another's node", "PATCH", f"{NODES}/n2", NOTE, "Forbidden"),
    Case("another's node's status", "PATCH", f"{NODES}/n2/status", BOOT, "Forbidden"),
    Case("another node", "POST", NODES, node("n3"), "Forbidden"),
    Case("delete its own node", "DELETE", f"{NODES}/n1", None, "Forbidden"),
    Case("an event", "POST", EVENTS, event("e")),
    Case("a kind of no node", "POST", ATTACHMENTS, attachment("x"), "Forbidden"),
    Case("a namespace", "POST", NAMESPACES, namespace("x"), "Forbidden"),
    Case("delete a namespace", "DELETE", f"{NAMESPACES}/quorate-system", None, "Forbidden"),
]  # fmt: skip

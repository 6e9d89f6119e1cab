"""Who may write what: one table for both engines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quorate.api import labels
from quorate.api.finalizers import AGENT, CONTROLLER
from tests.conformance.wire import JSON_PATCH, MERGE

STORAGE = "/apis/storage.deckhouse.io/v1alpha1"
DRIVES = "/apis/csi-baremetal.dell.com/v1/drives"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/quorate-system/leases"
LEASES_ELSEWHERE = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
EVENTS = "/api/v1/namespaces/default/events"
NODES = "/api/v1/nodes"
NAMESPACES = "/api/v1/namespaces"
INVENTORIES = "/apis/longhorn.io/v1beta2/namespaces/quorate-system/nodes"
RVRS, LLVS, LVGS, OPERATIONS = (
    f"{STORAGE}/{plural}"
    for plural in ("replicatedvolumereplicas", "lvmlogicalvolumes", "lvmvolumegroups", "drbdresourceoperations")
)
ATTACHMENTS = f"{STORAGE}/replicatedvolumeattachments"
#: A change that matters to nobody.
NOTE = {"metadata": {"annotations": {"a": "b"}}}
REPORT = {"status": {"message": "m"}}
BOOT = {"status": {"nodeInfo": {"bootID": "b"}}}
LOOKED = {"status": {"orphansReportedBy": "a"}}
#: The label that objects carry, if any.
MINE, THEIRS, NOBODYS = "n1", "n2", ""

Json = dict[str, Any]

#: Kinds of a node, which a controller and an agent hold here.
_HELD = {"Drive", "ReplicatedVolumeReplica", "LVMLogicalVolume", "LVMVolumeGroup", "DRBDResourceOperation"}


def drive(name: str, node: str, said: str | None = None) -> Json:
    """Of a node by its label; and by its spec, if that says another."""
    spec = {"UUID": name, "SerialNumber": "s", "NodeId": _said(node, said)}
    return kubernetes_object("csi-baremetal.dell.com/v1", "Drive", name, node, spec)


def replica(name: str, node: str, said: str | None = None) -> Json:
    spec = {"replicatedVolumeName": name[:-2], "type": "TieBreaker", "nodeName": _said(node, said)}
    return _storage("ReplicatedVolumeReplica", name, node, spec)


def logical_volume(name: str, node: str, said: str | None = None) -> Json:
    spec = {"actualLVNameOnTheNode": "lv", "type": "Thick", "size": "1Gi", "lvmVolumeGroupName": "g"}
    return _storage("LVMLogicalVolume", name, node, spec)


def volume_group(name: str, node: str, said: str | None = None) -> Json:
    spec = {"type": "Local", "local": {"nodeName": _said(node, said)}, "actualVGNameOnTheNode": "vg"}
    return _storage("LVMVolumeGroup", name, node, spec)


def operation(name: str, node: str, said: str | None = None) -> Json:
    spec = {"nodeName": _said(node, said), "drbdResourceName": "v-0", "type": "Verify"}
    return _storage("DRBDResourceOperation", name, node, spec)


def _said(node: str, said: str | None) -> str:
    return said or node or "n"


def attachment(name: str) -> Json:
    return _storage("ReplicatedVolumeAttachment", name, MINE, {"replicatedVolumeName": "v", "nodeName": "n"})


def lease(name: str) -> Json:
    return kubernetes_object("coordination.k8s.io/v1", "Lease", name, NOBODYS, {"holderIdentity": "x"})


def node(name: str, *, registered: bool = False) -> Json:
    made = kubernetes_object("v1", "Node", name, NOBODYS, {})
    if registered:
        made["metadata"]["labels"] = {labels.REGISTERED: "agent"}
    return made


def inventory(name: str) -> Json:
    return kubernetes_object("longhorn.io/v1beta2", "Node", name, NOBODYS, {})


def namespace(name: str) -> Json:
    return kubernetes_object("v1", "Namespace", name, NOBODYS, {})


def event(name: str, reported_by: str, namespace: str = "default") -> Json:
    about = {"kind": "Drive", "namespace": namespace, "name": "d"}
    return {
        **kubernetes_object("v1", "Event", name, NOBODYS, {}),
        "involvedObject": about,
        "reason": "Seen",
        "type": "Normal",
        "reportingComponent": "quorate-agent",
        "reportingInstance": reported_by,
    }


def _storage(kind: str, name: str, of: str, spec: Json) -> Json:
    return kubernetes_object("storage.deckhouse.io/v1alpha1", kind, name, of, spec)


def kubernetes_object(version: str, kind: str, name: str, of: str, spec: Json) -> Json:
    meta: Json = {"name": name}
    if of:
        meta["labels"] = {labels.NODE: of}
    if kind in _HELD:
        meta["finalizers"] = [CONTROLLER, AGENT]
    return {"apiVersion": version, "kind": kind, "metadata": meta, **({"spec": spec} if spec else {})}


#: Collections of the kinds that belong to a node, and how one of their objects is made.
OF_A_NODE = {
    DRIVES: drive,
    RVRS: replica,
    LLVS: logical_volume,
    LVGS: volume_group,
    OPERATIONS: operation,
}


#: A change of the spec of each that its schema allows; of an operation it allows none.
CHANGES: dict[str, Json] = {
    RVRS: {"spec": {"type": "Access"}},
    LLVS: {"spec": {"size": "2Gi"}},
    LVGS: {"spec": {"deviceSelector": {"slots": ["1"]}}},
}
TAINTED = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
_ONLY_LABELS = "may change nothing of its Node but labels and status"


@dataclass(frozen=True)
class Case:
    """A write, tried as a dry run. ``refused`` is the reason of the refusal; empty: it is allowed."""

    about: str
    method: str
    path: str
    body: Any = None
    refused: str = ""
    content_type: str = MERGE
    #: How the words of a refusal end; empty: whatever they are.
    says: str = ""


def _label(value: str | None) -> Json:
    return {"metadata": {"labels": {labels.NODE: value}}}


def _labelled(name: str, value: str = "x") -> Json:
    return {"metadata": {"labels": {name: value}}}


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

#: Beginnings of what an agent is told; the rest is the case's.
_LABELLED = f"may write only objects with its label {labels.NODE}"
_NAMED = "may write only objects whose spec names its node"
_ONLY_STATUS = "may change nothing of it but its status, and take its own finalizer away"
_ONLY_SPEC = "may change nothing of a Drive but its spec and status"
_PLAIN_DRIVE = f"makes a Drive with its spec and its label {labels.NODE} alone"
_KUBELET = "may write its Node only where it made it (quorate.io/registered-by=agent): here a kubelet does"
_INVENTORY = "may write only the status of its own longhorn Node"
_EVENTS = "may write only Events in default that its node reports"
_NOTHING = "may write nothing of this kind"
_FORBIDDEN = "Forbidden"


def _new_drive(**metadata: Any) -> Json:
    """As an agent makes it."""
    made = drive("new-0", MINE)
    made["metadata"].pop("finalizers")
    made["metadata"] |= metadata
    return made


def _finalizers(*names: str) -> Json:
    return {"metadata": {"finalizers": list(names)}}


#: What the agent of node n1 may do.
AGENT_CASES = [
    case
    for collection in OF_A_NODE
    for only in (_ONLY_SPEC if collection == DRIVES else _ONLY_STATUS,)
    for case in (
        Case("change theirs", "PATCH", f"{collection}/theirs-0", NOTE, _FORBIDDEN, says=_LABELLED),
        Case("change nothing of theirs", "PATCH", f"{collection}/theirs-0", {}, _FORBIDDEN, says=_LABELLED),
        Case("take over nobody's", "PATCH", f"{collection}/nobodys-0", _label(MINE), _FORBIDDEN, says=_LABELLED),
        Case("annotate mine", "PATCH", f"{collection}/mine-0", NOTE, _FORBIDDEN, says=only),
        Case("label mine", "PATCH", f"{collection}/mine-0", _labelled("a"), _FORBIDDEN, says=only),
        Case("hold mine", "PATCH", f"{collection}/mine-0", _finalizers(AGENT, "a.b/c"), _FORBIDDEN, says=only),
        Case("let go of another's hold", "PATCH", f"{collection}/mine-0", _finalizers(AGENT), _FORBIDDEN, says=only),
        Case("change nothing of mine", "PATCH", f"{collection}/mine-0", {}),
        Case("report on mine", "PATCH", f"{collection}/mine-0/status", REPORT),
        Case("report on theirs", "PATCH", f"{collection}/theirs-0/status", REPORT, _FORBIDDEN, says=_LABELLED),
        Case("report on nobody's", "PATCH", f"{collection}/nobodys-0/status", REPORT, _FORBIDDEN, says=_LABELLED),
        Case("delete mine", "DELETE", f"{collection}/mine-0", None, _FORBIDDEN),
        Case("delete theirs", "DELETE", f"{collection}/theirs-0", None, _FORBIDDEN),
        Case("delete all of mine", "DELETE", f"{collection}?labelSelector={labels.NODE}%3Dn1", None, _FORBIDDEN),
        Case("read theirs", "GET", f"{collection}/theirs-0"),
        Case("read all", "GET", collection),
    )
] + [
    case
    for collection, made in OF_A_NODE.items()
    if collection != DRIVES
    for case in (
        Case("create", "POST", collection, made("new-0", MINE), _FORBIDDEN),
        Case("let go of mine", "PATCH", f"{collection}/mine-0", _finalizers(CONTROLLER)),
    )
] + [
    Case("change mine", "PATCH", f"{collection}/mine-0", change, _FORBIDDEN, says=_ONLY_STATUS)
    for collection, change in CHANGES.items()
] + [
    case
    for collection in OF_A_NODE
    if collection != LLVS
    for case in (
        # It carries the agent's label, and another node's name.
        Case("report on lent", "PATCH", f"{collection}/lent-0/status", REPORT, _FORBIDDEN, says=_NAMED),
        Case("change lent", "PATCH", f"{collection}/lent-0", {}, _FORBIDDEN, says=_NAMED),
    )
] + [
    Case("create, mine", "POST", DRIVES, _new_drive()),
    *(
        Case(f"create, mine, with {part}", "POST", DRIVES, _new_drive(**{part: value}), _FORBIDDEN, says=_PLAIN_DRIVE)
        for part, value in (
            ("annotations", {"maintenance.quorate.io/id": "999999999999"}),
            ("finalizers", [AGENT]),
            ("ownerReferences", [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u"}]),
            ("labels", {labels.NODE: MINE, "a": "b"}),
        )
    ),
    Case("create, theirs", "POST", DRIVES, drive("new-0", THEIRS), _FORBIDDEN, says=_LABELLED),
    Case("create, nobody's", "POST", DRIVES, drive("new-0", NOBODYS), _FORBIDDEN, says=_LABELLED),
    Case("create with another's NodeId", "POST", DRIVES, drive("new-0", MINE, THEIRS), _FORBIDDEN, says=_NAMED),
    Case("move a drive", "PATCH", f"{DRIVES}/mine-0", {"spec": {"Path": "/dev/sdz"}}),
    Case("give a drive away", "PATCH", f"{DRIVES}/mine-0", {"spec": {"NodeId": THEIRS}}, _FORBIDDEN, says=_NAMED),
    Case("its own lease", "PATCH", f"{LEASES}/quorate-agent-n1", {"spec": {"holderIdentity": "y"}}),
    Case("another's lease", "PATCH", f"{LEASES}/quorate-agent-n2", {"spec": {"holderIdentity": "y"}}, _FORBIDDEN,
         says="may write only its own Lease"),
    Case("a new lease of another", "POST", LEASES, lease("quorate-agent-n3"), _FORBIDDEN),
    Case("the leader's lease", "POST", LEASES, lease("quorate-controller"), _FORBIDDEN),
    Case("its lease elsewhere", "POST", LEASES_ELSEWHERE, lease("quorate-agent-n1"), _FORBIDDEN),
    Case("delete its lease", "DELETE", f"{LEASES}/quorate-agent-n1", None, _FORBIDDEN),
    Case("its own node's zone", "PATCH", f"{NODES}/n1", _labelled("topology.kubernetes.io/zone")),
    Case("its own node's rack", "PATCH", f"{NODES}/n1", _labelled("maintenance.quorate.io/rack")),
    Case("its own node's status", "PATCH", f"{NODES}/n1/status", BOOT),
    Case("its own node's role", "PATCH", f"{NODES}/n1", _labelled("node-role.kubernetes.io/x"), _FORBIDDEN,
         says="may not set the label node-role.kubernetes.io/x"),
    Case("a restricted label", "PATCH", f"{NODES}/n1", _labelled("node-restriction.kubernetes.io/x"), _FORBIDDEN,
         says="may not set the label node-restriction.kubernetes.io/x"),
    Case("its own node's taints", "PATCH", f"{NODES}/n1", TAINTED, _FORBIDDEN, says=_ONLY_LABELS),
    Case("cordon itself", "PATCH", f"{NODES}/n1", {"spec": {"unschedulable": True}}, _FORBIDDEN, says=_ONLY_LABELS),
    Case("the broker's notes", "PATCH", f"{NODES}/n1", NOTE, _FORBIDDEN, says=_ONLY_LABELS),
    Case("no longer registered", "PATCH", f"{NODES}/n1", _labelled("quorate.io/registered-by"), _FORBIDDEN,
         says=_KUBELET),
    Case("another's node", "PATCH", f"{NODES}/n2", NOTE, _FORBIDDEN, says="may write only its own Node"),
    Case("another's node's status", "PATCH", f"{NODES}/n2/status", BOOT, _FORBIDDEN,
         says="may write only its own Node"),
    Case("another node", "POST", NODES, node("n3"), _FORBIDDEN, says="may write only its own Node"),
    Case("delete its own node", "DELETE", f"{NODES}/n1", None, _FORBIDDEN),
    Case("its own inventory's status", "PATCH", f"{INVENTORIES}/n1/status", LOOKED),
    Case("its own inventory", "PATCH", f"{INVENTORIES}/n1", {"spec": {"allowScheduling": False}}, _FORBIDDEN),
    Case("another's inventory's status", "PATCH", f"{INVENTORIES}/n2/status", LOOKED, _FORBIDDEN, says=_INVENTORY),
    Case("delete its own inventory", "DELETE", f"{INVENTORIES}/n1", None, _FORBIDDEN),
    Case("an event", "POST", EVENTS, event("e", MINE)),
    Case("another's event", "POST", EVENTS, event("e", THEIRS), _FORBIDDEN, says=_EVENTS),
    Case("nobody's event", "POST", EVENTS, event("e", NOBODYS), _FORBIDDEN, says=_EVENTS),
    Case("an event elsewhere", "POST", f"{NAMESPACES}/quorate-system/events",
         event("e", MINE, "quorate-system"), _FORBIDDEN, says=_EVENTS),
    Case("a kind of no node", "POST", ATTACHMENTS, attachment("x"), _FORBIDDEN),
    Case("a namespace", "POST", NAMESPACES, namespace("x"), _FORBIDDEN),
    Case("delete a namespace", "DELETE", f"{NAMESPACES}/quorate-system", None, _FORBIDDEN),
]  # fmt: skip

#: What the agent of n2 may do, whose Node a kubelet keeps.
KUBELET_CASES = [
    Case("a label", "PATCH", f"{NODES}/n2", _labelled("maintenance.quorate.io/rack"), _FORBIDDEN, says=_KUBELET),
    Case("to be an agent's", "PATCH", f"{NODES}/n2", _labelled("quorate.io/registered-by", "agent"), _FORBIDDEN,
         says=_KUBELET),
    Case("its status", "PATCH", f"{NODES}/n2/status", BOOT, _FORBIDDEN, says=_KUBELET),
    Case("a drive of n1", "PATCH", f"{DRIVES}/lent-0", {}, _FORBIDDEN, says=_LABELLED),
]  # fmt: skip

#: What only RBAC refuses: it is of no harm, and not an agent's.
READ_CASES = [
    Case("the volumes", "GET", f"{STORAGE}/replicatedvolumes", None, _FORBIDDEN),
    Case("the attachments", "GET", ATTACHMENTS, None, _FORBIDDEN),
    Case("the claims", "GET", "/api/v1/persistentvolumeclaims", None, _FORBIDDEN),
    Case("the broker's ledger", "GET", "/apis/maintenance.quorate.io/v1alpha1/brokerledgers", None, _FORBIDDEN),
    Case("the cluster's settings", "GET", "/apis/quorate.io/v1alpha1/clusterconfigs"),
]

_RVRS = {"group": "storage.deckhouse.io", "resource": "replicatedvolumereplicas"}
_DRIVES = {"group": "csi-baremetal.dell.com", "resource": "drives"}
#: What the agent of n1 is told when it asks whether it may: the attributes of the question, and the answer.
CAN_I: list[tuple[Json, bool]] = [
    ({"verb": "list", **_RVRS}, True),
    ({"verb": "patch", **_RVRS}, True),
    ({"verb": "create", **_RVRS}, False),
    ({"verb": "delete", **_RVRS}, False),
    ({"verb": "*", **_RVRS}, False),
    ({"verb": "patch", **_RVRS, "subresource": "status"}, True),
    ({"verb": "update", **_RVRS, "subresource": "status"}, False),
    ({"verb": "patch", **_RVRS, "subresource": "scale"}, False),
    ({"verb": "create", **_DRIVES}, True),
    ({"verb": "delete", **_DRIVES, "name": "mine-0"}, False),
    ({"verb": "list", "group": "storage.deckhouse.io", "resource": "replicatedvolumes"}, False),
    ({"verb": "get", "resource": "secrets", "namespace": "quorate-system"}, False),
    ({"verb": "get", "resource": "secrets", "namespace": "quorate-system", "name": "quorate-drbd-none"}, False),
    ({"verb": "create", "resource": "events", "namespace": "default"}, True),
    ({"verb": "get", "resource": "nodes"}, True),
    ({"verb": "delete", "resource": "nodes"}, False),
    ({"verb": "list", "group": "no.such.group", "resource": "things"}, False),
    ({"verb": "*", "group": "*", "resource": "*"}, False),
    ({"verb": "create", "group": "authorization.k8s.io", "resource": "selfsubjectaccessreviews"}, True),
    ({"verb": "get", "path": "/version"}, True),
    ({"verb": "get", "path": "/apis/storage.deckhouse.io"}, True),
    ({"verb": "get", "path": "/metrics"}, False),
    ({"verb": "post", "path": "/version"}, False),
]

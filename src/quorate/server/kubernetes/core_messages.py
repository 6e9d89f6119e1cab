"""Kubernetes' own kinds as its protobuf has them: requests only.

Typed Go clients, ``kubectl create namespace`` among them, send these kinds as protobuf without asking first. They do
accept JSON as the answer, so reading is enough. The tables hold the fields that our types know.
"""

from __future__ import annotations

from typing import Any

from quorate.errors import UnsupportedMediaType
from quorate.server.kubernetes.protobuf import (
    Many,
    Map,
    Table,
    flag,
    integer,
    message,
    micro_time,
    quantity,
    raw,
    text,
    time,
)

_MAGIC = b"k8s\x00"


def parse_protobuf(data: bytes) -> dict[str, Any]:
    """An object in Kubernetes' envelope. Raises ValueError, or UnsupportedMediaType for a kind that is not its own."""
    if not data.startswith(_MAGIC):
        raise ValueError("not Kubernetes protobuf: it must begin with k8s\\0")
    envelope = message(_ENVELOPE)(data[len(_MAGIC) :])
    api_version, kind = envelope.get("type", {}).get("apiVersion", ""), envelope.get("type", {}).get("kind", "")
    table = _KINDS.get((api_version, kind)) or (_DELETE_OPTIONS if kind == "DeleteOptions" else None)
    if table is None:
        raise UnsupportedMediaType(
            f"{kind or 'an object'} of {api_version or 'no version'} is not read as protobuf - accepted media types "
            "include: application/json, application/yaml"
        )
    return {"apiVersion": api_version, "kind": kind, **message(table)(envelope.get("raw", b""))}


_ENVELOPE: Table = {1: ("type", message({1: ("apiVersion", text), 2: ("kind", text)})), 2: ("raw", raw)}

_OWNER: Table = {
    1: ("kind", text),
    3: ("name", text),
    4: ("uid", text),
    5: ("apiVersion", text),
    6: ("controller", flag),
    7: ("blockOwnerDeletion", flag),
}
_METADATA: Table = {
    1: ("name", text),
    2: ("generateName", text),
    3: ("namespace", text),
    5: ("uid", text),
    6: ("resourceVersion", text),
    7: ("generation", integer),
    8: ("creationTimestamp", time),
    9: ("deletionTimestamp", time),
    10: ("deletionGracePeriodSeconds", integer),
    11: ("labels", Map(text)),
    12: ("annotations", Map(text)),
    13: ("ownerReferences", Many(message(_OWNER))),
    14: ("finalizers", Many(text)),
}
_DELETE_OPTIONS: Table = {
    2: ("preconditions", message({1: ("uid", text), 2: ("resourceVersion", text)})),
    4: ("propagationPolicy", text),
    5: ("dryRun", Many(text)),
}
_REFERENCE: Table = {
    1: ("kind", text),
    2: ("namespace", text),
    3: ("name", text),
    4: ("uid", text),
    5: ("apiVersion", text),
    6: ("resourceVersion", text),
    7: ("fieldPath", text),
}
_TAINT: Table = {1: ("key", text), 2: ("value", text), 3: ("effect", text), 4: ("timeAdded", time)}
_NODE_CONDITION: Table = {
    1: ("type", text),
    2: ("status", text),
    3: ("lastHeartbeatTime", time),
    4: ("lastTransitionTime", time),
    5: ("reason", text),
    6: ("message", text),
}
_NODE_INFO: Table = {
    1: ("machineID", text),
    3: ("bootID", text),
    4: ("kernelVersion", text),
    5: ("osImage", text),
}


def _with_metadata(rest: Table) -> Table:
    return {1: ("metadata", message(_METADATA)), **rest}


_KINDS: dict[tuple[str, str], Table] = {
    ("v1", "Namespace"): _with_metadata(
        {2: ("spec", message({1: ("finalizers", Many(text))})), 3: ("status", message({1: ("phase", text)}))}
    ),
    ("v1", "Node"): _with_metadata(
        {
            2: (
                "spec",
                message(
                    {
                        1: ("podCIDR", text),
                        3: ("providerID", text),
                        4: ("unschedulable", flag),
                        5: ("taints", Many(message(_TAINT))),
                    }
                ),
            ),
            3: (
                "status",
                message(
                    {
                        4: ("conditions", Many(message(_NODE_CONDITION))),
                        5: ("addresses", Many(message({1: ("type", text), 2: ("address", text)}))),
                        7: ("nodeInfo", message(_NODE_INFO)),
                    }
                ),
            ),
        }
    ),
    ("v1", "Event"): _with_metadata(
        {
            2: ("involvedObject", message(_REFERENCE)),
            3: ("reason", text),
            4: ("message", text),
            5: ("source", message({1: ("component", text), 2: ("host", text)})),
            6: ("firstTimestamp", time),
            7: ("lastTimestamp", time),
            8: ("count", integer),
            9: ("type", text),
            10: ("eventTime", micro_time),
            11: ("series", message({1: ("count", integer), 2: ("lastObservedTime", micro_time)})),
            12: ("action", text),
            13: ("related", message(_REFERENCE)),
            14: ("reportingComponent", text),
            15: ("reportingInstance", text),
        }
    ),
    ("v1", "PersistentVolumeClaim"): _with_metadata(
        {
            2: (
                "spec",
                message(
                    {
                        1: ("accessModes", Many(text)),
                        2: ("resources", message({2: ("requests", Map(quantity))})),
                        3: ("volumeName", text),
                        5: ("storageClassName", text),
                        6: ("volumeMode", text),
                    }
                ),
            ),
            3: ("status", message({1: ("phase", text), 3: ("capacity", Map(quantity))})),
        }
    ),
    ("coordination.k8s.io/v1", "Lease"): _with_metadata(
        {
            2: (
                "spec",
                message(
                    {
                        1: ("holderIdentity", text),
                        2: ("leaseDurationSeconds", integer),
                        3: ("acquireTime", micro_time),
                        4: ("renewTime", micro_time),
                        5: ("leaseTransitions", integer),
                    }
                ),
            )
        }
    ),
}

"""Whether a node that its agent registered is Ready.

| Lease of the agent                                     | Ready                          |
|--------------------------------------------------------|--------------------------------|
| seen to change within ``agent.leaseDuration``          | True, AgentReady               |
| not                                                    | Unknown, AgentSilent           |
| never there, and the node is older than that           | Unknown, AgentSilent           |
| never there, and the node is young                     | as it is                       |

Nodes without the label are a kubelet's, and left alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from quorate.api import labels, names
from quorate.api.cluster_config import ClusterConfig, ClusterConfigSpec
from quorate.api.core import Lease, Node
from quorate.api.core.node import NodeCondition
from quorate.api.meta import NodeName
from quorate.api.struct import replace
from quorate.engine import NOTHING, Controller, Key, PatchStatus, Plan, PlanEvent, Reader, Watch, look_again, no_keys

READY = "Ready"
AGENT_READY = "AgentReady"
AGENT_SILENT = "AgentSilent"

_LEASE_PREFIX = names.agent_lease(NodeName(""))


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node, and how long its agent has been silent."""

    node: Node
    #: Seconds since we saw the Lease change; None: there is none.
    silence: float | None
    #: Seconds of silence after which an agent counts as gone.
    patience: float


def observe(reader: Reader, key: Key) -> NodeView | None:
    """Gather what matters for one node."""
    node = reader.get(Node, key.name)
    if node is None or node.deleting or labels.REGISTERED not in node.metadata.labels:
        return None
    config = reader.get(ClusterConfig, names.CLUSTER)
    spec = config.spec if config is not None else ClusterConfigSpec()
    silence = reader.silent_for(Lease, names.agent_lease(NodeName(node.name)), names.NAMESPACE)
    return NodeView(node, silence, spec.agent.lease_duration.seconds)


def decide(view: NodeView, now: datetime, _: Random) -> Plan:
    """Say whether the node is Ready, and look again when that could change."""
    left = view.patience - (view.silence if view.silence is not None else _age(view.node, now))
    if view.silence is None and left > 0:
        return Plan(requeue_after=left)
    if left > 0:
        message = "The node's agent renews its Lease."
        return _report(view.node, _condition("True", AGENT_READY, message, now), requeue_after=look_again(left))
    message = f"The node's agent has not renewed its Lease for {view.patience:g} s or more."
    return _report(view.node, _condition("Unknown", AGENT_SILENT, message, now), requeue_after=None)


def _age(node: Node, now: datetime) -> float:
    created = node.metadata.creation_timestamp
    return (now - created) / timedelta(seconds=1) if created is not None else 0.0


def _condition(status: str, reason: str, message: str, now: datetime) -> NodeCondition:
    return NodeCondition(type=READY, status=status, reason=reason, message=message, last_transition_time=now)


def _report(node: Node, ready: NodeCondition, requeue_after: float | None) -> Plan:
    before = next((condition for condition in node.status.conditions if condition.type == READY), None)
    if before is not None and (before.status, before.reason) == (ready.status, ready.reason):
        return Plan(requeue_after=requeue_after) if requeue_after is not None else NOTHING
    if before is not None and before.status == ready.status:
        ready = replace(ready, last_transition_time=before.last_transition_time)
    others = tuple(condition for condition in node.status.conditions if condition.type != READY)
    status = replace(node.status, conditions=(*others, ready))
    return Plan(
        status=PatchStatus(node, replace(node, status=status)),
        events=(PlanEvent(node, ready.reason, ready.message, warning=ready.reason == AGENT_SILENT),),
        requeue_after=requeue_after,
    )


def _of_lease(lease: Lease) -> Iterable[Key]:
    if lease.namespace != names.NAMESPACE or not lease.name.startswith(_LEASE_PREFIX):
        return ()
    return (Key("", lease.name.removeprefix(_LEASE_PREFIX)),)


READINESS = Controller(
    name="node-readiness",
    watches=(Watch(Node), Watch(Lease, _of_lease), Watch(ClusterConfig, no_keys)),
    observe=observe,
    decide=decide,
    freshness=(Lease,),
)

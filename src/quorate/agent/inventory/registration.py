"""Registers the node: makes its core Node and keeps it like the machine. A part for the embedded engine only.

On Kubernetes the kubelet owns Node. Here the agent makes it, marks it as its own with a label, and reports addresses
and what runs on it. Whether it is Ready is said by the leader, which sees whether the agent's Lease is renewed
(``quorate.nodes``); the agent only says so the first time, so that a new node does not have to wait for that.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any, Final

from quorate.agent.backoff import wait_before_retry
from quorate.agent.machine import Machine
from quorate.agent.node import Node
from quorate.agent.steps import Look
from quorate.api import labels
from quorate.api.core import Node as CoreNode
from quorate.api.core.node import NodeAddress, NodeCondition, NodeStatus, NodeSystemInfo
from quorate.api.meta import NodeName, ObjectMeta
from quorate.api.struct import replace
from quorate.engine import NOTHING, Controller, Create, Key, Patch, PatchStatus, Plan, Reader, Signal, Watch
from quorate.engine.logs import get_logger

log = get_logger(__name__)

HOSTNAME: Final = "kubernetes.io/hostname"
READY: Final = "Ready"

_LOOK: Final = "host"
_WORK: Final = "look/host"


@dataclass(frozen=True, slots=True)
class NodeView:
    """The node as an object and as a machine."""

    name: NodeName
    node: CoreNode | None
    #: None: nobody has looked yet.
    info: NodeSystemInfo | None
    #: Seconds before it is tried again, after a look that failed.
    pause: float = 0.0


@dataclass(frozen=True, slots=True)
class Registration:
    """A part of an agent. Hand it to the agent where it is to register its node."""

    #: What others reach the node by.
    address: str
    #: Where it stands: zone, room, rack, tenant, and whatever else a person says of it.
    labels: Mapping[str, str] = field(default_factory=dict)

    def controllers(self, node: Node) -> tuple[Controller[Any], ...]:
        """What the manager runs."""
        signal, key = Signal(), Key("", node.name)
        seen: list[NodeSystemInfo] = []

        async def look(_: str) -> None:
            seen[:] = [await read_info(node.machine, node.settings.proc)]

        def observe(reader: Reader, _: Key) -> NodeView | None:
            found = reader.get(CoreNode, node.name)
            pause = wait_before_retry(node.memory.last(_WORK, Look(_LOOK).purpose), node.clock.now())
            return NodeView(node.name, found, seen[0] if seen else None, pause)

        def decide(view: NodeView, now: datetime, _: Random) -> Plan:
            if view.info is None and view.pause:
                return Plan(requeue_after=view.pause)
            if view.info is None:
                return Plan(effects=(node.work(_WORK, (Look(_LOOK),), signal, key),))
            return register(view, self, now)

        node.hands.lookers[_LOOK] = look
        return (
            Controller(
                name="inventory-node",
                watches=(Watch(CoreNode),),
                observe=observe,
                decide=decide,
                always=(key,),
                signals=(signal,),
                workers=1,
            ),
        )

    def tasks(self, node: Node) -> tuple[Coroutine[Any, Any, None], ...]:
        """Nothing: what is seen of the machine stays as it is until it boots again."""
        return ()


def register(view: NodeView, registration: Registration, now: datetime) -> Plan:
    """Make the Node, or bring it up to date. Pure."""
    given = {HOSTNAME: view.name, **registration.labels, labels.REGISTERED: "agent"}
    if view.node is None:
        return Plan(writes=(Create(CoreNode(metadata=ObjectMeta(name=view.name, labels=given))),))
    node = view.node
    if node.deleting:
        return NOTHING
    metadata = replace(node.metadata, labels={**node.metadata.labels, **given})
    status = NodeStatus(
        addresses=(
            NodeAddress(type="InternalIP", address=registration.address),
            NodeAddress(type="Hostname", address=view.name),
        ),
        conditions=node.status.conditions or (_ready(now),),
        node_info=view.info,
    )
    return Plan(
        writes=(Patch(node, replace(node, metadata=metadata)),), status=PatchStatus(node, replace(node, status=status))
    )


async def read_info(machine: Machine, proc: str) -> NodeSystemInfo:
    """What runs on the machine; a file that is not there says nothing."""
    return NodeSystemInfo(
        boot_id=await _text(machine, f"{proc}/sys/kernel/random/boot_id"),
        machine_id=await _text(machine, "/etc/machine-id"),
        kernel_version=await _text(machine, f"{proc}/sys/kernel/osrelease"),
        os_image=_pretty_name(await _text(machine, "/etc/os-release")),
    )


def _ready(now: datetime) -> NodeCondition:
    return NodeCondition(
        type=READY,
        status="True",
        reason="AgentReady",
        message="The node's agent has registered it.",
        last_transition_time=now,
        last_heartbeat_time=now,
    )


def _pretty_name(os_release: str) -> str:
    for line in os_release.splitlines():
        name, _, value = line.partition("=")
        if name == "PRETTY_NAME":
            return value.strip().strip("\"'")
    return ""


async def _text(machine: Machine, path: str) -> str:
    try:
        return (await machine.read_file(path)).decode(errors="replace").strip()
    except OSError:
        return ""

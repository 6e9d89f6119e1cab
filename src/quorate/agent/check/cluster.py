"""What the API server says to an agent: whether it answers, what may be done there, and who else works on the node."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass, field

from quorate.agent.own_objects import LABELLED
from quorate.api import labels, names
from quorate.api.baremetal import Drive
from quorate.api.cluster_config import ClusterConfig, DrbdSettings
from quorate.api.core import Lease, Node
from quorate.api.meta import NodeName, Resource
from quorate.engine.selectors import match
from quorate.engine.store import Store
from quorate.errors import Forbidden, NotFound, QuorateError, Unauthorized

#: No object can have this name; a server that lets us write says that there is none.
_NOBODY = "quorate-check.quorate.io"


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What was answered."""

    #: Why the server cannot be used at all; "" when it can.
    problem: str = ""
    #: What may not be done, such as "patch drives.csi-baremetal.dell.com".
    forbidden: tuple[str, ...] = ()
    #: What is not served, such as "drives.csi-baremetal.dell.com".
    not_served: tuple[str, ...] = ()
    #: Whether there is a Node object of the node's name, and its InternalIP addresses.
    node_known: bool = False
    internal_addresses: tuple[str, ...] = ()
    drbd: DrbdSettings = field(default_factory=DrbdSettings)
    lease_holder: str = ""
    lease_renewed: str = ""


async def gather_cluster(store: Store, node: NodeName) -> ClusterFacts:
    """Ask, and change nothing: what is written is written to no object, as a dry run."""
    config = node_object = lease = None
    try:
        config = await _found(store.get(ClusterConfig, names.CLUSTER))
        node_object = await _found(store.get(Node, node))
        lease = await _found(store.get(Lease, names.agent_lease(node), names.NAMESPACE))
    except Forbidden:
        pass  # the questions below say what exactly
    except QuorateError as error:
        return ClusterFacts(problem=str(error))
    forbidden, not_served = [], []
    for cls in LABELLED:
        kind = cls.KIND.qualified_resource
        answer = await _answer(store.list(cls, labels=match({labels.NODE: node})))
        if isinstance(answer, NotFound):
            not_served.append(kind)
        elif answer is not None:
            forbidden.append(f"list {kind}")
    for verb, cls, namespace, status in _writes():
        patched = store.patch_status if status else store.patch
        answer = await _answer(patched(cls, _NOBODY, namespace, patch={}, dry_run=True))
        if isinstance(answer, Forbidden | Unauthorized):
            forbidden.append(f"{verb} {cls.KIND.qualified_resource}")
    spec = lease.spec if isinstance(lease, Lease) else None
    return ClusterFacts(
        forbidden=tuple(forbidden),
        not_served=tuple(not_served),
        node_known=isinstance(node_object, Node),
        internal_addresses=tuple(
            address.address
            for address in (node_object.status.addresses if isinstance(node_object, Node) else ())
            if address.type == "InternalIP"
        ),
        drbd=config.spec.drbd if isinstance(config, ClusterConfig) else DrbdSettings(),
        lease_holder=(spec.holder_identity or "") if spec is not None else "",
        lease_renewed=(spec.renew_time or "") if spec is not None else "",
    )


def _writes() -> list[tuple[str, type[Resource], str, bool]]:
    """Verb, kind, namespace, and whether it is the status: what an agent cannot do without."""
    of_status = [("patch the status of", cls, "", True) for cls in LABELLED]
    return [*of_status, ("patch", Drive, "", False), ("patch", Lease, names.NAMESPACE, False)]


async def _found(request: Awaitable[Resource]) -> Resource | None:
    try:
        return await request
    except NotFound:
        return None


async def _answer(request: Awaitable[object]) -> QuorateError | None:
    """The server's refusal, if it refused."""
    try:
        await request
    except QuorateError as error:
        return error
    return None

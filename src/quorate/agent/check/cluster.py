"""What the API server says to an agent: whether it answers, what may be done there, and who else works on the node."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from quorate.agent.own_objects import LABELLED
from quorate.api import labels, names
from quorate.api.baremetal import Drive
from quorate.api.cluster_config import ClusterConfig, DrbdSettings
from quorate.api.core import Lease, Node
from quorate.api.meta import NodeName, Resource
from quorate.engine.selectors import match
from quorate.engine.store import Store
from quorate.errors import Forbidden, NotFound, QuorateError, StoreUnreachable, Unauthorized

T = TypeVar("T")

#: No object can have this name; a server that lets us write says that there is none.
_NOBODY = "quorate-check.quorate.io"

_UNREACHABLE: Final = (
    "see --kubeconfig: its server and authority; whether the server runs, and can be reached from here"
)
_UNKNOWN: Final = (
    "see --kubeconfig: its token or certificate, which may have been taken back; on a `quorate up` another one comes"
    " with `quorate node invite NODE` there, and the command that it prints here (or by hand: `quorate kubeconfig"
    " --agent NODE`, for a node that has not joined)"
)
_BROKEN: Final = "see the server's log; if it is only busy, try again"
_REFUSED: Final = (
    'do what it says; if it speaks of roles ("cannot ... resource"): kubectl apply -f deploy/admission/agent-role.yaml'
)


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What was answered."""

    #: Why the server cannot be used at all, in its own words where it answered; "" when it can.
    problem: str = ""
    #: What a person can do about that.
    remedy: str = ""
    #: What may not be done, such as "patch drives.csi-baremetal.dell.com", and what the server said to the first of it.
    forbidden: tuple[str, ...] = ()
    refusal: str = ""
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
    try:
        return await _asked(store, node)
    except _ServerUnusable as found:
        return ClusterFacts(problem=found.problem, remedy=found.remedy)


async def _asked(store: Store, node: NodeName) -> ClusterFacts:
    """Raises _ServerUnusable."""
    asked = _Questions()
    config = await asked.read(ClusterConfig, store.get(ClusterConfig, names.CLUSTER))
    node_object = await asked.read(Node, store.get(Node, node))
    lease = await asked.read(Lease, store.get(Lease, names.agent_lease(node), names.NAMESPACE))
    served = {cls: await asked.is_served(cls, store.list(cls, labels=match({labels.NODE: node}))) for cls in LABELLED}
    for verb, cls, namespace, status in _writes():
        patched = store.patch_status if status else store.patch
        await asked.read(cls, patched(cls, _NOBODY, namespace, patch={}, dry_run=True), verb)
    if asked.is_refused_everything:
        raise _ServerUnusable(f"refuses everything: {asked.refusal}", _REFUSED)
    spec = lease.spec if isinstance(lease, Lease) else None
    return ClusterFacts(
        forbidden=tuple(asked.forbidden),
        refusal=asked.refusal,
        not_served=tuple(cls.KIND.qualified_resource for cls, is_served in served.items() if not is_served),
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


class _ServerUnusable(Exception):
    """There is no use in asking this server more."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy


class _Questions:
    """What the server answered; one that does not answer, or not as it should, is _ServerUnusable."""

    def __init__(self) -> None:
        self.forbidden: list[str] = []
        #: The server's words to the first that it forbade.
        self.refusal = ""
        self._number = 0

    @property
    def is_refused_everything(self) -> bool:
        """It is not that one thing or another may not be done: this server does not want us at all."""
        return len(self.forbidden) == self._number

    async def read(self, cls: type[Resource], request: Awaitable[Resource], verb: str = "get") -> Resource | None:
        """What was asked for; None also where there is none, or it may not be read."""
        try:
            return await self._answer(f"{verb} {cls.KIND.qualified_resource}", request)
        except NotFound:
            return None

    async def is_served(self, cls: type[Resource], request: Awaitable[object]) -> bool:
        """Whether the server knows the kind."""
        try:
            await self._answer(f"list {cls.KIND.qualified_resource}", request)
        except NotFound:
            return False
        return True

    async def _answer(self, what: str, request: Awaitable[T]) -> T | None:
        self._number += 1
        try:
            return await request
        except NotFound:
            raise
        except Forbidden as error:
            self.forbidden.append(what)
            self.refusal = self.refusal or str(error)
            return None
        except Unauthorized as error:
            raise _ServerUnusable(f"does not know us: {error}", _UNKNOWN) from None
        except StoreUnreachable as error:
            raise _ServerUnusable(str(error), _UNREACHABLE) from None
        except QuorateError as error:
            raise _ServerUnusable(f"could not {what}: {error}", _BROKEN) from None

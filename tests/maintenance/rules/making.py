"""Small clusters, requests and locks for the tests of the rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from quorate.api.duration import Duration
from quorate.api.maintenance.action import ActionType, AvailabilityMode, HostState, TenantPolicy
from quorate.api.maintenance.broker_config import BrokerConfigSpec, Limits
from quorate.maintenance.entries import NotificationEntry, PermissionEntry, RequestEntry
from quorate.maintenance.evaluation import Evaluation
from quorate.maintenance.messages import Action
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.moments import SECOND, later
from quorate.maintenance.nouns import DriveId, DriveInfo, GroupInfo, NodeInfo, Species, VDiskId, VDiskInfo
from quorate.maintenance.rules import evaluate

MAX, KEEP, FORCE = (
    AvailabilityMode.MAX_AVAILABILITY,
    AvailabilityMode.KEEP_AVAILABLE,
    AvailabilityMode.FORCE_RESTART,
)
UP, DOWN, RESTART, UNKNOWN = HostState.UP, HostState.DOWN, HostState.RESTART, HostState.UNKNOWN
NOW = 1_800_000_000 * SECOND
MINUTE = 60 * SECOND
NO_LIMITS = Limits(disabled_nodes_limit=0, disabled_nodes_ratio_limit=0)


def settings(cluster: Limits = NO_LIMITS, tenant: Limits = NO_LIMITS) -> BrokerConfigSpec:
    """Five minutes to retry, ten for a permission that nobody gave a time."""
    return BrokerConfigSpec(
        default_retry_time=Duration("5m"),
        default_permission_duration=Duration("10m"),
        cluster_limits=cluster,
        tenant_limits=tenant,
    )


class Scene:
    """A cluster of nodes h1, h2, … with a drive each, and what happens on it."""

    def __init__(
        self, nodes: int = 8, *, config: BrokerConfigSpec | None = None, tenants: Mapping[int, str] = {}
    ) -> None:
        self.model = ClusterModel(config or settings())
        self.now = NOW
        self._given = 0
        for number in range(1, nodes + 1):
            self.node(number, tenant=tenants.get(number, ""))
            self.model.put_drive(DriveInfo(id=DriveId(number, 1), path="/dev/sdb"))

    def node(self, number: int, **facts: Any) -> None:
        """A node that is said to be down is surely down, as in a description."""
        facts.setdefault("surely_down", facts.get("state") is DOWN)
        self.model.put_node(NodeInfo(id=number, **{"host": f"h{number}", **facts}))

    def group(
        self, nodes: Sequence[int], species: Species = Species.BLOCK_4_2, *, group: int = 0, down: Iterable[int] = ()
    ) -> None:
        """A group with a part on the first drive of each node; those on some nodes are down."""
        parts = tuple(
            VDiskInfo(
                id=part(domain, group=group, realm=domain // 3 if species is Species.MIRROR_3_DC else 0),
                node=node,
                drives=(DriveId(node, 1),),
                state=DOWN if node in down else UP,
            )
            for domain, node in enumerate(nodes)
        )
        self.model.put_group(GroupInfo(id=group, species=species, vdisks=parts))

    def ask(self, *actions: Action | str, now: int | None = None, **kwargs: Any) -> Evaluation:
        """May these be done? A text is a host to be shut down for a minute."""
        return evaluate(self.model, request(*actions, **kwargs), self.now if now is None else now)

    def hold(self, action: Action | str, *, lasts: int = 10 * MINUTE, owner: str = "bob") -> PermissionEntry:
        """A permission for it is in force."""
        self._given += 1
        permission = PermissionEntry(
            id=f"{owner}-p-{self._given}",
            order=self._given,
            owner=owner,
            action=as_action(action),
            deadline=later(self.now, lasts) if lasts >= 0 else self.now + lasts,
            granted_at=self.now,
        )
        self.model.hold(permission)
        return permission

    def announce(self, *actions: Action | str, begins: int = 0) -> NotificationEntry:
        """Carol said that this will happen, so long from now."""
        self._given += 1
        notification = NotificationEntry(
            id=f"carol-n-{self._given}",
            order=self._given,
            owner="carol",
            actions=tuple(map(as_action, actions)),
            time=self.now + begins,
            reason="",
        )
        self.model.announce(notification)
        return notification

    def queue(self, *actions: Action | str, order: int, blocking: bool = True, **kwargs: Any) -> RequestEntry:
        """Somebody's request is stored."""
        entry = request(*actions, order=order, **kwargs)
        self.model.queue(entry, blocking=blocking)
        return entry


def part(domain: int, *, group: int = 0, realm: int = 0, number: int = 0) -> VDiskId:
    """A part of a group."""
    return VDiskId(group, 1, realm, domain, number)


def shut_down(host: str, duration: int | None = MINUTE) -> Action:
    """SHUTDOWN_HOST."""
    return Action(type=ActionType.SHUTDOWN_HOST, host=host, duration=duration)


def restart(host: str, *services: str) -> Action:
    """RESTART_SERVICES."""
    return Action(type=ActionType.RESTART_SERVICES, host=host, services=services, duration=MINUTE)


def replace_devices(*devices: str, host: str = "") -> Action:
    """REPLACE_DEVICES."""
    return Action(type=ActionType.REPLACE_DEVICES, host=host, devices=devices, duration=MINUTE)


def as_action(action: Action | str) -> Action:
    return shut_down(action) if isinstance(action, str) else action


def request(
    *actions: Action | str,
    mode: AvailabilityMode = MAX,
    partial: bool = False,
    policy: TenantPolicy = TenantPolicy.DEFAULT,
    order: int = 100,
    priority: int = 0,
    duration: int | None = None,
    owner: str = "alice",
) -> RequestEntry:
    """Alice's, the hundredth."""
    return RequestEntry(
        id=f"{owner}-r-{order}",
        order=order,
        owner=owner,
        actions=tuple(map(as_action, actions)),
        partial_permission_allowed=partial,
        reason="",
        duration=duration,
        tenant_policy=policy,
        availability_mode=mode,
        priority=priority,
        stored_at=NOW,
        renewed_at=NOW,
        last_deadline=NOW,
    )


def granted(answer: Evaluation) -> list[str]:
    """The hosts that may go."""
    return [grant.action.host for grant in answer.grants]

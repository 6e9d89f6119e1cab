"""The state storage: how many of its rings may be away at once.

A ring is away when a node of it is down or locked; it cools down for two minutes after a node of it started. A disabled
ring does no work: nothing is lost with it, but it is missing where a majority is counted.

| mode             | rings away and cooling down, the node's own included           |
|------------------|----------------------------------------------------------------|
| MAX_AVAILABILITY | one                                                            |
| KEEP_AVAILABLE   | with the disabled ones, fewer than half of those to select from |
| FORCE_RESTART    | any number; more than KEEP_AVAILABLE allows is told of          |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from quorate.api.maintenance.action import AvailabilityMode, HostState, IssueType
from quorate.maintenance.model.items import NodeItem
from quorate.maintenance.moments import SECOND, later
from quorate.maintenance.nouns import Ring
from quorate.maintenance.rules.groups import told
from quorate.maintenance.rules.inquiry import Inquiry
from quorate.maintenance.rules.obstacles import Objection, Obstacle, lock_on, weigh

COOL_DOWN: Final = 120 * SECOND


def objection_to_rings(inquiry: Inquiry, node: NodeItem) -> Objection | None:
    """May the rings of this node be away?"""
    rings = inquiry.model.rings
    if not node.rings or rings is None or (inquiry.forced and inquiry.ideal):
        return None
    own = [number for number in node.rings if not rings.rings[number].disabled]
    if not own:
        return None
    others = [(number, ring) for number, ring in enumerate(rings.rings) if number not in node.rings]
    disabled = sum(ring.disabled for _, ring in others)
    found = (_obstacle(inquiry, number, ring) for number, ring in others if not ring.disabled)
    obstacles = [obstacle for obstacle in found if obstacle is not None]

    def allows(left: Sequence[Obstacle]) -> bool:
        away = len(left) + len(own)
        if inquiry.mode is AvailabilityMode.MAX_AVAILABILITY:
            return away <= 1
        return away + disabled <= (rings.to_select - 1) // 2

    if allows(obstacles):
        return None
    if inquiry.ideal and not allows(()):
        obstacles = []  # what cannot go alone, although all is well, is in nobody's way
    unused = f"; {disabled} disabled" if disabled else ""
    if inquiry.forced:
        inquiry.costs.append(
            f"the state storage has no majority without {node.label}, beside {_told(obstacles)}{unused}"
        )
        return None
    message = f"{node.label} has a ring of the state storage, and it cannot go under {inquiry.mode}: "
    return weigh(
        inquiry,
        IssueType.TOO_MANY_UNAVAILABLE_STATE_STORAGE_RINGS,
        message + _told(obstacles) + unused,
        obstacles,
        allows,
    )


def _told(obstacles: Sequence[Obstacle]) -> str:
    return told(obstacles) or "too few rings"


def _obstacle(inquiry: Inquiry, number: int, ring: Ring) -> Obstacle | None:
    """Away counts before cooling down. A ring is back when all its nodes are; whoever asks has a part in it or not."""
    nodes = [inquiry.model.known_node(node) for node in ring.nodes]
    away = [found for node in nodes if (found := _away(inquiry, number, node)) is not None]
    if away:
        own = [found for found in away if found.taken is not None]
        return replace((own or away)[-1], ends=max(found.ends for found in away))
    if inquiry.ideal:
        return None
    cool = later(max((node.info.start_time for node in nodes if node.info is not None), default=0), COOL_DOWN)
    if cool >= inquiry.now:
        return Obstacle(f"ring {number}, cooling down after a start", False, later(cool, 1), until=later(cool, 1))
    return None


def _away(inquiry: Inquiry, number: int, node: NodeItem) -> Obstacle | None:
    lock = lock_on(inquiry, node)
    if lock is not None or node.state is HostState.UP or inquiry.ideal:
        return lock
    return Obstacle(f"{node.label} of ring {number}", False, inquiry.retry_at, name=node.name)

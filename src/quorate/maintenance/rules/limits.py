"""How many nodes of the cluster, and of a tenant, may be away at once.

One node is always allowed by a ratio. FORCE_RESTART passes a limit while nobody else works on a node, or may any moment
begin to: then the limit would allow nothing at all. A node that has been down by permission for longer than was said is
broken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

from quorate.api.maintenance.action import HostState, IssueType, StatusCode, TenantPolicy
from quorate.api.maintenance.broker_config import Limits
from quorate.maintenance.model.counters import Kind, NodeCounter, Standing
from quorate.maintenance.model.items import NodeItem
from quorate.maintenance.model.trial import Tally
from quorate.maintenance.moments import FOREVER
from quorate.maintenance.rules.inquiry import Inquiry
from quorate.maintenance.rules.obstacles import (
    MAX_BLOCKERS,
    Objection,
    Obstacle,
    locks_on,
    queue_moves,
    stored_locks_on,
)


@dataclass(frozen=True, slots=True)
class Survey:
    """A counter as who asks sees it, but for what their own request takes."""

    locked: int
    down: int
    #: Of the locked ones, those with announced work, and when it ends.
    announced: dict[NodeItem, int]


def objection_to_limits(inquiry: Inquiry, node: NodeItem) -> Objection | None:
    """May one more node go? The tenant is asked first."""
    info = node.info
    assert info is not None
    settings = inquiry.model.settings
    counter = inquiry.model.counter_of(info.tenant) if inquiry.tenant_policy is TenantPolicy.DEFAULT else None
    if counter is not None:
        objection = _objection(inquiry, node, counter, settings.tenant_limits)
        if objection is not None:
            return objection
    return _objection(inquiry, node, inquiry.model.cluster, settings.cluster_limits)


def allowed_nodes(limits: Limits, size: int) -> int | None:
    """How many of so many nodes may be away; None: any number."""
    allowed = limits.disabled_nodes_limit or None
    if limits.disabled_nodes_ratio_limit:
        by_ratio = max(1, size * limits.disabled_nodes_ratio_limit // 100)
        allowed = by_ratio if allowed is None else min(allowed, by_ratio)
    return allowed


def _objection(inquiry: Inquiry, node: NodeItem, counter: NodeCounter, limits: Limits) -> Objection | None:
    allowed = allowed_nodes(limits, counter.size)
    if allowed is None:
        return None
    tally = inquiry.trial.tally(counter)
    locked, down = (len(tally.nodes), 0) if inquiry.ideal else _others(inquiry, node, counter, tally)
    if locked + down < allowed:
        return None
    if inquiry.forced and next(_work_of_others(inquiry, counter, tally), None) is None:
        if not inquiry.ideal:
            inquiry.costs.append(f"{_away(counter, locked, down, allowed)}, and {node.label} is one more")
        return None
    issue = IssueType.TENANT_DISABLED_NODES_LIMIT_REACHED if counter.tenant else IssueType.DISABLED_NODES_LIMIT_REACHED
    message = f"{node.label} cannot go: {_away(counter, locked, down, allowed)}"
    own = chain.from_iterable(locks_on(inquiry, taken) for taken in islice(tally.nodes, MAX_BLOCKERS))
    if inquiry.ideal:
        return Objection(StatusCode.DISALLOW_TEMP, issue, message, tuple(own))
    obstacles = (*islice(own, MAX_BLOCKERS), *_first_few(inquiry, counter))
    deadline = _deadline(inquiry, counter, locked, down, allowed)
    return Objection(StatusCode.DISALLOW_TEMP, issue, message, obstacles, deadline)


def _away(counter: NodeCounter, locked: int, down: int, allowed: int) -> str:
    whose = f"of tenant {counter.tenant}" if counter.tenant else "in the cluster"
    return (
        f"{allowed} of {counter.size} nodes {whose} may be away, and {locked + down} are: {locked} locked, {down} down"
    )


def _work_of_others(inquiry: Inquiry, counter: NodeCounter, tally: Tally) -> Iterator[int]:
    """When each that somebody else works on, or may begin to, is free: another action of the request is somebody."""
    yield from (inquiry.end_of(taken) for taken in tally.nodes.values() if not inquiry.is_own(taken))
    if inquiry.ideal:
        return
    yield from (end for node, end in _survey(inquiry, counter).announced.items() if node not in tally.nodes)
    for standing, nodes in counter.standings():
        if standing.kind is not Kind.ANNOUNCED and _is_locked(inquiry, standing):
            for node in map(inquiry.model.known_node, nodes):
                ends = [lock.ends for lock in stored_locks_on(inquiry, node) if not lock.overdue]
                if ends:
                    yield max(ends)


def _others(inquiry: Inquiry, node: NodeItem, counter: NodeCounter, tally: Tally) -> tuple[int, int]:
    """How many others are locked, and how many are only down."""
    survey = _survey(inquiry, counter)
    # Announced work may concern this action and not the shorter one that took the node: it is one lock, not two.
    twice = [taken for taken in tally.nodes if taken in survey.announced] if survey.announced else []
    locked = survey.locked + len(tally.nodes) - len(twice)
    down = survey.down - tally.down + sum(taken.state is HostState.DOWN for taken in twice)
    return locked, down - (node.state is HostState.DOWN)


def _survey(inquiry: Inquiry, counter: NodeCounter) -> Survey:
    """Once for all actions of a request that take the same time: usually all of them."""
    known = inquiry.memory.get((counter, inquiry.horizon))
    if isinstance(known, Survey):
        return known
    locked = down = 0
    announced: dict[NodeItem, int] = {}
    for standing, nodes in counter.standings():
        if standing.kind is Kind.ANNOUNCED:
            ends = {node: _end(inquiry, node) for node in map(inquiry.model.known_node, nodes)}
            overlapping = {node: end for node, end in ends.items() if end is not None}
            announced |= overlapping
            locked += len(overlapping)
            down += standing.down * (len(nodes) - len(overlapping))
        elif _is_locked(inquiry, standing):
            locked += len(nodes)
        else:
            down += standing.down * len(nodes)
    survey = inquiry.memory[counter, inquiry.horizon] = Survey(locked, down, announced)
    return survey


def _end(inquiry: Inquiry, node: NodeItem) -> int | None:
    return max((lock.ends for lock in stored_locks_on(inquiry, node)), default=None)


def _is_locked(inquiry: Inquiry, standing: Standing) -> bool:
    if standing.kind is Kind.QUEUED:
        return inquiry.behind and inquiry.model.rank_of(standing.request) < inquiry.rank
    return standing.kind is Kind.HELD


def _deadline(inquiry: Inquiry, counter: NodeCounter, locked: int, down: int, allowed: int) -> int:
    """When few enough are away, if all goes as planned; by force, also when nobody works on any."""
    tally = inquiry.trial.tally(counter)
    ends = [*_ends(inquiry, counter), *map(inquiry.end_of, tally.nodes.values())]
    free = max(_work_of_others(inquiry, counter, tally)) if inquiry.forced else FOREVER
    # Of those that are down nobody knows.
    ends += [inquiry.retry_at] * down
    return min(free, sorted(ends)[locked + down - allowed])


def _ends(inquiry: Inquiry, counter: NodeCounter) -> list[int]:
    """When the nodes that others have locked will be free, as far as anybody knows."""
    known = inquiry.memory.get((counter, inquiry.horizon, "ends"))
    if isinstance(known, list):
        return known
    ends = list(_survey(inquiry, counter).announced.values())
    for standing, nodes in counter.standings():
        if standing.kind is Kind.HELD:
            ends += [_held_until(inquiry, inquiry.model.known_node(node)) for node in nodes]
        elif standing.kind is Kind.QUEUED and _is_locked(inquiry, standing):
            ends += [queue_moves(inquiry, standing.request)] * len(nodes)
    inquiry.memory[counter, inquiry.horizon, "ends"] = ends
    return ends


def _held_until(inquiry: Inquiry, node: NodeItem) -> int:
    """There may be hundreds, so the usual case is short: one permission, and nothing else."""
    locks = node.locks
    if locks is not None and len(locks.held) == 1 and not (locks.announced or locks.queued):
        deadline = locks.held[0].deadline
        if inquiry.now < deadline < FOREVER:
            return deadline
    return _end(inquiry, node) or inquiry.retry_at


def _first_few(inquiry: Inquiry, counter: NodeCounter) -> tuple[Obstacle, ...]:
    """What others have locked, or is away; remembered for the request's next action."""
    known = inquiry.memory.get((counter, inquiry.horizon, "first few"))
    if not isinstance(known, tuple):
        nodes = (inquiry.model.known_node(node) for _, nodes in counter.standings() for node in nodes)
        found = (_obstacle(inquiry, node) for node in nodes)
        known = tuple(islice((obstacle for obstacle in found if obstacle is not None), MAX_BLOCKERS))
        inquiry.memory[counter, inquiry.horizon, "first few"] = known
    return known


def _obstacle(inquiry: Inquiry, node: NodeItem) -> Obstacle | None:
    lock = next(stored_locks_on(inquiry, node), None)
    if lock is None and node.state is HostState.DOWN:
        return Obstacle(node.label, False, inquiry.retry_at, name=node.name)
    return lock

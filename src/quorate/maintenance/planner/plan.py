"""Plans as the broker tells them.

Asking about thousands of hosts takes a while, and the broker has others to answer: they are let through all the time,
and what needs nothing but numbers (the colouring, the bounds) runs in a thread. The cluster may change meanwhile. A
plan is advice; what is permitted is decided when somebody asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from quorate.api.maintenance.action import ActionType, AvailabilityMode, TenantPolicy
from quorate.maintenance.entries import RequestEntry
from quorate.maintenance.evaluation import Refusal
from quorate.maintenance.messages import Action
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.planner import together
from quorate.maintenance.planner.bounds import Bound, lower_bound, upper_bound
from quorate.maintenance.planner.colouring import colour
from quorate.maintenance.planner.extraction import problem
from quorate.maintenance.slices import Disturbed, weigh

#: Hosts asked about before others are let through.
BREATH: Final = 10
#: How often hosts that a round could not take after all are planned anew, before they go one by one.
ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class Question:
    """Which hosts, and how much may be spent on them."""

    hosts: tuple[str, ...]
    mode: AvailabilityMode
    tenant_policy: TenantPolicy
    #: How long each is away; None: as usual.
    duration: int | None
    #: The place in the queue that asking for real would get.
    order: int
    owner: str = ""

    def request(self, hosts: Sequence[str]) -> RequestEntry:
        """As it would be asked."""
        return RequestEntry(
            id="",
            order=self.order,
            owner=self.owner,
            actions=tuple(Action(type=ActionType.SHUTDOWN_HOST, host=host, duration=self.duration) for host in hosts),
            partial_permission_allowed=True,
            reason="",
            duration=None,
            tenant_policy=self.tenant_policy,
            availability_mode=self.mode,
            priority=0,
            stored_at=0,
            renewed_at=0,
            last_deadline=0,
        )


@dataclass(frozen=True, slots=True)
class Planned:
    """Rounds, how few there can be at all, and who cannot go for now."""

    rounds: tuple[tuple[str, ...], ...]
    bound: Bound
    blocked: tuple[Refusal, ...]


@dataclass(frozen=True, slots=True)
class Together:
    """Hosts that may all stop now, how many could at most, and who may not."""

    hosts: tuple[str, ...]
    at_most: int
    refused: tuple[Refusal, ...]


async def plan(model: ClusterModel, question: Question, now: int) -> Planned:
    """In how many rounds can these hosts be served?"""
    hosts, blocked = await _possible(model, question, now)
    numbers = problem(model, hosts, question.mode, question.tenant_policy)
    bound = await asyncio.to_thread(lower_bound, numbers)
    rounds: list[tuple[str, ...]] = []
    left = hosts
    for _ in range(ATTEMPTS):
        if not left:
            break
        numbers = problem(model, left, question.mode, question.tenant_policy)
        coloured = await asyncio.to_thread(colour, numbers)
        again: list[str] = []
        for each in coloured:
            granted, refused = await _weighed(model, question, [left[number] for number in each], now)
            rounds += [granted] if granted else []
            again += refused
        left = [host for host in left if host in set(again)]
    rounds += [(host,) for host in left]
    return Planned(tuple(rounds), bound, blocked)


async def ok_to_stop(model: ClusterModel, question: Question, now: int) -> Together:
    """Which of these hosts may stop now, all at once?"""
    hosts, refused = await _possible(model, question, now)
    numbers = problem(model, hosts, question.mode, question.tenant_policy)
    chosen = await asyncio.to_thread(together.largest, numbers)
    at_most = await asyncio.to_thread(upper_bound, numbers)
    granted, _ = await _weighed(model, question, [hosts[number] for number in chosen], now)
    return Together(granted, at_most, refused)


async def _possible(model: ClusterModel, question: Question, now: int) -> tuple[list[str], tuple[Refusal, ...]]:
    """Those that might go if they went alone, and the others."""
    possible: list[str] = []
    blocked: list[Refusal] = []
    for number, host in enumerate(dict.fromkeys(question.hosts)):
        if number % BREATH == 0:
            await asyncio.sleep(0)
        found = await weigh(model, question.request((host,)), now)
        if found.refusals:
            blocked += found.refusals
        else:
            possible.append(host)
    return possible, tuple(blocked)


async def _weighed(
    model: ClusterModel, question: Question, hosts: Sequence[str], now: int
) -> tuple[tuple[str, ...], list[str]]:
    """The rules' own answer to a round: who may go, and who may not after all."""
    await asyncio.sleep(0)
    found = await weigh(model, question.request(hosts), now)
    if found.put_off:
        raise Disturbed(f"the cluster changes too fast for a plan of {len(hosts)} hosts at once")
    return tuple(grant.action.host for grant in found.grants), [refusal.action.host for refusal in found.refusals]

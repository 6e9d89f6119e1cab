"""Plans: asked like anything else, answered beside everything else, one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from quorate.api.maintenance.action import StatusCode
from quorate.api.struct import replace
from quorate.maintenance.broker.answers import OK
from quorate.maintenance.broker.callers import user_of
from quorate.maintenance.broker.core import Core
from quorate.maintenance.broker.declined import Declined
from quorate.maintenance.broker.quotas import longest
from quorate.maintenance.broker.validation import check_span
from quorate.maintenance.evaluation import Refusal
from quorate.maintenance.messages import Action, Caller, OkToStopResponse, PlanRequest, PlanResponse, Round, Status
from quorate.maintenance.moments import later
from quorate.maintenance.planner.plan import Question, ok_to_stop, plan
from quorate.maintenance.rules.stranded import stuck_hosts
from quorate.maintenance.slices import Disturbed


class Planning:
    """What a cluster allows, told in advance."""

    def __init__(self, core: Core) -> None:
        self._core = core
        #: A plan takes seconds on a large cluster: whoever comes meanwhile waits.
        self._one = asyncio.Lock()

    async def plan(self, asked: PlanRequest, caller: Caller) -> PlanResponse:
        """Rounds from now on, each as long as a host is away."""
        async with self._one:
            question, now = self._question(asked, caller), self._core.open()
            try:
                found = await plan(self._core.model, question, now)
            except Disturbed as error:
                raise self._core.busy(f"{error}: ask again, or for fewer") from None
        span = asked.duration or self._core.config.default_permission_duration.microseconds
        rounds = tuple(
            Round(hosts=hosts, start=later(now, number * span), end=later(now, (number + 1) * span))
            for number, hosts in enumerate(found.rounds)
        )
        return PlanResponse(
            status=self._status(question),
            rounds=rounds,
            lower_bound=found.bound.rounds,
            lower_bound_reason=found.bound.reason,
            estimated_end=rounds[-1].end if rounds else now,
            blocked=_told(found.blocked),
        )

    async def ok_to_stop(self, asked: PlanRequest, caller: Caller) -> OkToStopResponse:
        """The largest set."""
        async with self._one:
            question, now = self._question(asked, caller), self._core.open()
            try:
                found = await ok_to_stop(self._core.model, question, now)
            except Disturbed as error:
                raise self._core.busy(f"{error}: ask again, or for fewer") from None
        return OkToStopResponse(
            status=self._status(question),
            hosts=found.hosts,
            upper_bound=found.at_most,
            refused=_told(found.refused),
        )

    def _status(self, question: Question) -> Status:
        """Which of them should go first: nothing else helps them."""
        model, asked = self._core.model, question.hosts
        return replace(
            OK, reason=stuck_hosts(host for host in asked if any(node.stuck for node in model.nodes_of(host)))
        )

    def _question(self, asked: PlanRequest, caller: Caller) -> Question:
        owner = user_of(asked.user, caller)
        check_span("Duration", asked.duration, longest(self._core.config.quotas, owner))
        model = self._core.model
        for host in asked.hosts:
            if not model.nodes_of(host):
                raise Declined(StatusCode.NO_SUCH_HOST, f"there is no host {host!r}: expected a host name or a node id")
        every = (node.host for node in model.nodes())
        return Question(
            hosts=tuple(dict.fromkeys(asked.hosts or every)),
            mode=asked.availability_mode,
            tenant_policy=asked.tenant_policy,
            duration=asked.duration,
            order=self._core.book.counters.requests + 1,
            owner=owner,
        )


def _told(refusals: Iterable[Refusal]) -> tuple[Action, ...]:
    return tuple(replace(refusal.action, issue=refusal.issue) for refusal in refusals)

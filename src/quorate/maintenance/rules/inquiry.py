"""Who asks, when, and how strictly: what every rule needs to know beside the cluster."""

from __future__ import annotations

from typing import Final

from quorate.api.maintenance.action import AvailabilityMode, TenantPolicy
from quorate.maintenance.messages import Action
from quorate.maintenance.model.cluster import ClusterModel
from quorate.maintenance.model.locks import Rank
from quorate.maintenance.model.trial import Taken, Trial
from quorate.maintenance.moments import FOREVER, later

#: What an action costs beside what is asked of its replicas, as a number of replicas.
ACTION_WORK: Final = 10
#: Before everybody in the queue.
FIRST: Final = Rank(-(2**63), 0)


class Inquiry:
    """One request while it is weighed, action by action."""

    __slots__ = (
        "action",
        "behind",
        "costs",
        "horizon",
        "ideal",
        "leaving",
        "memory",
        "mode",
        "model",
        "now",
        "partial",
        "queue_moves",
        "rank",
        "retry_at",
        "taken",
        "tenant_policy",
        "trial",
        "worked",
    )

    def __init__(
        self,
        model: ClusterModel,
        now: int,
        *,
        rank: Rank,
        mode: AvailabilityMode,
        partial: bool,
        tenant_policy: TenantPolicy,
    ) -> None:
        self.model = model
        self.now = now
        self.rank = rank
        self.mode = mode
        self.partial = partial
        self.tenant_policy = tenant_policy
        self.trial = Trial()
        #: Somebody in the queue goes first; if not, places in the queue need not be looked at.
        self.behind = model.queue_before(rank)
        #: As if all were up and nobody had decided anything: only the request itself can stand in its way.
        self.ideal = False
        #: When to look again at what nobody can tell the end of.
        self.retry_at = later(now, model.settings.default_retry_time.microseconds)
        #: Nodes that go down with this very action: while it lasts they do not use their volumes.
        self.leaving: frozenset[int] = frozenset()
        #: What this action spoils, which nothing but force allows.
        self.costs: list[str] = []
        #: What a rule found out and need not find out again for the next action.
        self.memory: dict[object, object] = {}
        #: Of requests that go first, when to look at them again.
        self.queue_moves: dict[str, int] = {}
        #: Replicas that were weighed since somebody last asked how many.
        self.worked = 0
        self.action = -1
        self.horizon = now
        self.taken = Taken(-1, now, now)

    @property
    def forced(self) -> bool:
        """Whatever KEEP_AVAILABLE allows, and more."""
        return self.mode is AvailabilityMode.FORCE_RESTART

    def turn_to(self, action: Action, *, permission_duration: int) -> None:
        """The next action: it may begin until its permission ends, and then takes its time."""
        self.action += 1
        self.costs = []
        self.horizon = later(self.now, action.duration or 0, permission_duration)
        self.taken = Taken(self.action, later(self.now, permission_duration), self.horizon)

    def work(self) -> int:
        """What was done since this was last asked."""
        done, self.worked = self.worked + ACTION_WORK, 0
        return done

    def is_own(self, taken: Taken | None) -> bool:
        """It goes with this very action, by the same permission."""
        return taken is not None and taken.action == self.action

    def concerns(self, taken: Taken) -> bool:
        """A clash with it is the request's own fault, for good.

        It is another action of it, where all must be granted or none; or the same one, which nobody grants in part.
        """
        return not self.partial or self.is_own(taken)

    def end_of(self, taken: Taken) -> int:
        """Granted in part it becomes a permission, and ends; what must be granted together stays in its own way."""
        return FOREVER if self.concerns(taken) else taken.until

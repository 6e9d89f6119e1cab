"""One change of one resource's state: altered, completed, perhaps refused, committed, told.

    change = Change(resource, "role")
    resource.new.role = Role.PRIMARY
    reply = change.commit()

A hard change is a fact and cannot be refused. All else can, and the refusal of changes that the kernel itself asks for
explains recordings that look like chance. A primary in sight of a tie-breaker loses its only diskful peer, with a
numeric quorum of 2. The loss is a fact, and the tie-breaker keeps the quorum. Cleaning up the connection is a second
change, some milliseconds later. If by then an agreement among the remaining members (`twopc`) has shown that the peer
is in nobody's sight, the same count says "1 of 1, need 2": the clean-up would cost the quorum and is refused, again and
again, and the link hangs in NetworkFailure while the volume goes on. If the agreement comes later, the clean-up goes
through, and the next fact finds the quorum lost.
"""

from __future__ import annotations

from quorate.lab.kernel import rules
from quorate.lab.kernel.reply import DONE, Reply
from quorate.lab.kernel.resource import Resource
from quorate.lab.kernel.sanitize import sanitize


class Change:
    """A change in the making; alter the ``new`` states of the resource's parts, then commit or drop."""

    __slots__ = ("hard", "ignore_openers", "recalculate", "resource", "tag")

    def __init__(
        self,
        resource: Resource,
        tag: str,
        *,
        hard: bool = False,
        ignore_openers: bool = False,
        recalculate: bool = False,
    ) -> None:
        self.resource = resource
        self.tag = tag
        self.hard = hard
        self.ignore_openers = ignore_openers
        self.recalculate = recalculate
        resource.begin()

    def _is_empty(self) -> bool:
        return not self.recalculate and all(part.new == part.now for part in self.resource.parts())

    def prepare(self) -> Reply:
        """Complete the new state and ask whether it is allowed. Nothing is decided yet."""
        if self._is_empty():
            return DONE
        sanitize(self.resource, hard=self.hard)
        return DONE if self.hard else rules.check(self.resource, ignore_openers=self.ignore_openers)

    def apply(self) -> None:
        """Make a prepared state the present one, and set in motion what follows."""
        resource = self.resource
        if all(part.new == part.now for part in resource.parts()):
            self.drop()
            return
        for part in resource.parts():
            part.old, part.now = part.now, part.new
        resource.kernel.follow_up(resource, self.tag)

    def drop(self) -> None:
        """Forget the new state."""
        for part in self.resource.parts():
            part.new = part.now

    def commit(self) -> Reply:
        """Prepare, then apply or drop."""
        reply = self.prepare()
        if reply.ok:
            self.apply()
        else:
            self.drop()
        return reply

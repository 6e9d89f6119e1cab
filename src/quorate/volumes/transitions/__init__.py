"""Transitions: how the set of a volume's members changes while it serves.

Each is a walk over revisions of the datamesh, in steps that all members confirm; whatever order they apply a step in,
whoever crashes in between and however the network breaks, at most one side is ever quorate. ``tests`` prove it, step by
step, on the lab's kernel.

    catalogue     which steps each transition is made of; ``changes`` what they do, ``guards`` when they may
    confirmation  who must know, and whom the others need not wait for
    walking       the generic walk from step to step; ``turning`` when it goes back
    proposals     which transition could begin; ``requests`` which replicas should come and go first
    engine        one pass; ``votes`` what the broker asks
"""

from quorate.volumes.transitions.engine import advance
from quorate.volumes.transitions.requests import Deed, Request, requested
from quorate.volumes.transitions.votes import changes_votes, synchronizing_member, unconfirmed_vote_step

__all__ = [
    "Deed",
    "Request",
    "advance",
    "changes_votes",
    "requested",
    "synchronizing_member",
    "unconfirmed_vote_step",
]

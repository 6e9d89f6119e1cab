"""Placement: what a replication level takes, which nodes may give it, and where the replicas of a volume go.

Purpose
    Three questions, each a pure function of what is observed: how many members keep a promise (``layout``), how they
    may spread over zones (``topology``), and which node and disk each takes (``choose``). Two controllers publish what
    the answers depend on: the nodes of a pool, the configuration of a class.

Interactions
    in    ReplicatedStoragePool, ReplicatedStorageClass, LVMVolumeGroup, Node, Lease of agents, ClusterConfig,
          ReplicatedVolume (counted only)
    out   rsp.status, rsc.status; nothing else. Space is asked for and replicas are bound by ``quorate.volumes``, with
          the answer of ``choose``.

Algorithm
    layout        D = FTT+GMDR+1 voters, a tie-breaker iff D is even and FTT = D/2, qmr = GMDR+1
    topology      how many voters a zone may have, and where the tie-breaker may be; whether the rest finds its place
    eligibility   the nodes of a pool: zone, groups, readiness with grace, agent, cordon
    sufficiency   whether a class makes sense, and its pool has what one volume needs
    choose        the four phases: diskful with Local access, diskful, access, tie-breaker
    explain       what became of every candidate

Conditions
    rsp   Ready (``pools``)
    rsc   Ready, StoragePoolReady, ConfigurationRolledOut (``classes``)
    rvr   Scheduled: the reasons that ``choose`` gives, written by the volume reconcilers

Watches
    ``storage-pools`` has one key for all pools; ``storage-classes`` one per class, woken by its pool.
"""

from __future__ import annotations

from typing import Any

from quorate.engine import Controller
from quorate.placement.choose import choose
from quorate.placement.classes import CLASSES
from quorate.placement.explain import Fate, fates
from quorate.placement.grace import grace_left, grace_period, is_ready, not_ready_since
from quorate.placement.layout import LEVELS, Layout, layout_of, majority, text
from quorate.placement.objections import Objection
from quorate.placement.pools import POOLS
from quorate.placement.request import Choice, Placement, Refusal, Replica, Request, Room
from quorate.placement.topology import Rule, Spread, Vacancies

CONTROLLERS: tuple[Controller[Any], ...] = (POOLS, CLASSES)

__all__ = [
    "CONTROLLERS",
    "LEVELS",
    "Choice",
    "Fate",
    "Layout",
    "Objection",
    "Placement",
    "Refusal",
    "Replica",
    "Request",
    "Room",
    "Rule",
    "Spread",
    "Vacancies",
    "choose",
    "fates",
    "grace_left",
    "grace_period",
    "is_ready",
    "layout_of",
    "majority",
    "not_ready_since",
    "text",
]

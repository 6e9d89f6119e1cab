"""Where the replicas of a volume go: the four phases of the seed's ``rvr-scheduling-controller``, from one snapshot.

    1  diskful, access Local     a voter on every node that is to use the volume; if one cannot, none is placed
    2  diskful                   the others, preferably on nodes that are to use the volume
    3  access                    on nodes that are to use the volume and have no replica; neither zone nor space matters
    4  tie-breaker               preferably on a node that is to use the volume, otherwise where it is emptiest

Each voter takes the best candidate whose zone leaves a place for all that are still to come, tie-breaker included
(``topology``): a placement that exists is found, without searching. When not all can be placed, as many voters as
possible are, in order of names; then the tie-breaker; or none at all while the volume forms (``Request.together``).

Why a voter is refused is asked in this order: are there nodes at all, would the topology allow it if every disk had
room, so it is space. Same input, same answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from quorate.api.conditions import Reason
from quorate.api.conditions.rvr import Scheduled
from quorate.api.meta import Bytes, NodeName
from quorate.api.scalars import ReplicaName
from quorate.api.storage.configuration import Topology, VolumeAccess
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rsp import EligibleNode
from quorate.placement import objections
from quorate.placement.candidates import Best, Candidate, best_disk, candidates, spread_of, taken_nodes, vacancies
from quorate.placement.explain import amount, summary
from quorate.placement.layout import layout_of
from quorate.placement.request import Choice, Placement, Refusal, Replica, Request
from quorate.placement.topology import Rule, Vacancies


def choose(request: Request) -> Placement:
    """A place, or the reason why there is none, for every replica that has no place."""
    unplaced = sorted((replica for replica in request.replicas if replica.unplaced), key=lambda replica: replica.name)
    if not unplaced:
        return Placement({}, {})
    if request.nodes is None:
        message = f"ReplicatedStoragePool {request.configuration.replicated_storage_pool_name} lists no nodes yet"
        reason = Scheduled.STORAGE_POOL_NOT_READY
        return Placement({}, {replica.name: Refusal(replica.name, reason, message) for replica in unplaced})
    phases = _Phases(request, request.nodes)
    phases.run(unplaced)
    return Placement(dict(sorted(phases.choices.items())), dict(sorted(phases.refusals.items())))


class _Phases:
    """What one call has decided so far."""

    def __init__(self, request: Request, nodes: tuple[EligibleNode, ...]) -> None:
        self.request = request
        self.nodes = {node.node_name: node for node in nodes}
        self.rule = Rule(request.configuration.topology, layout_of(request.configuration))
        self.spread = spread_of(request)
        self.taken = set(taken_nodes(request))
        self.choices: dict[ReplicaName, Choice] = {}
        self.refusals: dict[ReplicaName, Refusal] = {}
        #: Free nodes, best first.
        self.free: list[Candidate] = []
        #: Whether a place must be left for a tie-breaker.
        self.tie_breaker_follows = False
        #: The first that found no place, for which others wait.
        self.blocker: Refusal | None = None

    def run(self, unplaced: Sequence[Replica]) -> None:
        """All four phases. First come diskful replicas whose node is given: they only need a disk there."""
        pinned = [replica for replica in unplaced if replica.node is not None]
        to_place = [replica for replica in unplaced if replica.node is None]
        diskful = [replica for replica in to_place if replica.type is ReplicaType.DISKFUL]
        access = [replica for replica in to_place if replica.type is ReplicaType.ACCESS]
        tie_breakers = [replica for replica in to_place if replica.type is ReplicaType.TIE_BREAKER]
        for replica in pinned:
            self._place_pinned(replica)
        if diskful or tie_breakers:
            self.free = candidates(self.request)
        possible, self.tie_breaker_follows = self._how_many(len(diskful), bool(tie_breakers))
        rest = self._place_local(diskful, possible)
        self._place_diskful(rest, possible - (len(diskful) - len(rest)))
        self._place_access(access)
        self._place_tie_breaker(tie_breakers)
        if self.request.together:
            self._take_back(replica for replica in unplaced if replica.type is not ReplicaType.ACCESS)

    # Phase 1.
    def _place_local(self, diskful: Sequence[Replica], possible: int) -> Sequence[Replica]:
        """Those that must be where the volume is used; the others come back."""
        if self.request.configuration.volume_access is not VolumeAccess.LOCAL:
            return diskful
        required = [node for node in self.request.access if node not in self.taken]
        by_node = {candidate.node: candidate for candidate in self.free}
        for index, (replica, node) in enumerate(zip(diskful, required, strict=False)):
            candidate, free = by_node.get(node), vacancies(self.free, self.rule)
            if candidate is None or candidate.disk is None or not self._leaves_room(candidate, possible - index, free):
                message = f"access is Local, so it must be on {node}"
                self._refuse(replica, Scheduled.PUBLISH_NODE_UNAVAILABLE, message, (node,))
                self._let_wait(diskful[index + 1 :])
                return ()
            self._take(replica, candidate)
        return diskful[len(required) :]

    # Phase 2.
    def _place_diskful(self, diskful: Sequence[Replica], possible: int) -> None:
        for index, replica in enumerate(diskful):
            candidate = self._best(possible - index) if index < possible else None
            if candidate is None:
                self._refuse_diskful(replica)
                self._let_wait(diskful[index + 1 :])
                return
            self._take(replica, candidate)

    # Phase 3.
    def _place_access(self, access: Sequence[Replica]) -> None:
        nodes = iter(self.request.access)
        for replica in access:
            usable = (node for node in nodes if objections.to_access(self.nodes.get(node), self.taken) is None)
            node = next(usable, None)
            if node is None:
                self._refuse(replica, Scheduled.NO_AVAILABLE_NODES, "no node is left that is to use the volume")
                continue
            self._choose(replica, node, None, preferred=True)

    # Phase 4.
    def _place_tie_breaker(self, tie_breakers: Sequence[Replica]) -> None:
        for replica in tie_breakers[:1]:
            if self.blocker is not None and self.blocker.reason is Scheduled.PUBLISH_NODE_UNAVAILABLE:
                self._let_wait(tie_breakers)
                return
            candidate = self._best_for_tie_breaker() if self.tie_breaker_follows else None
            if candidate is None:
                self._refuse_tie_breaker(replica)
            else:
                self._choose(replica, candidate.node, None, preferred=candidate.preferred)
        self._let_wait(tie_breakers[1:])

    def _place_pinned(self, replica: Replica) -> None:
        node = self.nodes.get(replica.node) if replica.node is not None else None
        groups = node.lvm_volume_groups if node is not None and objections.to_node(node, (), ()) is None else ()
        disk = best_disk(node, self.request, self.request.lower()) if node is not None and groups else None
        if node is not None and disk is not None:
            self._choose(replica, node.node_name, disk, preferred=node.node_name in self.request.access)
        elif any(objections.to_group(group) is None for group in groups):
            self._refuse(replica, Scheduled.NO_SPACE, f"it needs {self._size()}")
        else:
            self._refuse(replica, Scheduled.NO_AVAILABLE_NODES, "its node cannot take it")

    def _how_many(self, diskful: int, tie_breaker: bool) -> tuple[int, bool]:
        """The most voters for which there are places, with the tie-breaker if there is one for it too."""
        free = vacancies(self.free, self.rule)
        for count in range(diskful, 0, -1):
            for follows in (True, False) if tie_breaker else (False,):
                if self.rule.completable(self.spread, free, count, follows):
                    return count, follows
        return 0, tie_breaker and self.rule.completable(self.spread, free, 0, True)

    def _best(self, left: int) -> Candidate | None:
        """The first candidate that leaves a place for the others of so many, itself included."""
        free = vacancies(self.free, self.rule)
        with_disk = (candidate for candidate in self.free if candidate.disk is not None)
        return next((found for found in self._ordered(with_disk) if self._leaves_room(found, left, free)), None)

    def _ordered(self, found: Iterable[Candidate]) -> list[Candidate]:
        """The best of each sort, best first; of those that are alike to every rule, only the best matters."""
        uses_zones = self.rule.uses_zones
        best: dict[tuple[str, bool, bool], Candidate] = {}
        for candidate in found:
            alike = candidate.zone if uses_zones else "", candidate.preferred, candidate.for_tie_breaker
            if alike not in best:
                best[alike] = candidate
        across = self.rule.topology is Topology.TRANS_ZONAL
        return sorted(best.values(), key=self._by_zone if across else Candidate.order)

    def _leaves_room(self, candidate: Candidate, left: int, free: Mapping[str, Vacancies]) -> bool:
        zone = self._zone(candidate)
        others = {**free, zone: free[zone].without_one(of_either=candidate.for_tie_breaker)}
        return self.rule.completable(self.spread.with_diskful(zone), others, left - 1, self.tie_breaker_follows)

    def _zone(self, candidate: Candidate) -> str:
        return candidate.zone if self.rule.uses_zones else ""

    def _best_for_tie_breaker(self) -> Candidate | None:
        allowed = (candidate for candidate in self.free if candidate.for_tie_breaker)
        for candidate in self._ordered(allowed):
            if self.rule.violation(self.spread.with_tie_breaker(candidate.zone)) is None:
                return candidate
        return None

    def _by_zone(self, candidate: Candidate) -> tuple[bool, int, tuple[bool, bool, int, int, NodeName]]:
        """Across zones, the one with the fewest comes before the one with the most space."""
        return not candidate.preferred, self.spread.in_zone(candidate.zone), candidate.order()

    def _take(self, replica: Replica, candidate: Candidate) -> None:
        self._choose(replica, candidate.node, candidate.disk, preferred=candidate.preferred)
        self.spread = self.spread.with_diskful(candidate.zone)
        self.free.remove(candidate)

    def _choose(self, replica: Replica, node: NodeName, disk: Best | None, *, preferred: bool) -> None:
        zone = self.nodes[node].zone_name
        choice = Choice(replica.name, node, zone, preferred=preferred)
        if disk is not None:
            choice = replace(choice, group=disk.group, size=Bytes(disk.size), left=Bytes(disk.left))
        self.choices[replica.name] = choice
        self.taken.add(node)

    def _refuse_diskful(self, replica: Replica) -> None:
        """Would it have a place if every disk had room? And if zones did not matter either?"""
        roomy = [c for c in candidates(self.request, with_room=False) if c.node not in self.taken]
        anywhere = Rule(Topology.IGNORED, self.rule.layout)
        if not anywhere.completable(self.spread, vacancies(roomy, anywhere), 1, False):
            self._refuse(replica, Scheduled.NO_AVAILABLE_NODES, "no node with a disk of the pool is left")
        elif not self.rule.completable(self.spread, vacancies(roomy, self.rule), 1, False):
            self._refuse(replica, Scheduled.TOPOLOGY_CONSTRAINTS_FAILED, self._rule_in_words())
        else:
            self._refuse(replica, Scheduled.NO_SPACE, f"it needs {self._size()}")

    def _refuse_tie_breaker(self, replica: Replica) -> None:
        free = (c for c in candidates(self.request, with_room=False) if c.node not in self.taken)
        if any(candidate.for_tie_breaker for candidate in free):
            self._refuse(replica, Scheduled.TOPOLOGY_CONSTRAINTS_FAILED, self._rule_in_words())
        else:
            self._refuse(replica, Scheduled.NO_AVAILABLE_NODES, "no node is left for the tie-breaker")

    def _rule_in_words(self) -> str:
        broken = self.rule.violation(self.spread)
        words = f"{self.rule.topology} {self.rule.layout}"
        return f"{words} is broken already: {broken}" if broken else f"{words} leaves it no zone"

    def _refuse(self, replica: Replica, reason: Reason, message: str, only: Sequence[NodeName] | None = None) -> None:
        told = summary(self.request, replica, self.spread, self.taken, only)
        refusal = self.refusals[replica.name] = Refusal(replica.name, reason, f"{message}: {told}")
        if self.blocker is None and replica.type is not ReplicaType.ACCESS:
            self.blocker = refusal

    def _let_wait(self, replicas: Iterable[Replica]) -> None:
        """Those whose turn did not come."""
        first = self.blocker.replica if self.blocker is not None else "another replica"
        for replica in replicas:
            message = f"{first} must find its place first"
            self.refusals[replica.name] = Refusal(replica.name, Scheduled.WAITING_FOR_ANOTHER_REPLICA, message)

    def _take_back(self, asked: Iterable[Replica]) -> None:
        """All or none."""
        if self.blocker is not None:
            ours = [replica for replica in asked if self.choices.pop(replica.name, None) is not None]
            self._let_wait(ours)

    def _size(self) -> str:
        return f"{amount(self.request.lower(), up=True)} of a disk"

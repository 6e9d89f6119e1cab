"""A volume in the lab from its birth to its end, and what must be so after everything that happens to it.

`Life.check` judges by what is really there: kernels, disks, objects. Numbers are those of the lab's invariants (05).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from quorate.api.longhorn import DiskSchedule
from quorate.api.storage import LVMLogicalVolume
from quorate.api.storage.configuration import Configuration, Replication, Topology
from quorate.api.storage.drbd import ReplicaType
from quorate.lab import faults
from quorate.placement.layout import LEVELS, Layout, majority
from tests.volumes.attach.stories import SETTLED, Story
from tests.volumes.laboratory import HOUSEKEEPING, VolumeLab

D = ReplicaType.DISKFUL
MIB = 1024 * 1024
#: Longer than a lost peer takes to be noticed, shorter than any grace.
NOTICED = 12.0


class Life(Story):
    """One volume, what was written to it, and where its members are."""

    def __init__(self, lab: VolumeLab, replication: Replication) -> None:
        super().__init__(lab)
        self.layout: Layout = LEVELS[replication]
        #: By place, what was acknowledged there last.
        self.acknowledged: dict[int, str] = {}
        #: Nodes with a member, diskful ones first.
        self.home: list[str] = []

    @classmethod
    async def begin(cls, lab: VolumeLab, replication: Replication, topology: Topology, *, thin: bool) -> Life:
        """Formed, used on its first node, and written to."""
        life = cls(lab, replication)
        name = await lab.provide(replication, thin=thin, topology=topology)
        await lab.sleep(SETTLED)
        await lab.create("v", name)
        await lab.until_ready()
        await life.settle_in()
        await life.attach(life.user)
        await life.until_primary(life.user)
        assert await life.writes("first")
        await life.check("it is born")
        return life

    @property
    def user(self) -> str:
        """The node that uses it."""
        return self.home[0]

    async def settle_in(self) -> None:
        """Look where the members are now."""
        self.home = [*await self.nodes(D), *await self.nodes(ReplicaType.TIE_BREAKER, ReplicaType.ACCESS)]

    async def writes(self, tag: str) -> bool:
        """Whether a write on the user's node is acknowledged in time; remembers it if so."""
        place = (len(self.acknowledged) % 32) * MIB
        if self.user not in self.primaries():
            return False
        done = await self.write(self.user, tag, place, seconds=3.0)
        if done:
            self.acknowledged[place] = tag
        return done

    # What happens to it.

    def lose(self, nodes: Iterable[str]) -> None:
        """Take their power away."""
        for node in nodes:
            self.lab.cluster.inject(faults.NodeDown(node))

    def bring_back(self, nodes: Iterable[str]) -> None:
        """Give it back."""
        for node in nodes:
            self.lab.cluster.inject(faults.NodeUp(node))

    async def until_whole(self, what: str, patience: float = 300.0) -> None:
        """Until everybody is connected and up to date, it is in use again, and a write is on every copy."""

        async def check() -> bool:
            found = self._kernels()
            whole = all(
                link["connection-state"] == "Connected"
                and link["peer_devices"][0]["replication-state"] == "Established"
                for status in found.values()
                for link in status["connections"]
            )
            good = [node for node, status in found.items() if status["devices"][0]["disk-state"] == "UpToDate"]
            calm = not (await self.volume()).status.datamesh_transitions
            return whole and calm and len(good) == self.layout.diskful and self.primaries() == [self.user]

        await self.lab.until(f"whole again: {what}", check, patience)
        assert await self.writes(f"after {what}"), what
        await self.check(f"after {what}")
        for place, tag in self.acknowledged.items():
            copies = self.copies(place)
            assert list(copies.values()) == [tag] * self.layout.diskful, (what, place, tag, copies)

    # What must be so.

    async def check(self, what: str) -> None:
        """Invariants 1 to 6 and 8, now."""
        for place, tag in self.acknowledged.items():
            holding = [node for node, found in self.copies(place).items() if found == tag]
            assert len(holding) >= self.layout.minimum_redundancy, f"1, {what}: {tag} at {place} is on {holding}"
        assert len(self.primaries()) <= 1, f"2, {what}: {self.primaries()}"
        assert len(self._quorate_sides()) <= 1, f"3, {what}: {self._quorate_sides()}"
        for ledger in (await self.lab.store.list(DiskSchedule)).items:
            granted = sum(answer.scheduled_size for answer in ledger.status.replicas.values())
            assert granted <= ledger.status.storage_available, f"4, {what}: {ledger.spec.name}"
        await self._check_objects(what)

    async def _check_objects(self, what: str) -> None:
        status, replicas = (await self.volume()).status, await self.lab.replicas()
        members, shared = status.datamesh.members, status.drbd.config
        votes = [each for each in members if each.type is D and not each.hidden]
        demanded = shared.quorum_minimum_redundancy or 0
        assert self.layout.minimum_redundancy <= demanded <= len(votes), f"6, {what}: {demanded}"
        assert shared.quorum == majority(len(votes)), f"6, {what}"
        assert len({each.node_id for each in members}) == len(members), f"8, {what}"
        placed = Counter(each.spec.node_name for each in replicas if each.spec.node_name is not None)
        assert not [node for node, count in placed.items() if count > 1], f"8, {what}: {placed}"
        volumes = (await self.lab.store.list(LVMLogicalVolume)).items
        known = {each.spec.actual_lv_name_on_the_node for each in volumes}
        assert self._logical_volumes() <= known, f"8, {what}: leaked {self._logical_volumes() - known}"

    async def check_placement(self, configuration: Configuration) -> None:
        """Topology: who shares a zone with whom."""
        zones = [each.zone for each in (await self.volume()).status.datamesh.members]
        if configuration.topology is Topology.ZONAL:
            assert len(set(zones)) == 1, zones
        elif configuration.topology is Topology.TRANS_ZONAL:
            assert len(set(zones)) == len(zones), zones

    async def check_that_nothing_is_written(self) -> None:
        """Invariant 10, once the last words are said: how many bytes are free is told a while later."""
        await self.lab.sleep(120)
        before = len(self.lab.sent)
        await self.lab.sleep(60)
        written = [each for each in self.lab.sent[before:] if each.kind not in HOUSEKEEPING]
        assert not written, written

    async def check_that_nothing_is_left(self) -> None:
        """Invariants 8 and 9: of a volume that is gone."""
        assert not self._logical_volumes()
        assert not [name for name, node in self.lab.cluster.nodes.items() if node.host.kernel.status("v")]
        assert not await self.lab.replicas()
        for ledger in (await self.lab.store.list(DiskSchedule)).items:
            assert not ledger.spec.replicas
            assert not ledger.status.replicas

    def _logical_volumes(self) -> set[str]:
        return {
            label
            for node in self.lab.cluster.nodes.values()
            for group in node.host.lvm.groups.values()
            for label in group.volumes
            if label.startswith("replica-v-")
        }

    def _kernels(self) -> dict[str, dict]:  # type: ignore[type-arg]
        self.lab.cluster.driver.catch_up()
        return {
            name: found[0]
            for name, node in self.lab.cluster.nodes.items()
            if node.host.powered and (found := node.host.kernel.status("v"))
        }

    def _quorate_sides(self) -> list[set[str]]:
        """Nodes that are quorate, by those that are in touch with one another."""
        kernels = self._kernels()
        left, sides = set(kernels), []
        while left:
            side, ahead = set(), {min(left)}
            while ahead:
                node = ahead.pop()
                side.add(node)
                links = kernels[node]["connections"]
                there = {link["name"] for link in links if link["connection-state"] == "Connected"}
                ahead |= (there & set(kernels)) - side
            left -= side
            quorate = {node for node in side if kernels[node]["devices"][0]["quorum"]}
            sides += [quorate] if quorate else []
        return sides

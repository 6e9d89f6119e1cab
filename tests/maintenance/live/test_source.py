"""The model follows the caches, and a change costs what it concerns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from quorate.api import core, labels, longhorn, names
from quorate.api.annotation_keys import BROKER_ID
from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import DriveSpec, DriveStatus, Presence
from quorate.api.core import Lease
from quorate.api.core.lease import LeaseSpec
from quorate.api.longhorn.node import StuckCommand
from quorate.api.maintenance.action import HostState, Marker
from quorate.api.maintenance.broker_config import BrokerConfigSpec
from quorate.api.meta import MicroTime, NodeName, ObjectMeta, Resource, VolumeName
from quorate.api.quantity import Quantity
from quorate.api.scalars import ReplicaName
from quorate.api.storage import LVMVolumeGroup, ReplicatedVolume, ReplicatedVolumeReplica
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.lvg import GroupDevice, LocalGroup, LVMVolumeGroupSpec, LVMVolumeGroupStatus
from quorate.api.struct import replace
from quorate.engine.cache import Cache
from quorate.engine.reader import Reader
from quorate.engine.simulation import Simulation, run
from quorate.engine.store import EventType, ObjectList, WatchEvent
from quorate.locks import Change, LockTable, Sort, Thing
from quorate.maintenance.entries import MarkerEntry
from quorate.maintenance.live import source as sources
from quorate.maintenance.live.notes import KINDS
from quorate.maintenance.live.source import INDEXES, LiveSource
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.nouns import DriveId
from quorate.volumes.observe import INDEXES as VOLUME_INDEXES
from tests.volumes.transitions.story import Story

D = ReplicaType.DISKFUL


class StillReader(Reader):
    """Agents are as silent as they are told to be."""

    silent: dict[str, float]

    def silent_for(self, cls: type[Resource], name: str, namespace: str = "") -> float | None:
        return self.silent.get(name.removeprefix("quorate-agent-"), 1.0)


@dataclass
class Cluster:
    """Caches with some nodes and volumes of three, fed by hand."""

    sim: Simulation
    nodes: int = 4
    volumes: int = 2
    table: LockTable = field(default_factory=LockTable)
    version: int = 0

    def __post_init__(self) -> None:
        indexes = (*INDEXES, *VOLUME_INDEXES)
        self.caches: dict[type[Resource], Cache[Any]] = {
            cls: Cache(cls, indexes=[index for index in indexes if index.cls is cls]) for cls in KINDS
        }
        for cache in self.caches.values():
            cache.replace(ObjectList((), "0"))
        self.reader = StillReader(self.caches.values())
        self.reader.silent = {}
        self.model = ClusterModel(BrokerConfigSpec())
        self.source = LiveSource(self.model, self.table, self.sim.clock)
        self.source.follow(self.caches, self.reader)
        self.story = Story(Replication.CONSISTENCY_AND_AVAILABILITY, [D, D, D])
        for number in range(self.nodes):
            self.put(core.Node(metadata=self.numbered(f"n{number}", number + 1)))
            lease = ObjectMeta(name=names.agent_lease(NodeName(f"n{number}")), namespace=names.NAMESPACE)
            self.put(Lease(metadata=lease, spec=LeaseSpec(holder_identity="agent")))
            spec = DriveSpec(uuid=f"d{number}", serial_number="s", node_id=NodeName(f"n{number}"), path="/dev/sdb")
            status = DriveStatus(presence=Presence.ONLINE)
            self.put(Drive(metadata=self.numbered(f"d{number}", 10 + number), spec=spec, status=status))
            device = GroupDevice(path="/dev/sdb", drive_uuid=f"d{number}", size=Quantity("1Gi"))
            group = LVMVolumeGroupSpec(
                actual_vg_name_on_the_node="vg", local=LocalGroup(node_name=NodeName(f"n{number}"))
            )
            self.put(
                LVMVolumeGroup(
                    metadata=ObjectMeta(name=f"g{number}"), spec=group, status=LVMVolumeGroupStatus(devices=(device,))
                )
            )
        for number in range(self.volumes):
            self.put_volume(f"v{number}", 100 + 10 * number)

    def put_volume(self, name: str, number: int) -> None:
        members = tuple(replace(member, name=ReplicaName(f"{name}-{member.node_id}")) for member in self.story.members)
        status = self.story.rv.status
        status = replace(status, datamesh=replace(status.datamesh, members=members))
        self.put(replace(self.story.rv, metadata=self.numbered(name, number), status=status))
        for at, found in enumerate(self.story.replicas.values()):
            spec = replace(found.spec, replicated_volume_name=VolumeName(name), lvm_volume_group_name=f"g{at}")
            self.put(replace(found, metadata=self.numbered(f"{name}-{at}", number + at + 1), spec=spec))

    @staticmethod
    def numbered(name: str, number: int) -> ObjectMeta:
        return ObjectMeta(name=name, annotations={BROKER_ID: str(number)})

    def put(self, obj: Resource) -> None:
        self.version += 1
        metadata = replace(obj.metadata, resource_version=str(self.version), uid=obj.name)
        self.caches[type(obj)].observe(
            WatchEvent(EventType.MODIFIED, str(self.version), replace(obj, metadata=metadata))
        )

    def remove(self, cls: type[Resource], name: str) -> None:
        self.version += 1
        obj = self.caches[cls].get(("", name))
        assert obj is not None
        self.caches[cls].observe(WatchEvent(EventType.DELETED, str(self.version), obj))

    def get(self, cls: type[Any], name: str) -> Any:
        return self.reader.get(cls, name)

    def settle(self) -> int:
        """How often the model was changed."""
        before = self.model.version
        while self.source._notes.open:
            self.source.settle()
        return self.model.version - before


def playing(main: Callable[[Cluster], None], *, volumes: int = 2) -> None:
    async def play(sim: Simulation) -> None:
        cluster = Cluster(sim, volumes=volumes)
        cluster.settle()
        main(cluster)

    run(play, seed=1)


def test_everything_is_there_once() -> None:
    def main(cluster: Cluster) -> None:
        model = cluster.model
        assert sorted(node.host for node in model.nodes()) == ["n0", "n1", "n2", "n3"]
        assert [drive.id for drive in model.drives_of(1)] == [DriveId(1, 10)]
        assert sorted(group.id for group in model.groups()) == [100, 110]
        [part] = [part for part in model.vdisks_of(2) if part.id.group == 100]
        assert part.drives == (DriveId(2, 11),)
        assert part.id.vdisk == 102
        assert cluster.settle() == 0

    playing(main)


def test_a_lease_that_is_renewed_and_a_report_that_says_the_same_change_nothing() -> None:
    def main(cluster: Cluster) -> None:
        lease = cluster.caches[Lease].list()[0]
        cluster.put(replace(lease, spec=replace(lease.spec, renew_time=MicroTime("2026-11-16T12:00:00.000000Z"))))
        cluster.put(cluster.get(ReplicatedVolumeReplica, "v0-1"))
        cluster.put(cluster.get(ReplicatedVolume, "v1"))
        cluster.put(cluster.get(Drive, "d0"))
        assert cluster.settle() == 0

    playing(main)


def test_a_change_of_one_thing_is_one_change_of_the_model() -> None:
    def main(cluster: Cluster) -> None:
        node = cluster.get(core.Node, "n1")
        cluster.put(replace(node, metadata=replace(node.metadata, labels={labels.RACK: "k1"})))
        assert cluster.settle() == 1
        assert cluster.model.nodes_of("n1")[0].rack == "k1"
        drive = cluster.get(Drive, "d1")
        cluster.put(replace(drive, status=replace(drive.status, presence=Presence.OFFLINE)))
        assert cluster.settle() == 1
        replica = cluster.get(ReplicatedVolumeReplica, "v1-2")
        drbd = replace(replica.status.drbd, status=None)
        cluster.put(replace(replica, status=replace(replica.status, drbd=drbd)))
        assert cluster.settle() == 1
        assert {part.state for part in cluster.model.vdisks_of(3) if part.id.group == 110} == {HostState.DOWN}

    playing(main)


def test_an_agent_that_falls_silent_changes_its_node_and_what_is_there_by_its_peers_word() -> None:
    def main(cluster: Cluster) -> None:
        cluster.reader.silent["n2"] = 100.0
        cluster.source._notes.open.nodes[NodeName("n2")] = None
        cluster.settle()
        [node] = cluster.model.nodes_of("n2")
        assert node.state is HostState.DOWN
        assert not node.surely_down
        assert {part.state for part in cluster.model.vdisks_of(3)} == {HostState.UP}, "its peers have it in touch"

    playing(main)


def test_time_alone_has_a_silent_agent_looked_at() -> None:
    def main(cluster: Cluster) -> None:
        due = cluster.source.due_in()
        assert due is not None
        assert 38.0 < due < 40.0
        assert not cluster.source.unsettled

    playing(main)


def test_what_goes_is_gone_and_what_comes_back_is_there_again() -> None:
    def main(cluster: Cluster) -> None:
        volume = cluster.get(ReplicatedVolume, "v0")
        node = cluster.get(core.Node, "n3")
        cluster.remove(ReplicatedVolume, "v0")
        cluster.remove(core.Node, "n3")
        cluster.remove(Drive, "d3")
        cluster.settle()
        assert [group.id for group in cluster.model.groups()] == [110]
        assert sorted(found.host for found in cluster.model.nodes()) == ["n0", "n1", "n2"]
        assert cluster.model.drive(DriveId(4, 13)) is None
        cluster.put(volume)
        cluster.put(node)
        cluster.settle()
        assert sorted(group.id for group in cluster.model.groups()) == [100, 110]
        assert cluster.model.node(4) is not None

    playing(main)


def test_what_has_no_number_yet_counts_all_the_same_and_keeps_its_parts_when_it_gets_one() -> None:
    def main(cluster: Cluster) -> None:
        cluster.put_volume("v5", 500)
        volume = cluster.get(ReplicatedVolume, "v5")
        cluster.put(replace(volume, metadata=replace(volume.metadata, annotations={})))
        for at in range(3):
            found = cluster.get(ReplicatedVolumeReplica, f"v5-{at}")
            cluster.put(replace(found, metadata=replace(found.metadata, annotations={})))
        cluster.settle()
        [new] = [group for group in cluster.model.groups() if group.volume is not None and group.volume.name == "v5"]
        assert new.id < 0
        assert len(new.vdisks) == 3
        cluster.put(volume)
        cluster.settle()
        [numbered] = [each for each in cluster.model.groups() if each.volume is not None and each.volume.name == "v5"]
        assert numbered.id == 500
        assert len(cluster.model.vdisks_of(1)) == 3

    playing(main)


def test_a_drive_that_goes_by_another_number_takes_its_replicas_along() -> None:
    def main(cluster: Cluster) -> None:
        drive = cluster.get(Drive, "d1")
        cluster.put(replace(drive, metadata=replace(drive.metadata, annotations={BROKER_ID: "77"})))
        cluster.settle()
        assert {part.drives for part in cluster.model.vdisks_of(2)} == {(DriveId(2, 77),)}
        assert cluster.model.drive(DriveId(2, 11)) is None

    playing(main)


def test_a_claim_is_in_the_model_before_anybody_else_can_ask_and_out_when_it_is_given_back() -> None:
    def main(cluster: Cluster) -> None:
        def steps() -> list[str]:
            return [group.volume.unconfirmed_step for group in cluster.model.groups() if group.volume is not None]

        give_back = cluster.table.claim(Change(VolumeName("v1"), "Hide of v1-0"), {Thing(Sort.NODE, "n0")})
        assert sorted(steps()) == ["", "Hide of v1-0"]
        give_back()
        assert steps() == ["", ""]

    playing(main)


def test_markers_of_the_ledger_are_on_what_they_are_for() -> None:
    def main(cluster: Cluster) -> None:
        entries = [
            MarkerEntry(item="pdisk-2-11", marker=Marker.DISK_FAULTY, since=0, by="alice"),
            MarkerEntry(item="node-3", marker=Marker.DISK_BROKEN, since=0, by="alice"),
            MarkerEntry(item="vdisk-100-1-0-0-101", marker=Marker.DISK_INACTIVE, since=0, by="alice"),
            MarkerEntry(item="pdisk-9-9", marker=Marker.DISK_FAULTY, since=0, by="alice"),
        ]
        cluster.source.set_markers(entries)
        assert cluster.settle() == 3
        found = cluster.model.drive(DriveId(2, 11))
        assert found is not None
        assert found.markers == (Marker.DISK_FAULTY,)
        assert cluster.model.nodes_of("n2")[0].markers == (Marker.DISK_BROKEN,)
        assert {part.markers for part in cluster.model.vdisks_of(1)} == {(Marker.DISK_INACTIVE,), ()}
        cluster.source.set_markers(entries)
        assert cluster.settle() == 0
        cluster.source.set_markers([])
        assert cluster.settle() == 3

    playing(main)


def test_much_is_looked_at_in_slices(monkeypatch: Any) -> None:
    monkeypatch.setattr(sources, "SLICE", 2)

    def main(cluster: Cluster) -> None:
        assert len(list(cluster.model.groups())) == 7
        for number in range(7):
            cluster.source._notes.open.volumes[VolumeName(f"v{number}")] = None
        cluster.source.settle()
        assert len(cluster.source._notes.open.volumes) == 5

    playing(main, volumes=7)


def test_a_node_in_whose_kernel_commands_hang_is_known_as_such_until_they_end() -> None:
    def main(cluster: Cluster) -> None:
        inventory = longhorn.Node(metadata=ObjectMeta(name="n1", namespace=names.NAMESPACE))
        hangs = StuckCommand(work="resource v0", command="drbdsetup down v0", since=cluster.sim.clock.now())
        cluster.put(replace(inventory, status=replace(inventory.status, stuck_commands=(hangs,))))
        assert cluster.settle() == 1
        assert [node.host for node in cluster.model.nodes() if node.stuck] == ["n1"]
        cluster.put(inventory)
        assert cluster.settle() == 1
        assert not any(node.stuck for node in cluster.model.nodes())

    playing(main)

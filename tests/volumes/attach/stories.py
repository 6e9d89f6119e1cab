"""What people do with a volume in the laboratory: attach, write, move, detach; and what the kernels really show."""

from __future__ import annotations

from collections.abc import Callable

from quorate.api.meta import NodeName, ObjectMeta, VolumeName
from quorate.api.storage import ReplicatedVolume, ReplicatedVolumeAttachment, ReplicatedVolumeReplica
from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType
from quorate.api.storage.rva import ReplicatedVolumeAttachmentSpec
from quorate.lab.kernel import Io
from quorate.lab.kernel.io import IoState
from quorate.lab.layout import Layout
from tests.volumes.laboratory import VolumeLab

#: Until agents have reported their disks and the pool lists its nodes.
SETTLED = 30.0
FIVE = Layout(nodes=5)
ALL = (
    Replication.NONE,
    Replication.CONSISTENCY,
    Replication.AVAILABILITY,
    Replication.CONSISTENCY_AND_AVAILABILITY,
)
NAMES = {
    Replication.NONE: "1D",
    Replication.CONSISTENCY: "2D",
    Replication.AVAILABILITY: "2D+1TB",
    Replication.CONSISTENCY_AND_AVAILABILITY: "3D",
}


class Story:
    """One volume, ``v``, and its users."""

    def __init__(self, lab: VolumeLab) -> None:
        self.lab = lab
        self.processes = 1000

    @classmethod
    async def of(cls, lab: VolumeLab, replication: Replication, *, thin: bool = False, size: str = "64Mi") -> Story:
        """The volume, formed."""
        name = await lab.provide(replication, thin=thin)
        await lab.sleep(SETTLED)
        await lab.create("v", name, size)
        await lab.until_ready()
        return cls(lab)

    # What people do.

    async def attach(self, node: str) -> None:
        """Ask for it; does not wait."""
        spec = ReplicatedVolumeAttachmentSpec(replicated_volume_name=VolumeName("v"), node_name=NodeName(node))
        await self.lab.store.create(ReplicatedVolumeAttachment(metadata=ObjectMeta(name=f"on-{node}"), spec=spec))

    async def detach(self, node: str) -> None:
        """Ask for its end; does not wait."""
        await self.lab.store.delete(ReplicatedVolumeAttachment, f"on-{node}")

    async def publish(self, *nodes: str) -> None:
        await self.lab.store.patch(ReplicatedVolume, "v", patch={"spec": {"publishOn": list(nodes)}})

    async def resize(self, size: str) -> None:
        await self.lab.store.patch(ReplicatedVolume, "v", patch={"spec": {"size": size}})

    # What is seen.

    async def volume(self) -> ReplicatedVolume:
        return await self.lab.volume()

    async def replica_on(self, node: str) -> ReplicatedVolumeReplica | None:
        return next((each for each in await self.lab.replicas() if each.spec.node_name == node), None)

    async def nodes(self, *types: ReplicaType) -> list[str]:
        """Where replicas of these types are, by id."""
        replicas = sorted(await self.lab.replicas(), key=lambda each: each.name)
        return [each.spec.node_name for each in replicas if each.spec.type in types and each.spec.node_name]

    async def free_node(self) -> str:
        """A node without a replica."""
        taken = await self.nodes(*ReplicaType)
        return next(name for name in self.lab.cluster.nodes if name not in taken)

    def roles(self) -> dict[str, str]:
        """Of every powered node that has the resource, by the kernel itself."""
        self.lab.cluster.driver.catch_up()
        return {
            name: str(resource["role"])
            for name, node in self.lab.cluster.nodes.items()
            if node.host.powered
            for resource in node.host.kernel.status("v")
        }

    def primaries(self) -> list[str]:
        return [name for name, role in self.roles().items() if role == "Primary"]

    async def until_primary(self, *nodes: str, patience: float = 120.0) -> None:
        """Until the volume is Primary on exactly these nodes, and says so."""

        async def check() -> bool:
            status = (await self.volume()).status
            return sorted(self.primaries()) == sorted(nodes) == sorted(status.published_on)

        await self.lab.until(f"Primary on {nodes}", check, patience)

    async def until_calm(self, patience: float = 200.0) -> None:
        """Until nothing is under way, and nothing is left to be compared."""

        async def check() -> bool:
            status = (await self.volume()).status
            return not status.datamesh_transitions and not status.comparisons

        await self.lab.until("nothing is under way", check, patience)

    # Reading and writing.

    async def write(self, node: str, tag: str, offset: int = 0, *, seconds: float = 5.0) -> bool:
        """Whether a write is acknowledged in so much time; one that is not goes on waiting in the kernel."""
        io = self.begin_write(node, tag, offset)
        await self.lab.sleep(seconds)
        self.lab.cluster.driver.catch_up()
        return io.state is IoState.DONE

    def begin_write(self, node: str, tag: str, offset: int = 0) -> Io:
        """Write as a process would: whoever waits for a write cannot close the device before it is over."""
        kernel, minor = self.lab.cluster.node(node).host.kernel, self.minor(node)
        self.lab.cluster.driver.catch_up()
        self.processes += 1
        pid = self.processes
        assert kernel.open(minor, "test", pid)
        io = kernel.write(minor, offset, 4096, tag)
        if io.blocked:
            io.when_settled = lambda _: kernel.close(minor, pid)
        else:
            kernel.close(minor, pid)
        self.lab.cluster.driver.touch()
        return io

    def hold_open(self, node: str, process: str = "qemu", pid: int = 4711) -> Callable[[], None]:
        """Open the device, as a process would; call the result to close it."""
        kernel = self.lab.cluster.node(node).host.kernel
        assert kernel.open(self.minor(node), process, pid)
        self.lab.cluster.driver.touch()

        def close() -> None:
            kernel.close(self.minor(node), pid)
            self.lab.cluster.driver.touch()

        return close

    def minor(self, node: str) -> int:
        found = self.lab.cluster.node(node).host.kernel.status("v")
        return int(found[0]["devices"][0]["minor"])

    def copies(self, offset: int = 0) -> dict[str, object]:
        """What lies at a place, on every node with a copy."""
        self.lab.cluster.driver.catch_up()
        return {
            name: volume.device.read(offset)
            for name, node in self.lab.cluster.nodes.items()
            for group in node.host.lvm.groups.values()
            for label, volume in group.volumes.items()
            if label.startswith("replica-v-")
        }

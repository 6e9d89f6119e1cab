"""DRBD alone: resources as the product configures them, on a logical volume each; nobody but the scenario acts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from metal.machines import BLOCK, MIB, Running, Said, block_text
from metal.people import GROUP
from metal.stage import Stage
from quorate.api.meta import NodeName, VolumeName
from quorate.api.scalars import ReplicaName
from quorate.api.secret import Secret
from quorate.api.storage.drbd import Address, DrbdConfig, Peer, ReplicaType, SharedSecretAlgorithm
from quorate.drbd.resource_file import render

D, TB, A = ReplicaType.DISKFUL, ReplicaType.TIE_BREAKER, ReplicaType.ACCESS
LAYOUTS = {"3D": (D, D, D), "2D+1TB": (D, D, TB), "2D+A": (D, D, A), "2D": (D, D), "1D": (D,)}
#: The least copies that must have a write.
REDUNDANCY = {"3D": 2, "2D+1TB": 1, "2D+A": 2, "2D": 2, "1D": 1}
_MINOR = 1000
_PORT = 7000


@dataclass
class Member:
    """One of a resource's members."""

    node: str
    node_id: int
    type: ReplicaType


class Resource:
    """A DRBD resource on n1, n2, …, in that order."""

    def __init__(self, stage: Stage, layout: str, name: str = "r0", number: int = 0, size: int = 32) -> None:
        self.stage = stage
        self.machines = stage.machines
        self.layout = layout
        self.name = name
        self.size = size
        self.minor = _MINOR + number
        self._port = _PORT + number
        types = LAYOUTS[layout]
        nodes = stage.machines.nodes[: len(types)]
        self.members = [
            Member(node, node_id, type_) for node_id, (node, type_) in enumerate(zip(nodes, types, strict=True))
        ]

    @property
    def nodes(self) -> list[str]:
        return [each.node for each in self.members]

    @property
    def diskful(self) -> list[str]:
        return [each.node for each in self.members if each.type is D]

    @property
    def device(self) -> str:
        return f"/dev/drbd{self.minor}"

    @property
    def disk(self) -> str:
        return f"/dev/{GROUP}/{self.name}"

    # --- making it ---

    async def form(self) -> None:
        """Make disks, metadata and first data, as a formation does, all connected and up to date."""
        for member in self.members:
            await self.machines.write_file(member.node, f"/etc/drbd.d/{self.name}.res", self.configuration(member))
            if member.type is D:
                await self.machines.expect(member.node, f"lvcreate -y -W n -n {self.name} -L {self.size}M {GROUP}")
                await self.machines.expect(
                    member.node,
                    f"dd if=/dev/zero of={self.disk} bs=1M count={self.size} conv=notrunc,fsync",
                    seconds=60,
                )
                await self.on(member.node, f"create-md --max-peers=7 --force {self.name}/0")
        for node in self.nodes:
            await self.on(node, f"up {self.name}")
        await self.until_links(self.nodes)
        # Every copy is all zero: there is nothing to copy.
        await self.on(self.diskful[0], f"new-current-uuid --clear-bitmap {self.name}/0")
        await self.until_good(self.diskful)

    def configuration(self, member: Member) -> str:
        """The file of a member, as the product writes it."""
        peers = tuple(
            Peer(
                name=ReplicaName(f"{self.name}-{each.node_id}"),
                node_name=NodeName(each.node),
                node_id=each.node_id,
                type=each.type,
                address=Address(ipv4=self.address(each), port=self._port),
                hidden=each.type is A,
            )
            for each in self.members
            if each is not member
        )
        config = DrbdConfig(
            node_id=member.node_id,
            type=member.type,
            address=Address(ipv4=self.address(member), port=self._port),
            peers=peers,
            peers_initialized=True,
            device_minor=self.minor,
            disk=self.disk if member.type is D else None,
            shared_secret=Secret("s3cret"),
            shared_secret_alg=SharedSecretAlgorithm.SHA256,
            quorum_minimum_redundancy=REDUNDANCY[self.layout],
        )
        text = render(VolumeName(self.name), member.node, config)
        # Without its first section: the machine's files are read together here, and only one may have that.
        return text.partition("}\n")[2]

    def address(self, member: Member) -> str:
        return f"10.77.0.{member.node.removeprefix('n')}"

    async def on(self, node: str, words: str, *, seconds: float = 30.0) -> str:
        """``drbdadm`` with these words, which must work."""
        return await self.machines.expect(node, f"drbdadm {words}", seconds=seconds)

    # --- looking ---

    async def status(self, node: str, label: str = "look") -> dict[str, Any] | None:
        """Of this resource on a node; None where it is not up."""
        found = await self.machines.status(node, label, self.name)
        return found[0] if found else None

    async def states(self, label: str) -> dict[str, str]:
        """Every member in a few words, for comparing: role, disk, quorum, suspended, and each link."""
        told = {}
        for node in self.nodes:
            found = await self.status(node, label)
            told[node] = brief(found) if found is not None else "down"
        return told

    async def states_at_the_end(self) -> dict[str, str]:
        """The same, once nothing has happened for a while."""
        await self.machines.sleep(5)
        return await self.states("the end")

    async def marks(self) -> dict[str, int]:
        """Out-of-sync KiB between members that are both up to date and connected, as any member shows it."""
        found: dict[str, int] = {}
        for node in self.nodes:
            for link in ((await self.status(node, "marks")) or {}).get("connections", ()):
                for device in link["peer_devices"]:
                    if device["out-of-sync"] and device["replication-state"] == "Established":
                        found[f"{node}->{link['name']}"] = device["out-of-sync"]
        return found

    async def until_links(self, nodes: Iterable[str], seconds: float = 60.0) -> None:
        """Until these are all connected to one another, and nothing is copied."""
        wanted = set(nodes)

        async def check() -> bool:
            for node in wanted:
                found = await self.status(node, "waiting")
                links = {link["name"]: link for link in (found or {}).get("connections", ())}
                for peer in wanted - {node}:
                    link = links.get(peer)
                    if link is None:
                        # Members without a disk have no link among themselves.
                        if {node, peer} <= set(self.nodes) - set(self.diskful):
                            continue
                        return False
                    if link["connection-state"] != "Connected":
                        return False
                    if any(each["replication-state"] != "Established" for each in link["peer_devices"]):
                        return False
            return True

        await self.machines.until(f"{self.name}: {sorted(wanted)} are connected", check, seconds)

    async def until_good(self, nodes: Iterable[str], seconds: float = 120.0) -> None:
        """Until these have a good copy and copy nothing."""
        wanted = list(nodes)

        async def check() -> bool:
            for node in wanted:
                found = await self.status(node, "waiting")
                if found is None or found["devices"][0]["disk-state"] != "UpToDate":
                    return False
            return True

        await self.machines.until(f"{self.name}: {wanted} are UpToDate", check, seconds)

    async def until_suspended(self, node: str, seconds: float = 30.0) -> float:
        """Until a node's I/O waits for quorum; how long it took."""

        async def check() -> bool:
            found = await self.status(node, "waiting")
            return bool(found and found.get("suspended-quorum"))

        return await self.machines.until(f"{self.name}: {node} is suspended", check, seconds, every=0.2)

    async def until_promoted(self, node: str, seconds: float = 60.0) -> float:
        """Until a node may be primary and is: the others' side has to notice first who is gone. How long it took."""

        async def check() -> bool:
            return (await self.machines.run(node, f"drbdadm primary {self.name}", seconds=40)).exit == 0

        return await self.machines.until(f"{self.name}: {node} is primary", check, seconds, every=1.0)

    # --- writing ---

    async def begin_write(self, node: str, block: int, tag: str = "w") -> Write:
        """Begin to write one block, directly; it may wait in the kernel."""
        path = f"/root/block-{block}"
        await self.machines.write_file(node, path, block_text(block, tag).decode())
        command = f"dd if={path} of={self.device} bs={BLOCK} count=1 seek={block} oflag=direct conv=notrunc"
        return Write(self, node, block, tag, command, self.machines.start(node, command))

    async def write(self, node: str, block: int, tag: str = "w", seconds: float = 10.0) -> bool:
        """Write one block; whether it was acknowledged."""
        return await (await self.begin_write(node, block, tag)).settle(seconds)

    async def holders(self, block: int, tag: str = "w") -> list[str]:
        """The nodes whose disk has that block."""
        wanted = f"{block}.{tag}"
        found = {node: await self.machines.read_blocks(node, self.disk, [block]) for node in self.diskful}
        return [node for node, texts in found.items() if texts == [wanted]]

    async def compare(self, blocks: Iterable[int], tag: str = "w") -> dict[str, list[int]]:
        """By node, which of these blocks its disk has not got; only nodes that lack one."""
        wanted = list(blocks)
        lacking: dict[str, list[int]] = {}
        for node in self.diskful:
            found = await self.machines.read_blocks(node, self.disk, wanted) if wanted else []
            if missing := [block for block, text in zip(wanted, found, strict=True) if text != f"{block}.{tag}"]:
                lacking[node] = missing
        return lacking

    async def end(self) -> None:
        """Take it down everywhere, and leave nothing behind."""
        for node in self.nodes:
            await self.machines.run(node, f"drbdadm down {self.name}")
        for node in self.diskful:
            await self.machines.run(node, f"lvremove -y {GROUP}/{self.name}")


@dataclass
class Write:
    """One write that was begun."""

    resource: Resource
    node: str
    block: int
    tag: str
    command: str
    running: Running

    async def said(self, seconds: float) -> Said:
        """What its writer has been told in so many seconds."""
        return await self.running.wait(seconds * self.resource.machines.patience)

    async def settle(self, seconds: float) -> bool:
        """Whether its writer is told that it is written; recorded, and ended if it still waits."""
        said = await self.resource.machines.finish(self.node, self.command, self.running, seconds)
        return said.exit == 0


async def prepare(stage: Stage) -> None:
    """A volume group on every machine's first drive; what comes after this is recorded."""
    for node in stage.machines.nodes:
        await stage.machines.expect(node, f"vgcreate {GROUP} /dev/sda")
    stage.machines.journal.recording = True


async def formed(stage: Stage, layout: str, size: int = 32) -> Resource:
    """One resource of that layout, with n1 primary."""
    await prepare(stage)
    resource = Resource(stage, layout, size=size)
    await resource.form()
    await resource.on(resource.diskful[0], f"primary {resource.name}")
    return resource


def brief(status: dict[str, Any]) -> str:
    """A member's state without what chance decides."""
    device = (status.get("devices") or [{}])[0]
    words = [status["role"], str(device.get("disk-state")), "quorum" if device.get("quorum") else "no-quorum"]
    words += [
        word
        for word in ("suspended-user", "suspended-quorum", "suspended-no-data", "force-io-failures")
        if status.get(word)
    ]
    for link in sorted(status.get("connections", ()), key=lambda link: str(link["name"])):
        peer = (link.get("peer_devices") or [{}])[0]
        words.append(
            f"{link['name']}:{link['connection-state']}/{peer.get('replication-state')}/{peer.get('peer-disk-state')}"
        )
    return " ".join(words)


async def together(*waits: Any) -> list[Any]:
    """Several at once."""
    return list(await asyncio.gather(*waits))


__all__ = ["MIB", "Resource", "Write", "brief", "formed", "prepare", "together"]

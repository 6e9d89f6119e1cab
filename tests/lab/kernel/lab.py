"""A few nodes with one volume, and short words for what is done to them and seen of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from quorate.lab.kernel import BlockDevice, Io, Kernel, Reply, World
from quorate.lab.kernel import metadata as md

MINOR = 1000
NAME = "v"
MIB = 1 << 20
OPTIONS = {
    "auto-promote": "no",
    "quorum": "majority",
    "quorum-minimum-redundancy": "1",
    "on-no-quorum": "suspend-io",
    "on-no-data-accessible": "suspend-io",
    "on-suspended-primary-outdated": "force-secondary",
}
NET = {
    "shared-secret": "s",
    "cram-hmac-alg": "sha256",
    "rr-conflict": "retry-connect",
    "verify-alg": "crc32c",
    "ping-int": "3",
    "ping-timeout": "10",
    "connect-int": "3",
}


class Lab:
    """Nodes n0, n1 … with node ids 0, 1 …; those in ``diskless`` have no disk."""

    def __init__(
        self,
        nodes: int,
        diskless: Iterable[int] = (),
        *,
        options: Mapping[str, str] = {},
        own: Mapping[int, Mapping[str, str]] = {},
        net: Mapping[str, str] = {},
        seed: int = 0,
        size: int = 32 * MIB,
        form: bool = True,
    ) -> None:
        self.world = World(seed)
        self.diskless = set(diskless)
        self.options = {**OPTIONS, **options}
        self.own = own
        self.net = {**NET, **net}
        self.kernels: list[Kernel] = [self.world.add_node(f"n{i}", [f"10.0.0.{i}"]) for i in range(nodes)]
        self.disks = {i: BlockDevice(size) for i in range(nodes) if i not in self.diskless}
        self.pid = 0
        for disk in self.disks.values():
            md.create(disk, 7)
        if form:
            for i in range(nodes):
                self.up(i)
            self.wait(3)
            assert self.kernels[min(self.disks)].new_current_uuid(MINOR, clear_bitmap=True).ok
            self.wait(1)

    def up(self, i: int, peers: Iterable[int] | None = None) -> Reply:
        """Configure a node as drbdadm up does."""
        kernel = self.kernels[i]
        kernel.new_resource(NAME, i, {**self.options, **self.own.get(i, {})})
        kernel.new_minor(NAME, MINOR, 0, diskless=i in self.diskless)
        others = [j for j in range(len(self.kernels)) if j != i] if peers is None else list(peers)
        for j in others:
            self.add_peer(i, j)
        if i in self.disks:
            found = md.find(self.disks[i])
            if found is not None:
                md.apply_activity_log(found)
            reply = kernel.attach(MINOR, self.disks[i], f"/dev/disk{i}")
            if not reply.ok:
                return reply
        for j in others:
            kernel.connect(NAME, j)
        return Reply()

    def add_peer(self, i: int, j: int, net: Mapping[str, str] = {}) -> Reply:
        """Configure a connection without using it yet."""
        kernel = self.kernels[i]
        reply = kernel.new_peer(NAME, j, {**self.net, **net, "_name": f"n{j}"})
        if j in self.diskless and i not in self.diskless:
            kernel.peer_device_options(NAME, j, 0, {"bitmap": "no"})
        kernel.new_path(NAME, j, f"ipv4:10.0.0.{i}:7000", f"ipv4:10.0.0.{j}:7000")
        return reply

    def wait(self, seconds: float) -> None:
        self.world.advance(self.world.now + seconds)

    def cut(self, *groups: Iterable[int]) -> None:
        """Partition the nodes into groups, and wait until everybody has noticed."""
        sides = [set(group) for group in groups]
        pairs = [(f"n{a}", f"n{b}") for x in sides for y in sides if x is not y for a in x for b in y]
        self.world.set_cut(pairs)
        self.wait(8)

    def cut_pairs(self, *pairs: tuple[int, int]) -> None:
        self.world.set_cut([(f"n{a}", f"n{b}") for a, b in pairs])
        self.wait(8)

    def heal(self, seconds: float = 12) -> None:
        self.world.set_cut([])
        self.wait(seconds)

    def primary(self, i: int, *, force: bool = False) -> int:
        return self.kernels[i].primary(NAME, force=force).code

    def write(self, i: int, tag: object = "data", block: int = 0) -> Io:
        """A short-lived writer: opens, writes one block, closes when the write is over."""
        self.pid += 1
        pid, kernel = self.pid, self.kernels[i]
        assert kernel.open(MINOR, "dd", pid)
        io = kernel.write(MINOR, block * 4096, 4096, tag)

        def close(_: Io) -> None:
            self.world.soon(lambda: kernel.close(MINOR, pid))

        if io.blocked:
            io.when_settled = close
        else:
            close(io)
            self.world.settle()
        return io

    def wrote(self, i: int, tag: object = "data", block: int = 0) -> str:
        """How a write stands after a while."""
        io = self.write(i, tag, block)
        self.wait(4)
        return io.state.value

    def status(self, i: int) -> dict[str, Any]:
        return self.kernels[i].status(NAME)[0]

    def role(self, i: int) -> str:
        return str(self.status(i)["role"])

    def disk(self, i: int) -> str:
        return str(self.status(i)["devices"][0]["disk-state"])

    def quorum(self, i: int) -> bool:
        return bool(self.status(i)["devices"][0]["quorum"])

    def suspended(self, i: int) -> bool:
        return bool(self.status(i)["suspended"])

    def connection(self, i: int, j: int) -> str:
        found = [c for c in self.status(i)["connections"] if c["peer-node-id"] == j]
        return str(found[0]["connection-state"])

    def peer(self, i: int, j: int) -> dict[str, Any]:
        found = [c for c in self.status(i)["connections"] if c["peer-node-id"] == j]
        return dict(found[0]["peer_devices"][0])

    def healthy(self) -> bool:
        """Every connection is up, every disk UpToDate, nothing out of sync."""
        for i in range(len(self.kernels)):
            status = self.status(i)
            if i in self.disks and status["devices"][0]["disk-state"] != "UpToDate":
                return False
            for connection in status["connections"]:
                peer = connection["peer_devices"][0]
                if connection["connection-state"] != "Connected" or peer["out-of-sync"]:
                    return False
                if peer["replication-state"] != "Established":
                    return False
        return True

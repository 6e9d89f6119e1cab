"""Machines on the lab's kernel, and the little that an agent does to them with a config."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.api.meta import NodeName, VolumeName
from quorate.api.storage.drbd import ConnectionState, DrbdConfig, DrbdStatus, ReplicaType
from quorate.drbd.resource_file import render
from quorate.drbd.status import parse_status
from quorate.lab.drives import Drive
from quorate.lab.host import Host
from quorate.lab.kernel import World

VOLUME = VolumeName("v")
FILE = "/etc/drbd.d/v.res"
DISK = "/dev/vg0/v"
MINOR = 1000
D, A, TB = ReplicaType.DISKFUL, ReplicaType.ACCESS, ReplicaType.TIE_BREAKER


class Machines:
    """Nodes n0, n1 …, each for the member with that id, and what their agents do."""

    def __init__(self, count: int) -> None:
        self.world = World()
        self.hosts = [self._host(number) for number in range(count)]
        self._made: set[int] = set()
        #: Members whose drives are dead.
        self.dead: set[int] = set()

    def _host(self, number: int) -> Host:
        host = Host(self.world, f"n{number}", [f"10.0.0.{number}"])
        host.insert_drive(Drive(f"A{number}", 1 << 26, slot="1"))
        for words in (("vgcreate", "vg0", "/dev/sda"), ("lvcreate", "-y", "-L", "32M", "-n", "v", "vg0")):
            assert host.execute(words).exit_code == 0
        return host

    def run(self, number: int, *words: str, fails: bool = False) -> str:
        result = self.hosts[number].execute(words)
        assert fails or result.exit_code == 0, (number, words, result)
        return result.stdout

    def wait(self, seconds: float) -> None:
        self.world.advance(self.world.now + seconds)

    def realise(self, number: int, config: DrbdConfig) -> None:
        """What an agent does with a config, in its order: force; down; file, metadata, up, adjust; forget; role."""
        shown = self.status(number)
        up = shown is not None
        if config.force_secondary and shown is not None and shown.role == "Primary":
            self.run(number, "drbdsetup", "secondary", "--force", VOLUME)
        if config.down:
            if up:
                self.run(number, "drbdsetup", "down", VOLUME)
            return
        self.hosts[number].files[FILE] = render(VOLUME, NodeName(f"n{number}"), config).encode()
        if config.type is D and number not in self._made:
            self._made.add(number)
            self.run(number, "drbdadm", "-c", FILE, "create-md", "--max-peers=7", "--force", VOLUME)
        if up and number not in self.dead:
            self.run(number, "drbdadm", "-c", FILE, "adjust", VOLUME)
        elif up:
            self._adjust_links(number)
        else:
            self.bring_up(number)
        for node_id in config.forget:
            self.run(number, "drbdsetup", "forget-peer", VOLUME, str(node_id), fails=True)
        status = self.status(number)
        assert status is not None
        if (
            config.size is not None
            and status.devices[0].size * 1024 < int(config.size)
            and number == self._lowest(config)
        ):
            self.run(number, "drbdadm", "-c", FILE, "--", "--assume-clean", "resize", VOLUME)
        if config.primary != (status.role == "Primary"):
            self.run(number, "drbdadm", "-c", FILE, "primary" if config.primary else "secondary", VOLUME, fails=True)

    def bring_up(self, number: int) -> None:
        """With the file that is there; without its disk if that is dead or has no activity log since it grew (F10)."""
        result = self.hosts[number].execute(("drbdadm", "-c", FILE, "up", VOLUME))
        unusable = number in self.dead or "No usable activity log" in result.output
        assert unusable or result.exit_code == 0, (number, result)
        if unusable:
            self._adjust_links(number)

    def lose_disk(self, number: int) -> None:
        """The drive under a member dies, and its kernel lets go of it."""
        self.dead.add(number)
        self.hosts[number].fail_drive(f"A{number}")
        self.run(number, "drbdsetup", "detach", str(MINOR), "--force")
        self.wait(2)

    def _adjust_links(self, number: int) -> None:
        """All but the disk; whoever holds a quorum that it would not get any more has to count before it links."""
        adjust = ("drbdadm", "-c", FILE, "adjust", "--skip-disk", VOLUME)
        if self.hosts[number].execute(adjust).exit_code:
            self.run(number, "drbdsetup", "resource-options", VOLUME, "--quorum=all")
            self.run(number, *adjust)

    def count_again(self, number: int) -> None:
        """What an agent does whose voter, or user without a disk, stands still."""
        status = self.status(number)
        if status is None or status.devices[0].quorum:
            return
        self.run(number, "drbdsetup", "resource-options", VOLUME, "--quorum=all")
        self.run(number, "drbdadm", "-c", FILE, "adjust", "--skip-disk", VOLUME)

    def guard(self, number: int, config: DrbdConfig) -> None:
        """The younger of two primaries that has lost a link cuts the others too."""
        status = self.status(number)
        if not config.yields or status is None or status.role != "Primary":
            return
        if all(link.connection_state == ConnectionState.CONNECTED for link in status.connections):
            return
        for link in status.connections:
            self.run(number, "drbdsetup", "disconnect", VOLUME, str(link.peer_node_id), "--force", fails=True)
        self.wait(2)

    def extend(self) -> None:
        """Every disk grows."""
        for host in self.hosts:
            assert host.execute(("lvextend", "-L", "48M", "vg0/v")).exit_code == 0

    def _lowest(self, config: DrbdConfig) -> int:
        with_disk = [peer.node_id for peer in config.peers if peer.type is D]
        return min((config.node_id or 0, *with_disk))

    def wipe(self, number: int) -> None:
        """The disk goes with its replica: whoever comes next makes metadata anew."""
        self._made.discard(number)

    def status(self, number: int) -> DrbdStatus | None:
        if not self.hosts[number].powered:
            return None
        found = parse_status(self.run(number, "drbdsetup", "status", VOLUME, "--json", fails=True) or "[]")
        return found[0] if found else None

    def bootstrap(self, number: int) -> None:
        self.wait(3)
        self.run(number, "drbdsetup", "new-current-uuid", "--clear-bitmap", str(MINOR))
        self.wait(1)

    def cut(self, sides: Iterable[Iterable[int]]) -> None:
        """Only members of one side reach each other."""
        side_of = {number: side for side, numbers in enumerate(sides) for number in numbers}
        pairs = [
            (f"n{one}", f"n{other}")
            for one in side_of
            for other in side_of
            if one < other and side_of[one] != side_of[other]
        ]
        self.world.set_cut(pairs)
        self.wait(8)

    def statuses(self) -> dict[int, DrbdStatus]:
        """What every kernel that has the resource shows."""
        found = {number: self.status(number) for number in range(len(self.hosts))}
        return {number: status for number, status in found.items() if status is not None}

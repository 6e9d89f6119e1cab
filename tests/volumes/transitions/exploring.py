"""All histories of a step, without playing anything twice.

Histories that begin alike share their beginning: each state is kept and led on from there. And of states that are
alike in everything that the kernel goes by, only the first is led on. Alike means: the same roles, disks, links,
members, votes and options, the same marks in the metadata, and data generations that are equal where they were equal,
whatever their numbers. The moment within a reconnection is left out: whoever is looking for a peer finds it, or does
not, as the next cut says.
"""

from __future__ import annotations

import pickle
from collections.abc import Hashable, Iterator

from quorate.lab.kernel.metadata import Metadata
from quorate.lab.kernel.resource import Connection, Device, PeerDevice, Resource

from .machines import FILE, VOLUME, Machines
from .proof import Partition, apply, mixes, numbers, partitions
from .story import Written

#: What was done, and the machines after it.
Outcome = tuple[str, Machines]


class Kept:
    """A state from which many histories go on. What was pickled once is a copy many times cheaper than a deep copy."""

    def __init__(self, machines: Machines) -> None:
        self._kept = pickle.dumps(machines, pickle.HIGHEST_PROTOCOL)

    def copy(self) -> Machines:
        """The machines as they were."""
        found = pickle.loads(self._kept)
        assert isinstance(found, Machines)
        return found

    def cut(self, sides: Partition) -> Machines:
        """The machines after the network broke."""
        after = self.copy()
        after.cut(sides)
        return after


def everything(written: Written) -> Iterator[Outcome]:
    """Every mix and every partition; two cuts in a row; a power loss before the cut."""
    found = list(partitions(numbers(written)))
    # One memory for each sort of state: what follows from it differs.
    whole, broken, restarted = set[Hashable](), set[Hashable](), set[Hashable]()
    awake = [number for number in numbers(written) if number not in written.silent]
    start = Kept(written.machines)
    apart = [(sides, Kept(start.cut(sides))) for sides in found]
    for mix in mixes(written):
        for sides, before in apart:
            late = before.copy()
            apply(late, written, mix)
            late.wait(8)
            yield f"cut, then applied: {mix}; {said(sides)}", late
        together = start.copy()
        apply(together, written, mix)
        together.wait(4)
        if _is_known(together, whole):
            continue
        applied = Kept(together)
        yield from _cut_twice(str(mix), applied, found, broken)
        for number in awake:
            back = _restarted(applied.copy(), number)
            if not _is_known(back, restarted):
                kept = Kept(back)
                for sides in found:
                    yield f"#{number} back: {mix}; {said(sides)}", kept.cut(sides)


def said(sides: Partition) -> str:
    """Such as ``#0 #2 | #1``."""
    return " | ".join(" ".join(f"#{number}" for number in sorted(side)) for side in sides)


def _cut_twice(mix: str, applied: Kept, found: list[Partition], seen: set[Hashable]) -> Iterator[Outcome]:
    for first in found:
        once = applied.cut(first)
        known, kept = _is_known(once, seen), Kept(once)
        yield f"applied, then cut: {mix}; {said(first)}", once
        for second in () if known else found:
            if second != first:
                twice = kept.cut(second)
                twice.wait(60)
                yield f"two cuts: {mix}; {said(first)}, then {said(second)}", twice


def _restarted(machines: Machines, number: int) -> Machines:
    """A member loses its power and comes up again with the file that it had."""
    was_up = machines.status(number) is not None
    machines.hosts[number].power_off()
    machines.wait(8)
    machines.hosts[number].power_on()
    if was_up:
        machines.bring_up(number)
    machines.wait(8)
    return machines


def _is_known(machines: Machines, seen: set[Hashable]) -> bool:
    likeness = Likeness().of(machines)
    known = likeness in seen
    seen.add(likeness)
    return known


class Likeness:
    """What two states must have in common to be the same to the kernel. Data generations are numbered as they come."""

    def __init__(self) -> None:
        self._generations: dict[int, int] = {0: 0}

    def of(self, machines: Machines) -> Hashable:
        """Of all machines."""
        links = tuple(
            machines.world.reachable(one.kernel, other.kernel) for one in machines.hosts for other in machines.hosts
        )
        return links, tuple(self._machine(machines, number) for number in range(len(machines.hosts)))

    def _machine(self, machines: Machines, number: int) -> Hashable:
        host = machines.hosts[number]
        disk = host.lvm.groups["vg0"].volumes["v"].device
        on_disk = tuple((size, self._metadata(found)) for size, found in sorted(disk.metadata.items()))
        resource = host.kernel.find(VOLUME) if host.powered else None
        return host.powered, host.files.get(FILE), on_disk, self._resource(resource) if resource is not None else None

    def _resource(self, resource: Resource) -> Hashable:
        now = resource.now
        return (
            (now.role, now.suspended_user, now.suspended_no_data, now.suspended_quorum, now.fail_io),
            (frozenset(resource.members), resource.weak, resource.counting),
            tuple(sorted(resource.options.values.items())),
            tuple(self._device(device) for _, device in sorted(resource.devices.items())),
            tuple(self._connection(link) for _, link in sorted(resource.connections.items())),
        )

    def _device(self, device: Device) -> Hashable:
        exposed = self._generation(device.exposed_uuid)
        marks = (
            device.new_uuid_due,
            device.asking,
            device.generation_spent,
            device.crashed_primary,
            device.restore_quorum,
            device.intended_diskless,
        )
        return device.now.disk, device.now.quorum, exposed, marks, device.size, len(device.waiting)

    def _connection(self, link: Connection) -> Hashable:
        peers = tuple(self._peer(peer) for _, peer in sorted(link.peer_devices.items()))
        marks = (link.discard_my_data, link.stuck, link.other is not None)
        return link.peer_id, link.now.conn, link.now.peer_role, marks, tuple(sorted(link.options.values.items())), peers

    def _peer(self, peer: PeerDevice) -> Hashable:
        now = peer.now
        paused = (now.paused_by_user, now.paused_by_peer, now.paused_by_other)
        told = (self._generation(peer.peer_uuid), peer.peer_quorate, peer.copying is not None)
        return now.disk, now.repl, paused, told, tuple(sorted(peer.options.values.items()))

    def _metadata(self, found: Metadata) -> Hashable:
        slots = tuple(
            (number, slot.bitmap_index, slot.flags, self._generation(slot.bitmap_uuid), bool(slot.bitmap))
            for number, slot in sorted(found.peers.items())
        )
        history = tuple(self._generation(each) for each in found.history)
        return self._generation(found.current_uuid), found.flags, slots, history, frozenset(found.members)

    def _generation(self, uuid: int) -> int:
        return self._generations.setdefault(uuid & ~1, len(self._generations))

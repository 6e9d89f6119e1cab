"""Every mix of members that have and have not applied a step, every partition, judged by the lab's kernel.

A step is tried from the state in which it was written: the machines of a story, copied. From there

    applied, then cut      the step reaches some members, then the network breaks
    cut, then applied      the network is broken when the step reaches them: agents talk to the API, not to each other
    applied, cut, cut      it breaks again, in another way, before it is mended: who had quorum then matters
    applied, back, cut     one of them loses its power, comes back with what it had, and the network breaks

A member that is told to forget another does it after adjusting: it may crash between the two, so that is a state too.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Any

from quorate.api.storage.datamesh import Member
from quorate.api.storage.drbd import DrbdConfig
from quorate.api.storage.rv import ReplicatedVolumeStatus
from quorate.api.struct import replace
from quorate.placement.layout import layout_of
from quorate.volumes.datamesh import config_of

from .story import VOLUME, D, Machines, Written

Partition = tuple[frozenset[int], ...]


class Has(Enum):
    """How much of a step a member has applied."""

    NOTHING = "nothing"
    #: The file, and not yet the forgetting.
    HALF = "half"
    ALL = "all"


@dataclass(frozen=True)
class Mix:
    """Who has applied how much."""

    applied: Mapping[int, Has]

    def __str__(self) -> str:
        return ", ".join(f"#{number} {has.value}" for number, has in sorted(self.applied.items())) or "nobody differs"


def partitions(numbers: Iterable[int]) -> Iterator[Partition]:
    """Every way in which a set can fall into sides."""
    first, *rest = sorted(numbers)
    if not rest:
        yield (frozenset({first}),)
        return
    for smaller in partitions(rest):
        for number, side in enumerate(smaller):
            yield (*smaller[:number], side | {first}, *smaller[number + 1 :])
        yield (*smaller, frozenset({first}))


def config(written: Written, status: ReplicatedVolumeStatus, number: int) -> DrbdConfig | None:
    """What a member's agent is told in a status; None: it is no member."""
    told = written.view.with_status(status)
    found = next((each for each in told.replicas if each.id == number), None)
    return config_of(told, found) if found is not None else None


def mixes(written: Written) -> Iterator[Mix]:
    """Every mix, of those members for which the step makes a difference."""
    choices: dict[int, tuple[Has, ...]] = {}
    for member in _members(written):
        number = member.node_id
        before, after = config(written, written.before, number), config(written, written.after, number)
        if number in written.silent or after is None or _same(before, after):
            continue
        forgets = bool(set(after.forget) - set(before.forget if before is not None else ()))
        choices[number] = (Has.NOTHING, Has.HALF, Has.ALL) if forgets else (Has.NOTHING, Has.ALL)
    for applied in product(*choices.values()):
        yield Mix(dict(zip(choices, applied, strict=True)))


def numbers(written: Written) -> list[int]:
    """Members whose kernels may take part: with power, and up before or after."""
    return sorted({member.node_id for member in _members(written) if written.machines.hosts[member.node_id].powered})


def as_it_is(written: Written) -> Partition:
    """Whoever was silent and out of reach stays so; everybody else is in touch."""
    world, hosts = written.machines.world, written.machines.hosts
    alone = {
        number
        for number in written.silent
        if not any(world.reachable(hosts[number].kernel, host.kernel) for host in hosts if host is not hosts[number])
    }
    here = frozenset(number for number in range(len(hosts)) if number not in alone)
    return (here, *(frozenset({number}) for number in sorted(alone)))


def apply(machines: Machines, written: Written, mix: Mix) -> None:
    """Let the members have what they have."""
    for number, has in sorted(mix.applied.items()):
        after = config(written, written.after, number)
        if has is not Has.NOTHING and after is not None:
            machines.realise(number, replace(after, forget=()) if has is Has.HALF else after)


def applied_then_cut(written: Written, mix: Mix, sides: Partition) -> Machines:
    machines = copy.deepcopy(written.machines)
    apply(machines, written, mix)
    machines.wait(4)
    machines.cut(sides)
    return machines


def cut_then_applied(written: Written, mix: Mix, sides: Partition) -> Machines:
    machines = copy.deepcopy(written.machines)
    machines.cut(sides)
    apply(machines, written, mix)
    machines.wait(8)
    return machines


def applied_cut_cut(written: Written, mix: Mix, first: Partition, second: Partition) -> Machines:
    machines = applied_then_cut(written, mix, first)
    machines.cut(second)
    machines.wait(60)
    return machines


def applied_back_cut(written: Written, mix: Mix, number: int, sides: Partition) -> Machines:
    """A member loses its power and comes up again with the file that it had."""
    machines = copy.deepcopy(written.machines)
    apply(machines, written, mix)
    machines.wait(2)
    was_up = machines.status(number) is not None
    machines.hosts[number].power_off()
    machines.wait(8)
    machines.hosts[number].power_on()
    if was_up:
        machines.bring_up(number)
    machines.wait(8)
    machines.cut(sides)
    return machines


def may_serve(written: Written) -> set[int]:
    """Members that may be Primary: beside a tie-breaker a hidden one without a disk never is (02, Attach).

    Such a one follows a copy that it is in touch with, and hears that the copy has lost its quorum only with its own
    next change: recordings ``diskless_own_quorum_majority`` and ``diskless_own_quorum_32_split`` show what comes of it.
    """
    assert written.after.configuration is not None
    breaks_ties = layout_of(written.after.configuration).tie_breakers > 0
    both = (*written.before.datamesh.members, *written.after.datamesh.members)
    return {member.node_id for member in both if member.type is D or not (breaks_ties and member.hidden)}


def quorate_sides(machines: Machines, among: set[int] | None = None) -> list[set[int]]:
    """The members that are quorate, by those that are in touch with one another; as the kernels have it."""
    statuses = {
        number: found[0]
        for number, host in enumerate(machines.hosts)
        if host.powered and (found := host.kernel.status(VOLUME))
    }
    quorate = {number for number, status in statuses.items() if status["devices"][0]["quorum"]}
    quorate &= quorate if among is None else among
    return [side & quorate for side in _in_touch(statuses) if side & quorate]


def _in_touch(statuses: Mapping[int, Mapping[str, Any]]) -> list[set[int]]:
    left, sides = set(statuses), []
    while left:
        side, ahead = set(), {min(left)}
        while ahead:
            number = ahead.pop()
            side.add(number)
            links = statuses[number]["connections"]
            there = {link["peer-node-id"] for link in links if link["connection-state"] == "Connected"}
            ahead |= (there & set(statuses)) - side
        sides.append(side)
        left -= side
    return sides


def _members(written: Written) -> list[Member]:
    found = {member.node_id: member for member in written.before.datamesh.members}
    found.update({member.node_id: member for member in written.after.datamesh.members})
    return [found[number] for number in sorted(found)]


def _same(before: DrbdConfig | None, after: DrbdConfig) -> bool:
    if before is None:
        return False
    return replace(before, datamesh_revision=0, quorum=None) == replace(after, datamesh_revision=0, quorum=None)

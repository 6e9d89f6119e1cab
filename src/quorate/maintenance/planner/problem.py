"""What a plan must respect, without anything that a plan does not need: hosts are numbers here.

Two hosts conflict when a group has parts on both. A round may also not exceed how many hosts may be away at once, in
all and of each tenant, nor touch more rings of the state storage than may be. All hosts of one ring may go together.
"""

from __future__ import annotations

from dataclasses import dataclass, field

#: No bound.
UNLIMITED = 2**31


@dataclass(frozen=True, slots=True)
class Problem:
    """Hosts to be served, and what cannot go together."""

    hosts: int
    #: Each a group's hosts, two or more, without repetition.
    groups: tuple[tuple[int, ...], ...] = ()
    at_once: int = UNLIMITED
    #: For each host the tenants of its nodes; and for each tenant how many of its hosts may go at once.
    tenants: tuple[tuple[str, ...], ...] = ()
    of_tenant_at_once: dict[str, int] = field(default_factory=dict)
    #: For each host the rings that it holds a part of.
    rings: tuple[frozenset[int], ...] = ()
    rings_at_once: int = UNLIMITED
    #: Ways to part the hosts, a word for each host: by rack, by room, by their place in groups. Groups are spread over
    #: such places, so the hosts of one seldom conflict. A hint, and nothing more.
    partitions: tuple[tuple[str, ...], ...] = ()

    def groups_of(self) -> list[list[int]]:
        """For each host its groups."""
        result: list[list[int]] = [[] for _ in range(self.hosts)]
        for number, group in enumerate(self.groups):
            for host in group:
                result[host].append(number)
        return result

    def parts(self) -> list[list[list[int]]]:
        """For each way to part the hosts its parts, the largest first."""
        result = []
        for words in self.partitions:
            parts: dict[str, list[int]] = {}
            for host, word in enumerate(words):
                parts.setdefault(word, []).append(host)
            result.append(sorted(parts.values(), key=lambda part: (-len(part), part[0])))
        return result

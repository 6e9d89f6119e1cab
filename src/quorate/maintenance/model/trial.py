"""What one request has taken so far: the temporary locks, on top of the model and never in it.

Every step goes into a log, so an action that fails half-way is undone to where it began, and a request that was only
tried leaves nothing behind when the trial is forgotten.
"""

from __future__ import annotations

from typing import NamedTuple

from quorate.api.maintenance.action import HostState
from quorate.maintenance.model.counters import NodeCounter
from quorate.maintenance.model.items import GroupItem, Item, NodeItem, VDiskItem


class Taken(NamedTuple):
    """A temporary lock."""

    #: Which action of the request it is for.
    action: int
    #: When the permission that it would become ends.
    until: int
    #: When the work under it is over at the latest: it may begin at the end.
    over: int = 0


class Tally:
    """Nodes that were taken from a counter."""

    __slots__ = ("down", "nodes")

    def __init__(self) -> None:
        #: In the order in which they were taken.
        self.nodes: dict[NodeItem, Taken] = {}
        #: How many of them are down: the counter has those already.
        self.down = 0

    def count(self, node: NodeItem, taken: Taken, step: int) -> None:
        """One more, or (-1) one less."""
        if step > 0:
            self.nodes[node] = taken
        else:
            del self.nodes[node]
        self.down += step * (node.state is HostState.DOWN)


class Trial:
    """The temporary locks."""

    __slots__ = ("_log", "_members", "_tallies", "taken")

    def __init__(self) -> None:
        self.taken: dict[Item, Taken] = {}
        self._members: dict[GroupItem, int] = {}
        self._tallies: dict[NodeCounter, Tally] = {}
        self._log: list[Item] = []

    def take(self, item: Item, taken: Taken) -> None:
        """Lock an item that nobody has."""
        self.taken[item] = taken
        self._log.append(item)
        self._count(item, taken, 1)

    def touches(self, group: GroupItem) -> bool:
        """Something of the group is taken."""
        return group in self._members

    def tally(self, counter: NodeCounter) -> Tally:
        """What is taken from a counter."""
        return self._tallies.get(counter, _NOTHING)

    def mark(self) -> int:
        """A point to go back to."""
        return len(self._log)

    def undo(self, mark: int) -> None:
        """Go back."""
        while len(self._log) > mark:
            item = self._log.pop()
            self._count(item, self.taken.pop(item), -1)

    def _count(self, item: Item, taken: Taken, step: int) -> None:
        if isinstance(item, VDiskItem):
            left = self._members.get(item.group, 0) + step
            if left:
                self._members[item.group] = left
            else:
                del self._members[item.group]
        elif isinstance(item, NodeItem):
            for counter in item.counters:
                tally = self._tallies.setdefault(counter, Tally())
                tally.count(item, taken, step)
                if not tally.nodes:
                    del self._tallies[counter]


_NOTHING = Tally()

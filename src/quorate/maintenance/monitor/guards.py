"""Against marking many at once: when a room goes dark, its drives are not broken.

Each place (data centre, room, rack) may have a share of its drives marked, each node a number. Those that were marked
within the window count, so that two waves in a row are no way round. A place where too many want to change has none
changed: a fault of the place, not of its drives. Where that place has no name there is no guard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from quorate.api.maintenance.broker_config import MonitorConfig
from quorate.maintenance.nouns import DriveId

#: Of a place; an empty last word means that it has no name.
Place = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Location:
    """Where a drive is."""

    node: int
    data_center: str = ""
    room: str = ""
    rack: str = ""


@dataclass(frozen=True, slots=True)
class Guard:
    """A share of the drives of one sort of place."""

    word: str
    place: Callable[[Location], Place]
    percent: Callable[[MonitorConfig], int]


GUARDS = (
    Guard("data centre", lambda at: (at.data_center,), lambda config: config.data_center_ratio),
    Guard("room", lambda at: (at.data_center, at.room), lambda config: config.room_ratio),
    Guard("rack", lambda at: (at.data_center, at.room, at.rack), lambda config: config.rack_ratio),
)


@dataclass(frozen=True, slots=True)
class Standing:
    """All drives by place, and those already marked."""

    everywhere: Sequence[Location]
    #: Marked within the window, or still marked.
    marked: Iterable[tuple[DriveId, Location]] = ()


def held_back(
    wanted: Sequence[tuple[DriveId, Location]], standing: Standing, config: MonitorConfig
) -> dict[DriveId, str]:
    """Of the drives that would be marked anew: those that must not be, with the reason."""
    if not wanted:
        return {}
    result: dict[DriveId, str] = {}
    changed = [*wanted, *standing.marked]
    for guard in GUARDS:
        percent = guard.percent(config)
        totals = Counter(guard.place(at) for at in standing.everywhere)
        counts = Counter(guard.place(at) for _, at in changed)
        nodes: dict[Place, set[int]] = {}
        for _, at in changed:
            nodes.setdefault(guard.place(at), set()).add(at.node)
        for drive, at in wanted:
            place = guard.place(at)
            if drive in result or not place[-1] or counts[place] * 100 <= totals[place] * percent:
                continue
            if guard.word == "rack" and len(nodes[place]) == 1:
                continue  # one node's drives are that node's trouble, and its own guard's
            result[drive] = (
                f"{counts[place]} of {totals[place]} drives of {guard.word} {'/'.join(place)} would be marked, "
                f"at most {percent} % may be"
            )
    if (limit := config.faulty_disks_per_node) > 0:
        per_node = Counter(at.node for _, at in changed)
        for drive, at in wanted:
            if drive not in result and per_node[at.node] > limit:
                result[drive] = f"{per_node[at.node]} drives of node {at.node} would be marked, at most {limit} may be"
    return result

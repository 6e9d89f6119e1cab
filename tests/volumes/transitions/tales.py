"""The stories whose every step is proved: each way in which members come, go and change, on small volumes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType

from .story import TB, A, D, Story

Tale = Callable[[int | None], Story]

_NONE, _CONSISTENCY = Replication.NONE, Replication.CONSISTENCY
_AVAILABILITY, _BOTH = Replication.AVAILABILITY, Replication.CONSISTENCY_AND_AVAILABILITY


def begin(level: Replication, kinds: list[ReplicaType], user: int | None, *, obedient: bool = False) -> Story:
    """A volume that is formed, and in use where it is to be."""
    story = Story(level, kinds, obedient=obedient)
    if user is not None:
        story.attach(user)
    return story


def moved(level: Replication, kinds: list[ReplicaType], old: int, *, lost: bool = False) -> Tale:
    """A replica is replaced by one on another node. ``lost``: its node is alive, and out of everybody's reach."""

    def tell(user: int | None) -> Story:
        story = begin(level, kinds, user)
        if lost:
            story.lose(old, alive=True)
        story.add(len(kinds), kinds[old])
        story.settle()
        if user == old:
            story.attach(old, attached=False)
        story.delete(old)
        story.settle()
        return story

    return tell


def gone(level: Replication, kinds: list[ReplicaType], old: int) -> Tale:
    """A node is taken out of the cluster with its replica, which may be alive. Another comes in its place."""

    def tell(user: int | None) -> Story:
        story = begin(level, kinds, user)
        story.lose(old, alive=True)
        story.gone.add(old)
        story.delete(old)
        story.settle()
        story.add(len(kinds), kinds[old])
        story.settle()
        return story

    return tell


def cut_off(level: Replication, kinds: list[ReplicaType], old: int) -> Tale:
    """A copy's links are cut while its agent is heard: it applies every step, and has no quorum. It is replaced."""

    def tell(user: int | None) -> Story:
        story = begin(level, kinds, user)
        everybody = set(range(len(story.machines.hosts)))
        story.machines.cut([{old}, everybody - {old}])
        story.agents()
        story.add(len(kinds), kinds[old])
        story.settle()
        story.delete(old)
        story.settle()
        return story

    return tell


def back(user: int | None) -> Story:
    """3D: a node is lost, replaced, and returns before its replica is removed."""
    story = begin(_BOTH, [D, D, D], user)
    story.lose(1, alive=True)
    story.add(3, D)
    story.settle()
    story.machines.world.set_cut([])
    story.silent.clear()
    story.agents()
    story.settle()
    story.delete(1)
    story.settle()
    return story


def retyped(user: int | None) -> Story:
    """3D: a fourth copy comes, and one of the first gives its disk back and stays for access."""
    story = begin(_BOTH, [D, D, D], user)
    story.add(3, D)
    story.settle()
    story.change(1, A)
    story.settle()
    return story


def promoted(user: int | None) -> Story:
    """2D: an access replica gets a disk."""
    story = begin(_CONSISTENCY, [D, D], user)
    story.add(2, A)
    story.settle()
    story.change(2, D)
    story.settle()
    return story


TALES: Mapping[str, Tale] = {
    "1D moves": moved(_NONE, [D], 0),
    "2D moves": moved(_CONSISTENCY, [D, D], 1),
    "2D+1TB moves": moved(_AVAILABILITY, [D, D, TB], 1),
    "3D moves": moved(_BOTH, [D, D, D], 1),
    "2D+1TB loses a copy": moved(_AVAILABILITY, [D, D, TB], 1, lost=True),
    "3D loses a copy": moved(_BOTH, [D, D, D], 1, lost=True),
    "a tie-breaker moves": moved(_AVAILABILITY, [D, D, TB], 2),
    "a tie-breaker is lost": moved(_AVAILABILITY, [D, D, TB], 2, lost=True),
    "3D and a node goes": gone(_BOTH, [D, D, D], 1),
    "2D+1TB and a node goes": gone(_AVAILABILITY, [D, D, TB], 1),
    "2D+1TB and the tie-breaker's node goes": gone(_AVAILABILITY, [D, D, TB], 2),
    "3D and a copy is cut off": cut_off(_BOTH, [D, D, D], 1),
    "3D and a node returns": back,
    "3D and a copy becomes access": retyped,
    "2D and access becomes a copy": promoted,
}

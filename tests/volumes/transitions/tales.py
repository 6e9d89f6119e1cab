"""The stories whose every step is proved: each way in which members come, go and change, on small volumes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from quorate.api.storage.configuration import Replication
from quorate.api.storage.drbd import ReplicaType

from .story import MINOR, TB, A, D, Story

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


def replaced_together(user: int | None) -> Story:
    """3D on four nodes: two copies are deleted at once. The second one's replacement comes where the first one was."""
    story = begin(_BOTH, [D, D, D], user)
    story.delete(1)
    story.delete(2)
    story.add(3, D)
    story.settle()
    story.add(4, D)
    story.settle()
    return story


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


def returned(level: Replication, kinds: list[ReplicaType], lost: int) -> Tale:
    """A member is out of reach, a step is taken without it, and it is taken back."""

    def tell(user: int | None) -> Story:
        story = begin(level, kinds, user)
        story.lose(lost, alive=True)
        story.add(len(kinds), A)
        story.settle()
        story.machines.world.set_cut([])
        story.machines.wait(20)
        story.silent.clear()
        story.agents()
        story.settle()
        return story

    return tell


def returned_before(step: str) -> Tale:
    """2D+1TB: a copy is out of reach and excused, another one comes, and the first is back in the middle of it."""

    def tell(user: int | None) -> Story:
        story = begin(_AVAILABILITY, [D, D, TB], user)
        story.lose(1, alive=True)
        story.add(3, D)
        _until(story, step)
        story.machines.world.set_cut([])
        story.silent.clear()
        story.machines.wait(5)
        story.settle()
        return story

    return tell


def _until(story: Story, step: str) -> None:
    """Go on until a step is under way, and nobody has applied it."""
    for _ in range(40):
        if story.controller() and story.written[-1].step == step:
            return
        story.agents()
    raise AssertionError(f"{step} never began: {story.waits()}")


def stuck(level: Replication, kinds: list[ReplicaType], old: int) -> Tale:
    """A copy is up, alone, and its agent can do nothing: it is excused, replaced, and removed once it has gone down."""

    def tell(user: int | None) -> Story:
        story = begin(level, kinds, user)
        story.stick(old)
        story.add(len(kinds), D)
        story.settle()
        story.delete(old)
        story.settle()
        return story

    return tell


def given_up(user: int | None) -> Story:
    """2D: a person gives up a copy that is out of reach and may be alive; another one comes, and is demanded again."""
    story = begin(_CONSISTENCY, [D, D], user)
    story.lose(1, alive=True)
    story.annotate(force_remove="v-1", accept_data_loss="true")
    story.delete(1)
    story.settle()
    story.add(2, D)
    story.settle()
    return story


def handed_over(*, alive: bool) -> Tale:
    """1D: the last vote is on a copy whose disk is lost, or whose node is off; a person gives it up for a good one."""

    def tell(user: int | None) -> Story:
        story = begin(_NONE, [D], None)
        story.add(1, D)
        for _ in range(2):
            story.controller()
            story.agents()
        if alive:
            story.machines.lose_disk(0)
            story.agents()
        else:
            story.lose(0)
        story.annotate(force_remove="v-0", accept_data_loss="true")
        story.delete(0)
        story.settle()
        story.attach(1)
        return story

    return tell


def side_kept(given_up: int, *, cut: str = "node") -> Tale:
    """2D+1TB: the copies do not see one another, and a person says which is kept. The other is here, and heard."""

    def tell(user: int | None) -> Story:
        story = begin(_AVAILABILITY, [D, D, TB], user if given_up == 1 else None)
        if cut == "node":
            story.machines.cut([{1}, {0, 2, 3, 4}])
        else:
            story.machines.world.set_cut([("n0", "n1")])
            story.machines.wait(20)
        story.agents()
        story.annotate(force_remove=f"v-{given_up}", accept_data_loss="true")
        story.delete(given_up)
        story.settle()
        story.machines.world.set_cut([])
        story.machines.wait(20)
        story.agents()
        story.add(3, D)
        story.settle()
        return story

    return tell


def taken_back(given_up: int, *, alive: bool) -> Tale:
    """2D+1TB: the copy to keep is silent when the other has given way; the word is taken back, and the other comes up.

    ``alive``: only its agent is silent, and it serves on. Otherwise its node is alive, and out of everybody's reach.
    """

    def tell(user: int | None) -> Story:
        story = begin(_AVAILABILITY, [D, D, TB], None)
        story.machines.cut([{1}, {0, 2, 3, 4}])
        story.agents()
        story.annotate(force_remove=f"v-{given_up}", accept_data_loss="true")
        story.delete(given_up)
        story.controller()
        if alive:
            story.silent.add(1 - given_up)
        else:
            story.lose(1 - given_up, alive=True)
        for _ in range(6):
            story.agents()
            story.controller()
        assert story.member(given_up).down
        story.annotate()
        for _ in range(6):
            story.controller()
            story.agents()
        assert not story.member(given_up).down
        story.silent.clear()
        story.machines.world.set_cut([])
        story.machines.wait(20)
        story.agents()
        story.add(3, D)
        story.settle()
        return story

    return tell


def swapped(user: int | None) -> Story:
    """2D+1TB: used where there is no replica. A new one joins, takes the tie-breaker's place, and serves."""
    story = begin(_AVAILABILITY, [D, D, TB], None, obedient=True)
    story.add(3, A)
    story.attach(3)
    story.settle()
    story.attach(3, attached=False)
    story.change(3, TB)
    story.settle()
    return story


def served_by_tie_breaker(user: int | None) -> Story:
    """2D+1TB: the tie-breaker's own node uses the volume."""
    story = begin(_AVAILABILITY, [D, D, TB], None)
    story.change(2, A)
    story.attach(2)
    story.attach(2, attached=False)
    story.change(2, TB)
    story.settle()
    return story


def doubled(level: Replication, kinds: list[ReplicaType]) -> Tale:
    """Two nodes use the volume, and then one of them."""

    def tell(user: int | None) -> Story:
        story = begin(level, kinds, 0)
        story.attach(1)
        story.attach(1, attached=False)
        return story

    return tell


def yielded(user: int | None) -> Story:
    """3D: two nodes use the volume, and only their own link is cut. The younger gives way, and comes back."""
    story = begin(_BOTH, [D, D, D], 0)
    story.attach(1)
    story.machines.world.set_cut([("n0", "n1")])
    story.machines.wait(8)
    story.agents()
    story.controller()
    story.agents()
    story.machines.world.set_cut([])
    story.machines.wait(20)
    story.settle()
    return story


def used_meanwhile(level: Replication, kinds: list[ReplicaType]) -> Tale:
    """A node begins to use the volume while a copy is shown, and not everybody has heard of either."""

    def tell(user: int | None) -> Story:
        story = begin(level, kinds, None)
        story.add(len(kinds), D)
        _until(story, "AddReplica/Show")
        story.agents(only={1, len(kinds)})
        story.ask(0)
        story.controller()
        story.settle()
        return story

    return tell


def used_beside_a_silent_one(level: Replication, kinds: list[ReplicaType], silent: int) -> Tale:
    """One agent is not heard while its kernel runs on. The user changes, and a copy joins when it is heard again."""

    def tell(user: int | None) -> Story:
        story = begin(level, kinds, 0)
        story.silent.add(silent)
        story.attach(0, attached=False)
        story.attach(1)
        story.attach(1, attached=False)
        story.attach(0)
        story.silent.clear()
        story.agents()
        story.add(len(kinds), D)
        story.settle()
        return story

    return tell


def failed_over(level: Replication, kinds: list[ReplicaType], silent: int) -> Tale:
    """The user is out of reach and may be alive, another agent is not heard; the third takes over. Both come back."""

    def tell(user: int | None) -> Story:
        story = begin(level, kinds, 0)
        story.silent.add(silent)
        story.lose(0, alive=True)
        story.attach(0, attached=False)
        story.attach(1)
        story.machines.world.set_cut([])
        story.machines.wait(20)
        story.silent.clear()
        story.agents()
        story.settle()
        return story

    return tell


def grown(level: Replication, kinds: list[ReplicaType]) -> Tale:
    """The volume grows, in use where that is allowed."""

    def tell(user: int | None) -> Story:
        story = begin(level, kinds, user)
        story.grow()
        return story

    return tell


def disk_lost(level: Replication, kinds: list[ReplicaType], dead: list[int]) -> Tale:
    """Drives die, the user's among them, and I/O stands for want of copies; others come, and the dead ones leave."""

    def tell(user: int | None) -> Story:
        story = begin(level, kinds, user)
        for number in dead:
            story.machines.lose_disk(number)
        story.agents()
        for number in range(len(dead)):
            story.add(len(kinds) + number, D)
            story.settle()
        if user in dead:
            story.attach(user, attached=False)
        for number in dead:
            story.delete(number)
            story.settle()
        return story

    return tell


def forced_off(user: int | None) -> Story:
    """3D: the user is cut off, a process holds its device open, and a person has it demoted by force."""
    story = begin(_BOTH, [D, D, D], 0)
    assert story.machines.hosts[0].kernel.open(MINOR, "qemu", 4711)
    story.machines.cut([{0}, {1, 2, 3, 4}])
    story.agents()
    story.unask(0)
    _pass(story, 4)
    story.annotate(force_detach="n0", accept_data_loss="true")
    story.attach(1)
    story.machines.world.set_cut([])
    story.machines.wait(20)
    story.settle()
    return story


def forced_out(user: int | None) -> Story:
    """3D: a copy that leaves, and another, are out of reach; a person has the first one forced out."""
    story = begin(_BOTH, [D, D, D], user)
    story.add(3, D)
    story.settle()
    story.delete(1)
    while not story.member(1).hidden:
        story.controller()
    story.lose(2)
    story.lose(1, alive=True)
    _pass(story, 8)
    story.annotate(force_remove="v-1", accept_data_loss="true")
    _pass(story, 20)
    assert story.shape() == "D0 D2 D3"
    return story


def _pass(story: Story, number: int) -> None:
    for _ in range(number):
        story.controller()
        story.agents()


#: Tales in which a person says that data may be lost: fewer copies than promised are demanded for a while.
CONSENTED = frozenset({"2D and a copy is given up"})
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
    "3D and two copies are deleted together": replaced_together,
    "3D and a node returns": back,
    "3D and a copy becomes access": retyped,
    "2D and access becomes a copy": promoted,
    "2D+1TB and a copy returns": returned(_AVAILABILITY, [D, D, TB], 1),
    "2D+1TB and the tie-breaker returns": returned(_AVAILABILITY, [D, D, TB], 2),
    "2D+1TB and a copy returns before another is there": returned_before("AddReplica/Connect"),
    "2D+1TB and a copy returns before the tie-breaker is hidden": returned_before("AddReplica/HideTieBreaker"),
    "2D+1TB and a copy returns before another has a vote": returned_before("AddReplica/Show"),
    "3D and a copy is stuck": stuck(_BOTH, [D, D, D], 1),
    "2D+1TB and a copy is stuck": stuck(_AVAILABILITY, [D, D, TB], 1),
    "2D and a copy is given up": given_up,
    "2D and a drive dies under the user": disk_lost(_CONSISTENCY, [D, D], [0]),
    "2D and the other drive dies": disk_lost(_CONSISTENCY, [D, D], [1]),
    "3D and two drives die": disk_lost(_BOTH, [D, D, D], [0, 1]),
    "2D+1TB is divided and the side with quorum is kept": side_kept(1),
    "2D+1TB is divided and the side without quorum is kept": side_kept(0),
    "2D+1TB and only the link between its copies is cut": side_kept(1, cut="link"),
    "2D+1TB is divided and the word for the quorate side is taken back": taken_back(1, alive=True),
    "2D+1TB is divided and the word for the other side is taken back": taken_back(0, alive=True),
    "2D+1TB is divided and the quorate side is lost, too": taken_back(1, alive=False),
    "2D+1TB is divided and the other side is lost, too": taken_back(0, alive=False),
    "1D hands its vote over when its disk is lost": handed_over(alive=True),
    "1D hands its vote over when its node is off": handed_over(alive=False),
    "a tie-breaker is swapped for a user": swapped,
    "a tie-breaker serves": served_by_tie_breaker,
    "2D is used twice": doubled(_CONSISTENCY, [D, D]),
    "3D is used twice": doubled(_BOTH, [D, D, D]),
    "3D and a primary yields": yielded,
    "3D is used while a vote changes": used_meanwhile(_BOTH, [D, D, D]),
    "2D+1TB is used while a vote changes": used_meanwhile(_AVAILABILITY, [D, D, TB]),
    "3D is used while an agent is silent": used_beside_a_silent_one(_BOTH, [D, D, D], 2),
    "2D+1TB is used while the tie-breaker's agent is silent": used_beside_a_silent_one(_AVAILABILITY, [D, D, TB], 2),
    "3D and another takes over while an agent is silent": failed_over(_BOTH, [D, D, D], 2),
    "2D+1TB and another takes over while the tie-breaker's agent is silent": failed_over(_AVAILABILITY, [D, D, TB], 2),
    "3D and a user that is cut off is demoted by force": forced_off,
    "3D and a removal is taken over by force": forced_out,
    "3D grows": grown(_BOTH, [D, D, D]),
    "2D+1TB grows": grown(_AVAILABILITY, [D, D, TB]),
}

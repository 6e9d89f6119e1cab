"""What the real kernel loses, and what keeps it from losing it: E2, F1, P, G of the facts about its races."""

from __future__ import annotations

import pytest

from quorate.lab.kernel.io import Io
from quorate.lab.kernel.races import Race, Wrong

from .lab import MINOR, NAME, Lab

SEEDS = range(6)


class Isolated:
    """Three replicas; the primary n0 was cut off with a write in flight, and has lost its quorum."""

    def __init__(self, seed: int, *, busy: bool = False) -> None:
        self.lab = Lab(3, options={"quorum-minimum-redundancy": "2"}, seed=seed)
        assert self.lab.primary(0) == 0
        if busy:
            assert self.lab.wrote(0, "before", 1) == "done"
        self.lab.world.set_cut([("n0", "n1"), ("n0", "n2")])
        self.write: Io = self.lab.write(0, "blocked")
        self.lab.wait(7)
        assert self.lab.status(0)["suspended-quorum"]

    def heal_one_after_the_other(self, first: int = 1, seconds: float = 10) -> None:
        self.lab.world.set_cut([("n0", f"n{3 - first}")])
        self.lab.wait(seconds)
        self.lab.heal()

    def stale(self) -> list[int]:
        """Who says UpToDate and has not got the acknowledged write."""
        assert self.write.state.value == "done"
        return [i for i in self.lab.disks if self.lab.disk(i) == "UpToDate" and self.lab.disks[i].read(0) != "blocked"]

    def marks(self) -> dict[tuple[int, int], int]:
        pairs = [(i, j) for i in range(3) for j in range(3) if i != j]
        return {(i, j): oos for i, j in pairs if (oos := self.lab.peer(i, j)["out-of-sync"])}


def stale_copy(seed: int) -> Isolated:
    """n2 lacks the write, and only n1 knows."""
    played = Isolated(seed)
    played.heal_one_after_the_other()
    assert played.stale() == [2]
    return played


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("first", [1, 2])
def test_the_first_write_of_an_idle_primary_that_was_cut_off_is_missing_on_the_peer_that_comes_second(
    seed: int, first: int
) -> None:
    played = Isolated(seed)
    played.lab.world.set_cut([("n0", f"n{3 - first}")])
    played.lab.wait(10)
    assert played.write.state.value == "done"
    assert played.lab.disk(3 - first) == "Outdated"
    assert played.marks() == {(0, 3 - first): 4, (first, 3 - first): 4}
    played.lab.heal()
    assert played.stale() == [3 - first]
    assert played.marks() == {(first, 3 - first): 4}, "only the third member shows it"
    assert [(a.wrong, a.lacking, a.blocks) for a in played.lab.world.accidents] == [
        (Wrong.MARK_ERASED, 3 - first, ((0, 1),))
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_links_that_heal_together_make_no_difference(seed: int) -> None:
    played = Isolated(seed)
    played.lab.heal()
    assert len(played.stale()) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_write_of_a_busy_primary_is_on_all_copies_because_a_new_generation_was_due(seed: int) -> None:
    played = Isolated(seed, busy=True)
    played.heal_one_after_the_other()
    assert played.stale() == []
    assert played.marks() == {}
    assert not played.lab.world.accidents


def test_a_busy_primary_loses_its_write_too_if_the_second_peer_comes_before_the_new_generation() -> None:
    lost = 0
    for seed in range(20):
        played = Isolated(seed, busy=True)
        played.lab.world.chances[Race.LATE_GENERATION] = 1.0
        played.lab.heal()
        stale = played.stale()
        lost += len(stale)
        marked = {peer for _, peer in played.marks()}
        assert marked == set(stale), "the kernel knows, in some member's marks"
    assert 2 <= lost <= 18


def test_a_write_begun_while_suspended_is_on_all_copies() -> None:
    lab = Lab(3, options={"quorum-minimum-redundancy": "2"})
    assert lab.primary(0) == 0
    lab.cut([0], [1, 2])
    write = lab.write(0, "late")
    lab.world.set_cut([("n0", "n2")])
    lab.wait(10)
    lab.heal()
    assert write.state.value == "done"
    assert {disk.read(0) for disk in lab.disks.values()} == {"late"}


# --- prevention ---


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("together", [True, False])
def test_a_new_current_uuid_on_the_suspended_primary_prevents_it_in_every_order_of_healing(
    seed: int, together: bool
) -> None:
    played = Isolated(seed)
    assert played.lab.kernels[0].new_current_uuid(MINOR).ok
    if together:
        played.lab.heal()
    else:
        played.heal_one_after_the_other(seconds=8)
    assert played.stale() == []
    assert played.marks() == {}


@pytest.mark.parametrize("seed", SEEDS)
def test_suspending_io_prevents_it_if_it_is_resumed_when_both_peers_are_back(seed: int) -> None:
    played = Isolated(seed)
    kernel = played.lab.kernels[0]
    assert kernel.suspend_io(MINOR).ok
    status = played.lab.status(0)
    assert (status["suspended-user"], status["suspended-quorum"]) == (True, True)
    played.lab.heal()
    status = played.lab.status(0)
    assert (status["suspended-user"], status["suspended-quorum"]) == (True, False)
    assert [disk.read(0) for disk in played.lab.disks.values()] == [None, None, None]
    assert kernel.resume_io(MINOR).ok
    assert played.stale() == []
    assert played.marks() == {}


@pytest.mark.parametrize("seed", SEEDS)
def test_suspending_io_does_not_help_if_it_is_resumed_when_one_peer_is_back(seed: int) -> None:
    played = Isolated(seed)
    played.lab.kernels[0].suspend_io(MINOR)
    played.lab.world.set_cut([("n0", "n2")])
    played.lab.wait(8)
    played.lab.kernels[0].resume_io(MINOR)
    played.lab.heal()
    assert played.stale() == [2]


@pytest.mark.parametrize("seed", SEEDS)
def test_disconnecting_before_the_links_heal_does_not_help(seed: int) -> None:
    played = Isolated(seed)
    for peer in (1, 2):
        assert played.lab.kernels[0].disconnect(NAME, peer).ok
    played.lab.world.set_cut([])
    for peer in (1, 2):
        assert played.lab.kernels[0].connect(NAME, peer).ok
    played.lab.wait(12)
    assert len(played.stale()) == 1


@pytest.mark.parametrize("prevention", ["none", "suspend-io", "new-current-uuid"])
def test_prevention_does_not_spoil_a_fail_over_during_the_cut(prevention: str) -> None:
    played = Isolated(0)
    lab, kernel = played.lab, played.lab.kernels[0]
    if prevention == "suspend-io":
        assert kernel.suspend_io(MINOR).ok
    elif prevention == "new-current-uuid":
        assert kernel.new_current_uuid(MINOR).ok
    assert lab.primary(1) == 0
    for block in range(5):
        assert lab.wrote(1, f"new{block}", block) == "done"
    lab.heal(20)
    assert played.write.state.value == "failed"
    assert (lab.role(0), lab.role(1)) == ("Secondary", "Primary")
    assert lab.status(0)["suspended-user"] is (prevention == "suspend-io")
    if prevention == "suspend-io":
        assert kernel.resume_io(MINOR).ok
        assert not lab.status(0)["suspended-user"]
    for block in range(5):
        assert {disk.read(block * 4096) for disk in lab.disks.values()} == {f"new{block}"}
    assert all(lab.connection(i, j) == "Connected" for i in range(3) for j in range(3) if i != j)


# --- cures ---


@pytest.mark.parametrize("primary", [True, False])
@pytest.mark.parametrize("verified", [True, False])
def test_reconnecting_erases_the_mark_and_copies_nothing(primary: bool, verified: bool) -> None:
    played = stale_copy(1)
    kernel = played.lab.kernels[0]
    if not primary:
        kernel.secondary(NAME)
    if verified:
        assert kernel.verify(NAME, 2, 0).ok
        played.lab.wait(5)
        assert played.marks() == {(0, 2): 4, (2, 0): 4, (1, 2): 4}
    assert kernel.disconnect(NAME, 2).ok
    played.lab.wait(1)
    assert kernel.connect(NAME, 2).ok
    played.lab.wait(5)
    assert played.stale() == [2]
    assert played.marks() == {(1, 2): 4}
    assert played.lab.kernels[1].disconnect(NAME, 2).ok
    played.lab.wait(1)
    assert played.lab.kernels[1].connect(NAME, 2).ok
    played.lab.wait(5)
    assert played.stale() == [2]
    assert played.marks() == {}, "nobody can know any more"


def test_waiting_and_more_writes_do_nothing() -> None:
    played = stale_copy(2)
    played.lab.wait(30)
    assert played.lab.wrote(0, "more", 7) == "done"
    assert {disk.read(7 * 4096) for disk in played.lab.disks.values()} == {"more"}
    assert played.stale() == [2]


@pytest.mark.parametrize("by", [0, 2])
def test_a_full_resync_cures_it(by: int) -> None:
    played = stale_copy(3)
    kernel = played.lab.kernels[by]
    reply = kernel.invalidate_remote(NAME, 2, 0) if by == 0 else kernel.invalidate(MINOR, 0)
    assert reply.ok
    played.lab.wait(10)
    assert played.stale() == []
    assert played.marks() == {}


@pytest.mark.parametrize("writer", [True, False])
def test_a_verify_and_a_small_resync_from_the_primary_cure_it_also_under_a_writer(writer: bool) -> None:
    played = stale_copy(4)
    writes = Writer(played.lab) if writer else None
    kernel = played.lab.kernels[0]
    assert kernel.verify(NAME, 2, 0).ok
    played.lab.wait(5)
    assert kernel.invalidate_remote(NAME, 2, 0, reset_bitmap=False).ok
    played.lab.wait(10)
    assert played.stale() == []
    assert writes is None or writes.missing(2) == []


def test_a_small_resync_from_the_third_member_cures_it_if_nobody_writes() -> None:
    played = stale_copy(5)
    played.lab.kernels[0].secondary(NAME)
    assert played.lab.kernels[1].invalidate_remote(NAME, 2, 0, reset_bitmap=False).ok
    played.lab.wait(5)
    assert played.stale() == []
    assert played.marks() == {}


def test_a_small_resync_from_the_third_member_under_a_writer_leaves_new_writes_out() -> None:
    played = stale_copy(5)
    writes = Writer(played.lab)
    played.lab.wait(0.5)
    assert played.lab.kernels[1].invalidate_remote(NAME, 2, 0, reset_bitmap=False).ok
    played.lab.wait(5)
    assert played.stale() == []
    missing = writes.missing(2)
    assert missing
    assert played.marks() == {(0, 2): 4 * len(missing)}
    assert {a.wrong for a in played.lab.world.accidents} == {Wrong.MARK_ERASED, Wrong.NOT_SENT}


class Writer:
    """Writes another block on n0 every few milliseconds."""

    def __init__(self, lab: Lab, count: int = 400) -> None:
        self.lab = lab
        self.writes: list[Io] = []
        self._left = count
        self._write()

    def _write(self) -> None:
        block = 100 + len(self.writes)
        self.writes.append(self.lab.write(0, f"b{block}", block))
        self._left -= 1
        if self._left:
            self.lab.world.later(0.005, self._write)

    def missing(self, i: int) -> list[int]:
        """Blocks that were acknowledged and are not on a disk."""
        done = [write for write in self.writes if write.state.value == "done"]
        assert len(done) > 100
        return [write.offset for write in done if self.lab.disks[i].read(write.offset) != write.tag]


def test_a_link_whose_state_was_refused_stands_alone_until_somebody_connects_it() -> None:
    played = Isolated(0, busy=True)
    played.lab.world.chances[Race.REFUSED_STATE] = 1.0
    played.heal_one_after_the_other()
    assert played.lab.connection(0, 2) == "StandAlone"
    played.lab.wait(60)
    assert played.lab.connection(0, 2) == "StandAlone"
    played.lab.world.chances.clear()
    assert played.lab.kernels[0].connect(NAME, 2).ok
    played.lab.wait(5)
    assert played.lab.healthy()
    assert played.stale() == []

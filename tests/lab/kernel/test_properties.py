"""What holds in every history: random cuts, power losses, promotions and writes on small clusters."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.lab.kernel.events import Event
from quorate.lab.kernel.races import Wrong

from .lab import MINOR, NAME, Lab

PARTITIONS: list[list[set[int]]] = [
    [{0, 1, 2}],
    [{0}, {1, 2}],
    [{1}, {0, 2}],
    [{2}, {0, 1}],
    [{0}, {1}, {2}],
]
LINKS = [(0, 1), (0, 2), (1, 2)]


@dataclass(frozen=True)
class Step:
    """One thing that happens: what, to which node, and how long nothing happens afterwards."""

    verb: str
    which: int
    pause: float


steps = st.lists(
    st.builds(
        Step,
        st.sampled_from(["cut", "link", "heal", "promote", "demote", "write", "crash", "boot"]),
        st.integers(0, 4),
        st.sampled_from([0.0, 0.5, 2.0, 6.0]),
    ),
    min_size=1,
    max_size=14,
)


class History:
    """Plays steps on three nodes and keeps account of what was acknowledged."""

    def __init__(self, seed: int, diskless: tuple[int, ...] = (), redundancy: str = "1") -> None:
        self.lab = Lab(3, diskless, options={"quorum-minimum-redundancy": redundancy}, seed=seed)
        self.off: set[int] = set()
        self.acknowledged: str | None = None
        self.written = 0

    def play(self, step: Step) -> None:
        lab, node = self.lab, step.which % 3
        if step.verb == "cut":
            sides = PARTITIONS[step.which % len(PARTITIONS)]
            lab.world.set_cut([(f"n{a}", f"n{b}") for x in sides for y in sides if x is not y for a in x for b in y])
        elif step.verb == "link":
            a, b = LINKS[node]
            lab.world.set_cut([(f"n{a}", f"n{b}")])
        elif step.verb == "heal":
            lab.world.set_cut([])
        elif step.verb == "crash" and node not in self.off:
            lab.world.power_off(f"n{node}")
            self.off.add(node)
        elif step.verb == "boot":
            self.boot(node)
        elif node not in self.off:
            self.use(step.verb, node)
        lab.wait(step.pause)

    def boot(self, node: int) -> None:
        if node in self.off:
            self.off.discard(node)
            self.lab.world.power_on(f"n{node}")
            assert self.lab.up(node).ok

    def use(self, verb: str, node: int) -> None:
        kernel = self.lab.kernels[node]
        if verb == "promote":
            kernel.primary(NAME)
        elif verb == "demote":
            kernel.secondary(NAME)
        elif verb == "write" and self.lab.role(node) == "Primary" and not self.lab.status(node)["force-io-failures"]:
            self.written += 1
            tag = f"w{self.written}"
            if self.lab.write(node, tag).state.value == "done":
                self.acknowledged = tag

    def settle(self) -> None:
        """Power and links for everybody, and time to get over it."""
        self.lab.world.set_cut([])
        for node in sorted(self.off):
            self.boot(node)
        self.lab.wait(60)

    def went_wrong(self) -> bool:
        """Whether the real kernel, too, would have dropped the mark of a write that one copy lacks (`races`)."""
        return any(accident.wrong is Wrong.MARK_ERASED for accident in self.lab.world.accidents)

    def trace(self) -> list[object]:
        """All that can be seen."""
        return [kernel.status() for kernel in self.lab.kernels]


@settings(max_examples=150, deadline=None)
@given(steps, st.integers(0, 1000))
def test_with_majority_quorum_on_three_replicas_two_sides_of_a_partition_never_both_serve(
    history: list[Step], seed: int
) -> None:
    played = History(seed)
    for step in history:
        played.play(step)
        played.lab.wait(8)
        serving = [
            i
            for i in range(3)
            if i not in played.off and played.lab.role(i) == "Primary" and not played.lab.suspended(i)
        ]
        assert len(serving) <= 1


@settings(max_examples=150, deadline=None)
@given(steps, st.integers(0, 1000), st.sampled_from(["1", "2"]))
def test_an_acknowledged_write_is_on_every_copy_that_is_up_to_date_in_the_end(
    history: list[Step], seed: int, redundancy: str
) -> None:
    played = History(seed, redundancy=redundancy)
    for step in history:
        played.play(step)
    played.settle()
    blocked_later = {f"w{n}" for n in range(played.written + 1)}
    found = {played.lab.disks[i].read(0) for i in played.lab.disks if played.lab.disk(i) == "UpToDate"}
    if played.went_wrong():
        return
    assert len(found) == 1
    if played.acknowledged is not None:
        # A later write that nobody had acknowledged may have made it too.
        assert found <= {tag for tag in blocked_later if int(tag[1:]) >= int(played.acknowledged[1:])}


@settings(max_examples=100, deadline=None)
@given(steps, st.integers(0, 1000))
def test_three_replicas_get_healthy_again_by_themselves_once_power_and_links_are_back(
    history: list[Step], seed: int
) -> None:
    played = History(seed)
    for step in history:
        played.play(step)
    played.settle()
    assert played.lab.healthy() or played.went_wrong()


@settings(max_examples=100, deadline=None)
@given(steps, st.integers(0, 1000))
def test_two_replicas_and_a_tie_breaker_get_healthy_again_by_themselves_once_power_and_links_are_back(
    history: list[Step], seed: int
) -> None:
    played = History(seed, (2,))
    for step in history:
        played.play(step)
    played.settle()
    assert played.lab.healthy()


@settings(max_examples=40, deadline=None)
@given(steps, st.integers(0, 1000))
def test_the_same_seed_and_the_same_steps_give_the_same_history(history: list[Step], seed: int) -> None:
    first, second = History(seed), History(seed)
    events: list[list[Event]] = [[], []]
    for played, heard in ((first, events[0]), (second, events[1])):
        for kernel in played.lab.kernels:
            kernel.subscribe(heard.append)
        for step in history:
            played.play(step)
    assert events[0] == events[1]
    assert first.trace() == second.trace()
    assert first.lab.kernels[0].device_size(MINOR) == second.lab.kernels[0].device_size(MINOR)

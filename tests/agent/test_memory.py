"""What was seen counts until something happens to it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quorate.agent.memory import Memory, Sighting


def test_what_was_never_seen_is_not_current() -> None:
    assert not Sighting[int]().current


def test_a_look_that_began_before_a_mark_does_not_make_it_current() -> None:
    sighting: Sighting[int] = Sighting()
    marks = sighting.marks
    sighting.mark()
    sighting.saw(1, marks=marks)
    assert sighting.known
    assert not sighting.current


def test_an_older_look_does_not_undo_a_newer_one() -> None:
    sighting: Sighting[int] = Sighting()
    old = sighting.marks
    sighting.mark()
    sighting.saw(2, marks=sighting.marks)
    sighting.saw(1, marks=old)
    assert sighting.value == 2
    assert sighting.current


def test_a_failed_look_keeps_what_was_seen_and_says_that_it_holds_no_more() -> None:
    sighting: Sighting[int] = Sighting()
    sighting.saw(1, marks=sighting.marks)
    sighting.failed("why", marks=sighting.marks)
    assert (sighting.value, sighting.current, sighting.error) == (1, False, "why")
    sighting.saw(2, marks=sighting.marks)
    assert (sighting.value, sighting.current, sighting.error) == (2, True, "")


@given(st.lists(st.sampled_from(["change", "begin", "end"]), max_size=40))
def test_what_is_current_is_what_is(actions: list[str]) -> None:
    """However looks and changes overlap, if each change is marked, a current sighting shows the truth."""
    sighting: Sighting[int] = Sighting()
    truth = 0
    looks: list[tuple[int, int]] = []
    for action in actions:
        match action:
            case "change":
                sighting.mark()
                truth += 1
                sighting.mark()
            case "begin":
                looks.append((truth, sighting.marks))
            case "end" if looks:
                seen, marks = looks.pop()
                sighting.saw(seen, marks=marks)
        assert not sighting.current or sighting.value == truth


def test_a_look_at_a_resource_that_was_forgotten_meanwhile_says_nothing_of_its_namesake() -> None:
    memory = Memory()
    for _ in range(3):
        memory.resource("pvc-1").mark()
    marks = memory.resource("pvc-1").marks  # a look begins
    memory.forget_resource("pvc-1")
    again = memory.resource("pvc-1")
    again.mark()
    again.saw(None, marks=marks)
    assert not again.known
    assert not again.current


def test_of_a_forgotten_resource_nothing_is_left() -> None:
    memory = Memory()
    memory.resource("pvc-1")
    memory.link_losses["pvc-1"] = 1
    memory.progress_looked["pvc-1"] = 1.0
    memory.paths["pvc-1"] = {}
    memory.strangers.add("pvc-1")
    memory.forget_resource("pvc-1")
    kept = (memory.kernel, memory.link_losses, memory.progress_looked, memory.paths, memory.strangers)
    assert not any(kept)


def test_a_resource_that_nobody_saw_or_heard_of_is_not_there_once_everything_was_seen() -> None:
    memory = Memory()
    assert not memory.resource("before").known
    memory.listening = True
    memory.whole_kernel.saw((), marks=memory.whole_kernel.marks)
    assert memory.resource("never-heard-of").current
    assert memory.resource("never-heard-of").value is None
    memory.resource("heard-of").mark()
    assert not memory.resource("heard-of").current


def test_while_nobody_listens_or_everything_is_in_doubt_nothing_is_known_of_a_resource_that_nobody_saw() -> None:
    memory = Memory()
    memory.whole_kernel.saw((), marks=memory.whole_kernel.marks)
    assert not memory.resource("a").known
    memory.listening = True
    memory.whole_kernel.mark()
    assert not memory.resource("b").known

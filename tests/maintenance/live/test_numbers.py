"""Numbers of things: read from objects, made up until there is one, and never two with the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api.annotation_keys import BROKER_ID
from quorate.api.core import Node
from quorate.api.meta import NodeName, ObjectMeta
from quorate.maintenance.live.numbers import Names, Numbers, number_on
from quorate.maintenance.nouns import DriveId, VDiskId


def node(name: str, number: str | None) -> Node:
    return Node(metadata=ObjectMeta(name=name, annotations={BROKER_ID: number} if number is not None else {}))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", 1),
        ("999999999999", 999999999999),
        (None, None),
        ("", None),
        ("0", None),
        ("01", None),
        ("-1", None),
        ("1.0", None),
        ("٣", None),
        ("1000000000000", None),
        ("one", None),
    ],
)
def test_only_a_plain_number_is_believed(text: str | None, number: int | None) -> None:
    assert number_on(node("n", text)) == number


def test_what_has_no_number_goes_by_one_below_zero_until_it_has() -> None:
    numbers: Numbers[str] = Numbers()
    made_up = numbers.read("n", node("n", None))
    assert made_up < 0
    assert numbers.of("n") == numbers.read("n", node("n", None)) == made_up
    assert numbers.name(made_up) == "n"
    assert numbers.read("n", node("n", "7")) == 7
    assert numbers.name(made_up) is None
    assert numbers.name(7) == "n"


def test_of_two_with_one_number_the_second_goes_by_another_until_the_first_lets_go() -> None:
    numbers: Numbers[str] = Numbers()
    assert numbers.read("a", node("a", "7")) == 7
    assert numbers.read("b", node("b", "7")) < 0
    assert numbers.disputed == {"b"}
    assert numbers.read("a", node("a", "8")) == 8
    assert numbers.read("b", node("b", "7")) == 7
    assert not numbers.disputed


def test_an_object_that_is_not_there_keeps_the_number_it_had() -> None:
    numbers: Numbers[str] = Numbers()
    numbers.read("a", node("a", "7"))
    assert numbers.read("a", None) == 7
    numbers.forget("a")
    assert numbers.read("b", node("b", "7")) == 7
    assert numbers.highest == 7


def test_a_number_that_nobody_can_have_been_given_stays_where_it_is_and_moves_no_others() -> None:
    numbers: Numbers[str] = Numbers()
    assert numbers.read("a", node("a", "7")) == 7
    assert numbers.read("b", node("b", "999999999999")) == 999999999999
    assert numbers.highest == 7


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from([None, "1", "2", "3"]), st.booleans()), max_size=30))
def test_whatever_is_written_no_two_go_by_one_number(history: list[tuple[str, str | None, bool]]) -> None:
    numbers: Numbers[str] = Numbers()
    known: set[str] = set()
    for name, written, gone in history:
        if gone:
            numbers.forget(name)
            known.discard(name)
        else:
            before, version = numbers.of(name) if name in known else None, numbers.version
            after = numbers.read(name, node(name, written))
            known.add(name)
            assert (before == after) == (numbers.version == version) or before is None
        assert {numbers.name(numbers.of(each)) for each in known} == known


def test_items_lead_to_the_names_of_their_objects() -> None:
    names = Names()
    names.nodes.read(NodeName("n"), node("n", "3"))
    names.drives.read("d", node("d", "4"))
    names.replicas.read("v-0", node("v-0", "5"))  # type: ignore[arg-type]
    assert names.object_of(3) == "n"
    assert names.object_of(DriveId(3, 4)) == "d"
    assert names.object_of(VDiskId(1, 1, 0, 0, 5)) == "v-0"
    assert names.object_of(4) is None

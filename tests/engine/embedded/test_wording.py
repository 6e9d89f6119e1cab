"""A status whose lists come typed is stored as if it had come in words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from quorate.api.codec import to_builtins
from quorate.api.meta import Condition, ConditionStatus
from quorate.engine.embedded.wording import in_words
from tests.support.kinds import WidgetStatus

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def condition(name: str, message: str = "") -> Condition:
    return Condition(
        type=name, status=ConditionStatus.TRUE, reason="Because", message=message, last_transition_time=NOW
    )


A, B, C = condition("A"), condition("B"), condition("C")


@pytest.mark.parametrize(
    ("last", "intended"),
    [
        ((A, B, C), (A, condition("B", "new"), C)),
        ((A, B, C), (A, C)),
        ((A, C), (A, B, C)),
        ((A, B), (A, B, C)),
        ((A, B, C), (C, B, A)),
        ((), (A,)),
    ],
)
def test_the_words_of_a_typed_list_are_those_of_its_items(
    last: tuple[Condition, ...], intended: tuple[Condition, ...]
) -> None:
    status = WidgetStatus(conditions=last)
    words = in_words({"conditions": intended, "count": 3}, to_builtins(status), status)
    assert words == {"conditions": to_builtins(intended), "count": 3}


def test_an_item_that_stays_in_its_place_is_the_stored_one() -> None:
    status = WidgetStatus(conditions=(A, B, C))
    before = to_builtins(status)
    words = in_words({"conditions": (A, condition("B", "new"), C)}, before, status)
    stays = [word is known for word, known in zip(words["conditions"], before["conditions"], strict=True)]
    assert stays == [True, False, True]


def test_a_patch_that_is_in_words_is_left_alone() -> None:
    patch = {"conditions": [{"type": "A"}], "count": None}
    assert in_words(patch, {}, WidgetStatus()) == patch

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api import cel
from quorate.api.quantity import Quantity
from quorate.errors import InvalidRule

SIZES = st.sampled_from(["0", "1", 1, 1024, "1Ki", "1024", "10Gi", "10240Mi", "1e3", "0.5"])


@pytest.mark.parametrize(
    ("rule", "value", "holds"),
    [
        ("self > 3", 4, True),
        ("self > 3", 3, False),
        ("has(self.a) == has(self.b)", {"a": 1}, False),
        ("self.all(k, self[k] >= 0)", {"x": 1, "y": -1}, False),
        ("self.startsWith('a')", "abc", True),
        ("self.matches('^[a-z]+$')", "ab1", False),
        ("self.items.size() <= 2", {"items": [1, 2, 3]}, False),
        ("duration(self) > duration('1m')", "1h30m", True),
        ("self.in == 1", {"in": 1}, None),
    ],
)
def test_rules_are_evaluated_on_json_values(rule: str, value: Any, holds: bool | None) -> None:
    if holds is None:
        with pytest.raises(InvalidRule, match="does not compile"):
            cel.evaluate(rule, value)
    else:
        assert cel.evaluate(rule, value) is holds


@given(SIZES, SIZES)
def test_quantities_compare_as_quantities(left: str | int, right: str | int) -> None:
    rule = "quantity(string(self.a)).compareTo(quantity(string(self.b))) >= 0"
    assert cel.evaluate(rule, {"a": left, "b": right}) is (Quantity(left) >= Quantity(right))


def test_a_rule_of_change_holds_where_there_is_nothing_to_compare_with() -> None:
    assert cel.program("self == oldSelf").is_transition
    assert not cel.program("self == 'myoldSelfie'").is_transition
    assert cel.evaluate("self == oldSelf", 1)
    assert not cel.evaluate("self == oldSelf", 1, 2)
    assert cel.evaluate("self == oldSelf", {"a": [1]}, {"a": [1]})


def test_a_rule_that_cannot_be_evaluated_says_which() -> None:
    with pytest.raises(InvalidRule, match=r"rule 'self\.missing > 1'"):
        cel.evaluate("self.missing > 1", {"a": 1})
    with pytest.raises(InvalidRule, match="is not a quantity"):
        cel.evaluate("quantity(self).compareTo(quantity('0')) > 0", "many")


def test_a_rule_gives_a_boolean_or_does_not_hold() -> None:
    assert cel.evaluate("self + 1", 1) is False


@pytest.mark.parametrize(
    "rule",
    [
        "self.size() == 2",
        "self.a == 1 && self.size() == 2",
        "size(self) == 2",
        "self.exists(k, k == 'b')",
        "'b' in self",
    ],
)
def test_a_rule_that_looks_at_the_whole_is_shown_the_whole(rule: str) -> None:
    assert cel.evaluate(rule, {"a": 1, "b": 2})


def test_a_rule_that_looks_at_fields_is_shown_only_those() -> None:
    # A value that cannot be handed over would fail the rule if it were.
    assert cel.evaluate("self.a == 1 && oldSelf.a == 1", {"a": 1, "b": object()}, {"a": 1, "c": object()})

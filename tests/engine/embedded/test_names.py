"""Names are allowed and refused as Kubernetes does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.engine.embedded import names

Rule = Callable[[str], list[str]]

GOOD: list[tuple[Rule, str]] = [
    (names.dns_subdomain, "a"),
    (names.dns_subdomain, "pvc-1.node-a"),
    (names.dns_subdomain, "0"),
    (names.dns_subdomain, "a" * 253),
    (names.dns_label, "kube-system"),
    (names.dns_label, "a" * 63),
    (names.qualified_name, "name"),
    (names.qualified_name, "Name_with.dots-and_more"),
    (names.qualified_name, "example.com/name"),
    (names.label_value, ""),
    (names.label_value, "A_b.c-1"),
]

BAD: list[tuple[Rule, str]] = [
    (names.dns_subdomain, ""),
    (names.dns_subdomain, "Upper"),
    (names.dns_subdomain, "a_b"),
    (names.dns_subdomain, "-a"),
    (names.dns_subdomain, "a-"),
    (names.dns_subdomain, "a..b"),
    (names.dns_subdomain, "a.-b"),
    (names.dns_subdomain, "a\n"),
    (names.dns_subdomain, "a" * 254),
    (names.dns_label, "a.b"),
    (names.dns_label, "a" * 64),
    (names.qualified_name, ""),
    (names.qualified_name, "a b"),
    (names.qualified_name, "/name"),
    (names.qualified_name, "example.com/"),
    (names.qualified_name, "Example.com/name"),
    (names.qualified_name, "a/b/c"),
    (names.qualified_name, "a" * 64),
    (names.label_value, "a b"),
    (names.label_value, "-a"),
    (names.label_value, "é"),
    (names.label_value, "a" * 64),
]


@pytest.mark.parametrize(("rule", "value"), GOOD)
def test_a_good_name_has_no_problems(rule: Rule, value: str) -> None:
    assert rule(value) == []


@pytest.mark.parametrize(("rule", "value"), BAD)
def test_a_bad_name_has_problems(rule: Rule, value: str) -> None:
    assert rule(value)


def test_the_limit_is_in_bytes() -> None:
    assert "must be no more than 63 bytes" in names.label_value("é" * 32)

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api.quantity import Quantity

# Printed by k8s.io/apimachinery v0.36.3: ParseQuantity(text), then CanonicalizeBytes() and Value().
AS_KUBERNETES = [
    ("0", "0", 0),
    ("00", "0", 0),
    ("0Gi", "0", 0),
    ("-0", "0", 0),
    ("0.0", "0", 0),
    ("10Gi", "10Gi", 10737418240),
    ("1.5Gi", "1536Mi", 1610612736),
    ("1.000Gi", "1Gi", 1073741824),
    ("0.5Gi", "512Mi", 536870912),
    ("0.3Gi", "322122547200m", 322122548),
    ("1024Ki", "1Mi", 1048576),
    ("1025Ki", "1025Ki", 1049600),
    ("1023Ki", "1023Ki", 1047552),
    ("0.5Ki", "512", 512),
    ("2.5Ki", "2560", 2560),
    ("1.1Ki", "1126400m", 1127),
    ("0.0001Ki", "102400u", 1),
    ("1024Pi", "1Ei", 1152921504606846976),
    ("7Ei", "7Ei", 8070450532247928832),
    ("8Ei", "9223372036854775807", 9223372036854775807),
    ("9Ei", "9223372036854775807", 9223372036854775807),
    ("9223372036854775807Ki", "9223372036854775807", 9223372036854775807),
    ("1024", "1024", 1024),
    ("1000", "1k", 1000),
    ("1500", "1500", 1500),
    ("1000k", "1M", 1000000),
    ("0.5M", "500k", 500000),
    ("1.5E", "1500P", 1500000000000000000),
    ("1E", "1E", 1000000000000000000),
    ("100m", "100m", 1),
    ("1500m", "1500m", 2),
    ("1000m", "1", 1),
    ("0.5", "500m", 1),
    (".5", "500m", 1),
    ("5.", "5", 5),
    ("1.G", "1G", 1000000000),
    ("3.14159", "3141590u", 4),
    ("00010", "10", 10),
    ("+1", "1", 1),
    ("-1", "-1", -1),
    ("-1.5", "-1500m", -2),
    ("-1Ki", "-1Ki", -1024),
    ("-9Ei", "-9223372036854775807", -9223372036854775807),
    ("1n", "1n", 1),
    ("0.1n", "1n", 1),
    ("1.23456789123n", "2n", 1),
    ("1e3", "1e3", 1000),
    ("1E3", "1e3", 1000),
    ("1e+3", "1e3", 1000),
    ("1e4", "10e3", 10000),
    ("1e2", "100", 100),
    ("1e0", "1", 1),
    ("1.5e3", "1500", 1500),
    ("12345e3", "12345e3", 12345000),
    ("1e-3", "1e-3", 1),
    ("1e-10", "1e-9", 1),
    ("5e-7", "500e-9", 1),
]


@pytest.mark.parametrize(("text", "canonical", "value"), AS_KUBERNETES)
def test_a_quantity_means_and_prints_what_it_does_in_kubernetes(text: str, canonical: str, value: int) -> None:
    quantity = Quantity(text)
    assert (quantity.canonical(), int(quantity)) == (canonical, value)


@pytest.mark.parametrize("text", ["", " 1", "1 ", "1\n", "1K", "1ki", "1Zi", "1e", "1e3.5", "1Ki5", "1..5", "abc", "٣"])
def test_what_kubernetes_refuses_is_refused_with_the_value_and_what_is_allowed(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity: expected"):
        Quantity(text)


@pytest.mark.parametrize("text", ["1e1000", "1e999999999", "1" * 65])
def test_a_number_that_would_fill_the_memory_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        Quantity(text)


def test_beyond_exa_the_suffix_stays() -> None:
    assert Quantity("1000E").canonical() == "1000E"


def test_only_binary_quantities_are_capped() -> None:
    assert int(Quantity("16Ei")) == 2**63 - 1
    assert int(Quantity("100E")) == 10**20


def test_the_text_somebody_wrote_is_kept_and_equality_is_of_amounts() -> None:
    written = Quantity("1024Mi")
    assert str(written) == "1024Mi"
    assert written == Quantity("1Gi")
    assert hash(written) == hash(Quantity("1Gi"))
    assert written < Quantity("1025Mi")
    assert written != "1024Mi"


NUMBERS = st.from_regex(r"[+-]?([0-9]{1,12}(\.[0-9]{0,6})?|\.[0-9]{1,6})", fullmatch=True)
SUFFIXES = st.sampled_from(["", *"numkMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "e3", "E-2", "e12"])
TEXTS = st.builds(str.__add__, NUMBERS, SUFFIXES)


@given(TEXTS)
def test_the_canonical_form_is_the_same_amount_and_its_own_canonical_form(text: str) -> None:
    quantity = Quantity(text)
    canonical = Quantity(quantity.canonical())
    assert canonical == quantity
    assert canonical.canonical() == canonical.text


@given(TEXTS, TEXTS)
def test_order_is_that_of_the_amounts(left: str, right: str) -> None:
    a, b = Quantity(left), Quantity(right)
    assert (a < b) == (a.nanos < b.nanos)
    assert (a < b) + (a == b) + (a > b) == 1


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_bytes_survive_being_written_with_a_suffix(count: int) -> None:
    quantity = Quantity.of_bytes(count)
    assert int(quantity) == count
    assert quantity == Quantity(count)

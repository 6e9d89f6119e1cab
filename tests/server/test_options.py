"""Options of a request are followed, or refused with the field that is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.engine.embedded import FieldValidation
from quorate.errors import BadRequest, Invalid
from quorate.server.kubernetes.options import DeleteOptions, delete_options, list_options, write_options


def refused(error: pytest.ExceptionInfo[Invalid]) -> list[tuple[str, str]]:
    return [(cause.field, cause.reason) for cause in error.value.causes]


def test_a_write_is_real_and_warns_unless_it_says_otherwise() -> None:
    plain = write_options({"fieldManager": "me", "pretty": "true"}, "CreateOptions")
    assert (plain.dry_run, plain.field_validation) == (False, FieldValidation.WARN)
    other = write_options({"dryRun": "All", "fieldValidation": "Strict"}, "CreateOptions")
    assert (other.dry_run, other.field_validation) == (True, FieldValidation.STRICT)


def test_every_wrong_option_of_a_write_is_named() -> None:
    with pytest.raises(Invalid, match=r"PatchOptions.meta.k8s.io") as error:
        write_options({"dryRun": "Some", "fieldValidation": "Maybe", "force": "true"}, "PatchOptions")
    assert refused(error) == [
        ("dryRun", "FieldValueNotSupported"),
        ("fieldValidation", "FieldValueNotSupported"),
        ("force", "FieldValueForbidden"),
    ]


@pytest.mark.parametrize(
    ("query", "body", "expected"),
    [
        ({}, None, DeleteOptions()),
        ({}, {}, DeleteOptions()),
        ({"dryRun": "All"}, None, DeleteOptions(dry_run=True)),
        ({}, {"kind": "DeleteOptions", "dryRun": ["All"]}, DeleteOptions(dry_run=True)),
        ({}, {"preconditions": {"uid": "u", "resourceVersion": "7"}}, DeleteOptions(False, "u", "7")),
        ({"propagationPolicy": "Orphan"}, {"propagationPolicy": "Foreground"}, DeleteOptions()),
    ],
)
def test_a_deletion_reads_its_options(query: dict[str, str], body: Any, expected: Any) -> None:
    assert delete_options(query, body) == expected


def test_every_wrong_option_of_a_deletion_is_named() -> None:
    with pytest.raises(Invalid) as error:
        delete_options({}, {"propagationPolicy": "Sideways", "dryRun": ["Some"]})
    assert refused(error) == [
        ("dryRun", "FieldValueNotSupported"),
        ("propagationPolicy", "FieldValueNotSupported"),
    ]


@pytest.mark.parametrize("body", [[], "x", {"kind": "Widget"}])
def test_the_body_of_a_deletion_must_be_its_options(body: Any) -> None:
    with pytest.raises(BadRequest, match="DeleteOptions"):
        delete_options({}, body)


def test_a_list_reads_its_options() -> None:
    options = list_options(
        {
            "labelSelector": "a in (b,c)",
            "fieldSelector": "metadata.name=x",
            "limit": "5",
            "continue": "token",
            "timeoutSeconds": "30",
        }
    )
    assert str(options.labels) == "a in (b,c)"
    assert str(options.fields) == "metadata.name=x"
    assert (options.limit, options.continue_token, options.resource_version) == (5, "token", None)
    assert (options.exact, options.timeout, options.watch) == (False, 30.0, False)


@pytest.mark.parametrize(
    ("query", "exact"),
    [
        ({"resourceVersion": "7", "resourceVersionMatch": "Exact"}, True),
        ({"resourceVersion": "7", "limit": "1"}, True),  # as before there was a resourceVersionMatch
        ({"resourceVersion": "7"}, False),
        ({"resourceVersion": "0", "limit": "1"}, False),
    ],
)
def test_a_list_at_an_exact_version_is_told_from_one_that_is_new_enough(query: dict[str, str], exact: bool) -> None:
    assert list_options(query).exact is exact


@pytest.mark.parametrize(
    ("value", "watch"), [("true", True), ("1", True), ("", True), ("yes", True), ("0", False), ("False", False)]
)
def test_a_flag_that_is_there_is_set(value: Any, watch: bool) -> None:
    assert list_options({"watch": value}).watch is watch


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"resourceVersionMatch": "Exact"}, "resourceVersionMatch"),
        ({"resourceVersionMatch": "Exact", "resourceVersion": "0"}, "resourceVersionMatch"),
        ({"resourceVersionMatch": "Roughly", "resourceVersion": "1"}, "resourceVersionMatch"),
        ({"sendInitialEvents": "true"}, "sendInitialEvents"),
        ({"watch": "1", "sendInitialEvents": "true"}, "resourceVersionMatch"),
        ({"watch": "1", "sendInitialEvents": "true", "resourceVersionMatch": "Exact"}, "resourceVersionMatch"),
        ({"watch": "1", "resourceVersionMatch": "NotOlderThan"}, "resourceVersionMatch"),
    ],
)
def test_options_that_contradict_each_other_are_invalid(query: dict[str, str], field: str) -> None:
    with pytest.raises(Invalid, match=r"ListOptions.meta.k8s.io") as error:
        list_options(query)
    assert [cause.field for cause in error.value.causes] == [field]


@pytest.mark.parametrize(
    "query",
    [
        {"limit": "many"},
        {"timeoutSeconds": "long"},
        {"timeoutSeconds": "9" * 400},
        {"limit": "9" * 5000},
        {"resourceVersion": "new"},
        {"resourceVersion": "-1"},
        {"labelSelector": "a=b=c"},
        {"fieldSelector": "name"},
        {"continue": "token", "resourceVersion": "7"},
    ],
)
def test_what_cannot_be_read_is_a_bad_request(query: dict[str, str]) -> None:
    with pytest.raises(BadRequest):
        list_options(query)


def test_numbers_below_zero_are_no_limit() -> None:
    options = list_options({"limit": "-1", "timeoutSeconds": "-5"})
    assert (options.limit, options.timeout) == (0, None)


@pytest.mark.parametrize("preconditions", ["x", ["x"], 5, {"uid": 5}, {"resourceVersion": 7}])
def test_preconditions_that_cannot_be_read_are_a_bad_request(preconditions: object) -> None:
    with pytest.raises(BadRequest, match="preconditions"):
        delete_options({}, {"preconditions": preconditions})

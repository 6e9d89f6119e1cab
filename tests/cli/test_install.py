"""``quorate crds apply``: ours are created and updated, and nobody else's is ever touched."""

from __future__ import annotations

import time
from typing import Any

import pytest
from click.testing import CliRunner, Result

from quorate.api.crd import MANAGED_BY_LABEL, all_definitions
from quorate.cli.install import problem_of, refuse_foreign
from quorate.cli.main import quorate
from quorate.errors import ForeignDefinition
from tests.support.apiserver import ApiServer

LABEL, OURS = MANAGED_BY_LABEL
COLLECTION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(**labels: str) -> dict[str, Any]:
    return {"metadata": {"labels": labels} if labels else {}}


def test_every_foreign_definition_is_named() -> None:
    existing = {
        "ours": definition(**{LABEL: OURS}),
        "missing": None,
        "plain": definition(),
        "theirs": definition(**{LABEL: "somebody"}),
    }
    with pytest.raises(ForeignDefinition, match=r"not Quorate's: plain, theirs\. Nothing was changed"):
        refuse_foreign(existing)
    refuse_foreign({name: existing[name] for name in ("ours", "missing")})


@pytest.mark.parametrize(
    ("conditions", "problem"),
    [
        ([], "the server has not looked at it yet"),
        ([{"type": "Established", "status": "True"}], ""),
        (
            [
                {"type": "NamesAccepted", "status": "False", "message": '"rv" is already in use'},
                {"type": "Established", "status": "False"},
            ],
            '"rv" is already in use',
        ),
    ],
)
def test_a_definition_that_is_not_served_says_why(conditions: list[dict[str, str]], problem: str) -> None:
    assert problem_of({"status": {"conditions": conditions}}) == problem


def apply(apiserver: ApiServer, *arguments: str) -> Result:
    return CliRunner().invoke(quorate, ["crds", "apply", "--kubeconfig", str(apiserver.kubeconfig), *arguments])


def names() -> list[str]:
    return [one["metadata"]["name"] for one in all_definitions()]


@pytest.mark.apiserver
def test_definitions_are_created_updated_and_protected_on_a_real_server(apiserver: ApiServer) -> None:
    first, second, *_ = names()
    for name in names():
        apiserver.request("DELETE", f"{COLLECTION}/{name}")
    deadline = time.monotonic() + 30
    while any(apiserver.request("GET", f"{COLLECTION}/{name}").code != 404 for name in names()):
        assert time.monotonic() < deadline, "the definitions do not go away"

    tried = apply(apiserver, "--dry-run")
    assert tried.output.splitlines() == [f"{name} created (dry run)" for name in names()]
    assert apiserver.request("GET", f"{COLLECTION}/{first}").code == 404

    assert apply(apiserver).output.splitlines() == [f"{name} created" for name in names()]
    assert apply(apiserver).output.splitlines() == [f"{name} unchanged" for name in names()]

    apiserver.request(
        "PATCH",
        f"{COLLECTION}/{second}",
        {"metadata": {"labels": {"extra": "kept"}}, "spec": {"names": {"categories": ["other"]}}},
        "application/merge-patch+json",
    )
    assert f"{second} configured" in apply(apiserver).output.splitlines()
    updated = apiserver.request("GET", f"{COLLECTION}/{second}").json()
    assert updated["metadata"]["labels"] == {LABEL: OURS, "extra": "kept"}
    assert updated["spec"]["names"]["categories"] != ["other"]

    unlabel = {"metadata": {"labels": {LABEL: None}}}
    apiserver.request("PATCH", f"{COLLECTION}/{first}", unlabel, "application/merge-patch+json")
    refused = apply(apiserver)
    assert isinstance(refused.exception, ForeignDefinition)
    assert first in str(refused.exception)
    relabel = {"metadata": {"labels": {LABEL: OURS}}}
    apiserver.request("PATCH", f"{COLLECTION}/{first}", relabel, "application/merge-patch+json")

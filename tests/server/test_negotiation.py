"""What a client gets follows its Accept header."""

from __future__ import annotations

import pytest

from quorate.errors import NotAcceptable
from quorate.server.kubernetes.negotiation import Form, Format, Representation, negotiate

ONE = "PartialObjectMetadata"
#: What kubectl get sends.
KUBECTL = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)


@pytest.mark.parametrize(
    ("accept", "form", "format_"),
    [
        ("", Form.OBJECT, Format.JSON),
        ("*/*", Form.OBJECT, Format.JSON),
        ("application/*", Form.OBJECT, Format.JSON),
        ("application/json", Form.OBJECT, Format.JSON),
        ("Application/JSON; charset=utf-8", Form.OBJECT, Format.JSON),
        ("application/yaml", Form.OBJECT, Format.YAML),
        ("application/json;q=0.5, application/yaml", Form.OBJECT, Format.YAML),
        ("application/yaml;q=0, application/json;q=0.1", Form.OBJECT, Format.JSON),
        (KUBECTL, Form.TABLE, Format.JSON),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", Form.OBJECT, Format.JSON),
        ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", Form.METADATA, Format.JSON),
        ("application/vnd.kubernetes.protobuf,application/json", Form.OBJECT, Format.JSON),
    ],
)
def test_the_best_representation_that_we_have_wins(accept: str, form: Form, format_: Format) -> None:
    assert negotiate(accept) == Representation(form, format_)


def test_metadata_of_a_list_has_a_name_of_its_own() -> None:
    one, many = (f"application/json;as={name};g=meta.k8s.io;v=v1" for name in (ONE, f"{ONE}List"))
    assert negotiate(many, many=True) == Representation(Form.METADATA)
    for accept, is_many in ((one, True), (many, False)):
        with pytest.raises(NotAcceptable):
            negotiate(accept, many=is_many)


@pytest.mark.parametrize(
    "accept",
    [
        "application/xml",
        "application/vnd.kubernetes.protobuf",
        "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
        "application/json;as=Poem;v=v1;g=meta.k8s.io",
        "application/json;q=0",
        "application/json;q=much",
    ],
)
def test_what_we_do_not_have_is_not_acceptable(accept: str) -> None:
    with pytest.raises(NotAcceptable, match="application/json, application/yaml"):
        negotiate(accept)

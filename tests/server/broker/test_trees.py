"""JSON and protobuf say the same things, and what they cannot say is refused with the field's name."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.server.broker import json_trees, proto_trees
from quorate.server.broker.json_trees import BOUNDS, FREE_FORM, Malformed, Tree
from quorate.server.broker.proto import cms_pb2

REQUEST = cms_pb2.DESCRIPTOR.message_types_by_name["TPermissionRequest"]
ENVELOPES = [cms_pb2.TCmsRequest, cms_pb2.TCmsResponse]


def fitting(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.message_type is not None:
        free = field.message_type.full_name == FREE_FORM
        one: st.SearchStrategy[Any] = st.just({"a": 1.5, "b": ["c", True]}) if free else trees(field.message_type)
    elif field.enum_type is not None:
        one = st.sampled_from([value.name for value in field.enum_type.values])
    elif field.type == FieldDescriptor.TYPE_STRING:
        one = st.text(max_size=4)
    elif field.type == FieldDescriptor.TYPE_BOOL:
        one = st.booleans()
    else:
        one = st.integers(*BOUNDS[field.type])
    return st.lists(one, min_size=1, max_size=2).map(tuple) if field.is_repeated else one


def trees(descriptor: Descriptor) -> st.SearchStrategy[Tree]:
    return st.fixed_dictionaries({}, optional={field.name: fitting(field) for field in descriptor.fields})


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_tree_is_the_same_after_protobuf_and_after_json(data: st.DataObject) -> None:
    made = data.draw(st.sampled_from(ENVELOPES))()
    shape = cms_pb2.DESCRIPTOR.message_types_by_name[type(made).__name__]
    tree = data.draw(trees(shape))
    message = proto_trees.write(tree, made)
    written = json_trees.dump(tree, shape)
    assert json_trees.parse(written, shape) == tree
    # protobuf's own reader and writer of JSON mean the same.
    assert json_format.Parse(written, type(made)()) == message
    assert msgspec.json.decode(written) == json_format.MessageToDict(message, preserving_proto_field_name=True)
    assert proto_trees.read(type(made).FromString(message.SerializeToString())) == tree


@pytest.mark.parametrize(
    ("body", "field", "problem"),
    [
        ("", "", "not JSON"),
        ("{", "", "not JSON"),
        ('{"User": "\\ud800"}', "", "not JSON: \\ud800 is the first half of a character"),
        ('{"User": "\\\\ud800"', "", "not JSON: Input data was truncated"),
        ('{"User": "\\ud83d\\ude00"', "", "not JSON: Input data was truncated"),
        ("[" * 5000, "", "nested too deeply"),
        ("[]", "", "must be an object, not []"),
        ('{"user": "u"}', "user", "there is no such field; fields of TPermissionRequest are User, Actions"),
        ('{"User": 1}', "User", "must be text, not 1"),
        ('{"Schedule": "true"}', "Schedule", 'must be true or false, not "true"'),
        ('{"Actions": {}}', "Actions", "must be a list, not {}"),
        ('{"Actions": [[]]}', "Actions[0]", "must be an object, not []"),
        ('{"Actions": [null]}', "Actions[0]", "must be an object, not null"),
        ('{"Actions": [{}, {"Type": "EXPLODE"}]}', "Actions[1].Type", "must be one of UNKNOWN, START_SERVICES"),
        ('{"Actions": [{"Type": 5}]}', "Actions[0].Type", "must be one of UNKNOWN, START_SERVICES"),
        ('{"Actions": [{"Devices": ["a", 1]}]}', "Actions[0].Devices[1]", "must be text, not 1"),
        ('{"Actions": [{"Typ": 1}]}', "Actions[0].Typ", "fields of TAction are Type, Host"),
        ('{"AvailabilityMode": "MAX"}', "AvailabilityMode", "MODE_MAX_AVAILABILITY, MODE_KEEP_AVAILABLE"),
        ('{"Duration": -1}', "Duration", "from 0 to 18446744073709551615"),
        ('{"Duration": "-1"}', "Duration", "from 0 to"),
        ('{"Duration": 18446744073709551616}', "Duration", "from 0 to"),
        ('{"Duration": "18446744073709551616"}', "Duration", "from 0 to"),
        ('{"Duration": 1.5}', "Duration", "whole number"),
        ('{"Duration": true}', "Duration", "whole number"),
        ('{"Duration": "٣"}', "Duration", "whole number"),
        ('{"Duration": " 3"}', "Duration", "whole number"),
        ('{"Duration": ""}', "Duration", "whole number"),
        ('{"Priority": 2147483648}', "Priority", "from -2147483648 to 2147483647"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(body: str, field: str, problem: str) -> None:
    with pytest.raises(Malformed) as refused:
        json_trees.parse(body.encode(), REQUEST)
    assert refused.value.field == field
    assert problem in refused.value.problem


@pytest.mark.parametrize(
    ("body", "tree"),
    [
        ("{}", {}),
        ('{"User": null, "Actions": null}', {}),
        ('{"Duration": 5}', {"Duration": 5}),
        ('{"Duration": "5"}', {"Duration": 5}),
        ('{"Duration": 5.0}', {"Duration": 5}),
        ('{"Duration": "18446744073709551615"}', {"Duration": 2**64 - 1}),
        ('{"Duration": 18446744073709551615}', {"Duration": 2**64 - 1}),
        ('{"Priority": "-7"}', {"Priority": -7}),
        ('{"DryRun": false}', {"DryRun": False}),
    ],
)
def test_whatever_protobuf_means_by_it_is_understood(body: str, tree: Tree) -> None:
    assert json_trees.parse(body.encode(), REQUEST) == tree


def test_long_values_are_not_repeated_in_full() -> None:
    with pytest.raises(Malformed) as refused:
        json_trees.parse(b'{"Schedule": "' + b"x" * 10_000 + b'"}', REQUEST)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        (b"\x48\x07", "AvailabilityMode"),  # number 7 of an enumeration that ends at 2
        (b"\x12\x00\x12\x02\x08\x63", "Actions[1].Type"),
        (b"\x08\x01", "User"),  # a number where text belongs
        (b"\x0a\x01\xc9", "User"),  # half of a character
        (b"\x12\x03\x1a\x01\xc9", "Actions[0].Services[0]"),
    ],
)
def test_protobuf_values_that_a_field_cannot_have_are_refused_by_name(sent: bytes, field: str) -> None:
    message = cms_pb2.TPermissionRequest.FromString(sent)
    with pytest.raises(Malformed) as refused:
        proto_trees.read(message)
    assert refused.value.field == field


def test_fields_of_a_newer_client_are_left_alone() -> None:
    # Field 100, which does not exist here.
    message = cms_pb2.TPermissionRequest.FromString(b"\x0a\x01u\xa0\x06\x01")
    assert proto_trees.read(message) == {"User": "u"}

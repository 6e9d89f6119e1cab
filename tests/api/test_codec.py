from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quorate.api import codec
from quorate.api.duration import Duration
from quorate.api.kind import Kind, all_kinds
from quorate.api.meta import ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.storage import ReplicatedVolume, ReplicatedVolumeReplica
from quorate.api.storage.drbd import DrbdConfig
from quorate.api.struct import replace
from tests.api.strategies import objects

OURS = [kind for kind in all_kinds() if kind.type.__module__.startswith("quorate.api.")]


@pytest.mark.parametrize("kind", OURS, ids=repr)
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
@given(st.data())
def test_an_object_survives_the_wire(kind: Kind, data: st.DataObject) -> None:
    written = data.draw(objects(kind.type))
    body = codec.encode(codec.to_dict(written))
    assert codec.decode(kind.type, body) == written
    assert codec.convert(kind.type, json.loads(body)) == written


def test_apiversion_and_kind_are_added_on_the_way_out() -> None:
    volume = codec.convert(ReplicatedVolume, {"spec": {"size": "1Gi", "replicatedStorageClassName": "c"}})
    assert codec.to_dict(volume) == {
        "apiVersion": "storage.deckhouse.io/v1alpha1",
        "kind": "ReplicatedVolume",
        "spec": {"size": "1Gi", "replicatedStorageClassName": "c"},
    }


def test_an_unknown_field_of_a_newer_client_does_not_hurt() -> None:
    body = b'{"spec":{"size":"1Gi","replicatedStorageClassName":"c","newer":{"a":1}},"extra":[]}'
    assert codec.decode(ReplicatedVolume, body).spec.size == Quantity("1Gi")


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b'{"spec":{"replicatedStorageClassName":"c"}}', "size"),
        (b'{"spec":{"size":"ten","replicatedStorageClassName":"c"}}', "$.spec.size"),
        (b'{"spec":{"size":[],"replicatedStorageClassName":"c"}}', "$.spec.size"),
        (b'{"spec":{"size":"1Gi","replicatedStorageClassName":7}}', "$.spec.replicatedStorageClassName"),
        (b'{"spec":{"size":"1Gi","replicatedStorageClassName":"c","publishOn":["a","b","c"]}}', "$.spec.publishOn"),
    ],
)
def test_an_error_names_the_field(body: bytes, where: str) -> None:
    with pytest.raises(msgspec.ValidationError) as failure:
        codec.decode(ReplicatedVolume, body)
    assert where in str(failure.value)


def test_a_number_is_a_quantity_and_stays_the_text_it_becomes() -> None:
    assert codec.convert(Quantity, 1024).text == "1024"
    assert codec.to_builtins(Quantity("1.5Gi")) == "1.5Gi"
    assert codec.to_builtins(Duration("90s")) == "90s"


def test_what_cannot_be_on_the_wire_is_refused() -> None:
    with pytest.raises(TypeError, match="object cannot be put on the wire"):
        codec.encode(object())
    with pytest.raises(msgspec.ValidationError, match="expected Duration, got int"):
        codec.convert(Duration, 5)


def test_defaults_are_not_written() -> None:
    assert codec.to_builtins(DrbdConfig()) == {}
    assert codec.to_builtins(DrbdConfig(primary=True)) == {"primary": True}


def test_a_change_shares_everything_else() -> None:
    replica = codec.convert(
        ReplicatedVolumeReplica,
        {"metadata": {"name": "v-0"}, "spec": {"replicatedVolumeName": "v", "type": "Diskful"}},
    )
    moved = replace(replica, metadata=ObjectMeta(name="v-1"))
    assert moved.spec is replica.spec
    assert replica.name == "v-0"
    with pytest.raises(AttributeError):
        replica.spec = replica.spec  # type: ignore[misc]

from __future__ import annotations

import pytest

from quorate.api import codec
from quorate.api.secret import Secret
from quorate.api.storage import ReplicatedVolume, ReplicatedVolumeReplica

TEXT = "correct-horse-battery"


@pytest.mark.parametrize(
    ("cls", "spec"),
    [
        (ReplicatedVolume, {"size": "1Gi", "replicatedStorageClassName": "c"}),
        (ReplicatedVolumeReplica, {"replicatedVolumeName": "v", "type": "Diskful"}),
    ],
)
def test_the_shared_secret_is_on_the_wire_and_in_no_repr(
    cls: type[ReplicatedVolume | ReplicatedVolumeReplica], spec: dict[str, object]
) -> None:
    found = codec.convert(cls, {"spec": spec, "status": {"drbd": {"config": {"sharedSecret": TEXT}}}})
    assert TEXT not in repr(found)
    assert TEXT not in str(found)
    assert TEXT not in f"{found.status.drbd.config.shared_secret}"
    assert TEXT.encode() in codec.encode(found)


def test_a_secret_can_be_compared_and_revealed() -> None:
    assert Secret(TEXT) == Secret(TEXT)
    assert Secret(TEXT) != Secret("other")
    assert Secret(TEXT) != TEXT
    assert len({Secret(TEXT), Secret(TEXT)}) == 1
    assert Secret(TEXT).reveal() == TEXT


def test_a_secret_of_the_wrong_type_does_not_show_in_the_error() -> None:
    with pytest.raises(Exception, match="expected Secret, got int") as failure:
        codec.convert(Secret, 424242)
    assert "424242" not in str(failure.value)

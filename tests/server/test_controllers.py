"""The set of controllers, and what the ClusterConfig says of their resync."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from quorate.api.cluster_config import ClusterConfig, ClusterConfigSpec
from quorate.api.duration import Duration
from quorate.api.meta import ObjectMeta
from quorate.api.names import CLUSTER
from quorate.engine.manager import RESYNC_INTERVAL
from quorate.explain.listing import Listing
from quorate.server.controllers import cluster_wide, resync_interval

NOW = datetime(2026, 11, 16, tzinfo=UTC)


def test_every_controller_has_a_name_of_its_own() -> None:
    names = [controller.name for controller in cluster_wide()]
    assert len(set(names)) == len(names)
    assert {"cluster", "volumes", "attachments", "disk-schedules", "storage-pools"} <= set(names)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        pytest.param(None, RESYNC_INTERVAL, id="there is no ClusterConfig"),
        pytest.param("1h", 3600.0, id="it says so"),
        pytest.param("0s", RESYNC_INTERVAL, id="it cannot be used"),
    ],
)
def test_how_often_everything_is_looked_at_again(said: str | None, seconds: float) -> None:
    objects = []
    if said is not None:
        spec = ClusterConfigSpec(resync_interval=Duration(said))
        objects.append(ClusterConfig(metadata=ObjectMeta(name=CLUSTER), spec=spec))
    assert resync_interval(Listing(objects, NOW)) == seconds

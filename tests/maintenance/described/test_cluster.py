"""A described cluster changes when it is told to, and only then."""

from __future__ import annotations

from datetime import timedelta

import pytest

from quorate.api.maintenance.action import HostState
from quorate.api.maintenance.broker_config import BrokerConfigSpec, Limits
from quorate.errors import NotFound
from quorate.maintenance.described import DescribedCluster, parse
from quorate.maintenance.moments import from_datetime
from quorate.maintenance.nouns import DriveId
from tests.maintenance.described.test_document import TEXT


def cluster() -> DescribedCluster:
    return DescribedCluster(parse(TEXT))


def test_the_model_has_everything_that_is_described() -> None:
    model = cluster().model
    assert [node.id for node in model.nodes()] == [1, 2, 3]
    assert [drive.id for drive in model.drives_of(2)] == [DriveId(2, 1)]
    assert [str(vdisk.id) for vdisk in model.vdisks_of(DriveId(3, 0))] == ["vdisk-0-4-0-2-0"]
    assert model.rings is not None
    assert model.settings.cluster_limits.disabled_nodes_limit == 2


@pytest.mark.parametrize("state", list(HostState))
def test_states_can_be_set(state: HostState) -> None:
    made = cluster()
    made.set_node_state(1, state)
    made.set_drive_state(DriveId(1, 1), state)
    made.set_vdisk_state("vdisk-0-4-0-0-0", state)
    node, drive = made.model.node(1), made.model.drive(DriveId(1, 1))
    assert node is not None
    assert drive is not None
    assert (node.state, node.surely_down) == (state, state is HostState.DOWN)
    assert drive.state is state
    assert made.model.vdisks_of(1)[0].state is state


@pytest.mark.parametrize(("before", "starts"), [("DOWN", True), ("RESTART", True), ("UNKNOWN", False), ("UP", False)])
def test_a_node_that_comes_back_was_started_now(before: str, starts: bool) -> None:
    made = cluster()
    made.set_node_state(1, HostState(before))
    made.clock.advance(timedelta(hours=1))
    earliest = from_datetime(made.clock.now())
    node = made.set_node_state(1, HostState.UP)
    assert (node.start_time >= earliest) is starts


def test_what_is_not_there_cannot_change() -> None:
    made = cluster()
    version = made.model.version
    for change in (
        lambda: made.set_node_state(9, HostState.UP),
        lambda: made.set_drive_state(DriveId(1, 9), HostState.UP),
        lambda: made.set_vdisk_state("vdisk-0-1-0-0-0", HostState.UP),
        lambda: made.set_vdisk_state("pdisk-1-1", HostState.UP),
        lambda: made.set_vdisk_state("nonsense", HostState.UP),
    ):
        with pytest.raises(NotFound):
            change()
    assert made.model.version == version


def test_limits_can_be_set() -> None:
    made = cluster()
    made.configure(BrokerConfigSpec(cluster_limits=Limits(disabled_nodes_limit=1)))
    assert made.model.settings.cluster_limits.disabled_nodes_limit == 1

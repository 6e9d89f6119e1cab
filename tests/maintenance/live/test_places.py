"""What a node and a drive are to the broker: who is up, who is down, and who surely is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from quorate.api.baremetal import Drive
from quorate.api.baremetal.drive import DriveSpec, DriveStatus, Presence
from quorate.api.core import Lease, Node
from quorate.api.core.lease import LeaseSpec
from quorate.api.core.node import NodeCondition, NodeStatus
from quorate.api.duration import Duration
from quorate.api.labels import RACK, ROOM, TENANT, ZONE
from quorate.api.maintenance.action import HostState, Marker
from quorate.api.meta import MicroTime, NodeName, ObjectMeta
from quorate.maintenance.live.places import NodeView, drive_info, node_info
from quorate.maintenance.nouns import DriveId

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
GRACE = Duration("10m")
LEASE = Lease(spec=LeaseSpec(holder_identity="agent", acquire_time=MicroTime("2026-11-16T11:00:00.000000Z")))


def machine(ready: str | None = "True", ago: float = 0.0, **labels: str) -> Node:
    since = NOW - timedelta(seconds=ago)
    conditions = (NodeCondition(type="Ready", status=ready, last_transition_time=since),) if ready else ()
    return Node(metadata=ObjectMeta(name="n1", labels=labels), status=NodeStatus(conditions=conditions))


@pytest.mark.parametrize(
    ("ready", "lease", "fresh", "state"),
    [
        # Where there is an agent, its word.
        ("True", LEASE, True, HostState.UP),
        ("Unknown", LEASE, True, HostState.UP),
        ("True", LEASE, False, HostState.DOWN),
        ("Unknown", LEASE, False, HostState.DOWN),
        # Where there never was one, the node's.
        ("True", None, False, HostState.UP),
        ("False", None, False, HostState.DOWN),
        ("Unknown", None, False, HostState.DOWN),
        (None, None, False, HostState.UNKNOWN),
    ],
)
def test_a_node_is_up_while_its_agent_lives(ready: str | None, lease: Lease | None, fresh: bool, state: str) -> None:
    view = NodeView(machine(ready), lease, fresh, holds_disks=True, out_of_touch=False, grace=GRACE)
    assert node_info(1, view, NOW, ()).state is state


@pytest.mark.parametrize(
    ("ready", "ago", "fresh", "out_of_touch", "surely"),
    [
        ("Unknown", 600, False, True, True),
        ("Unknown", 599, False, True, False),
        # Its peers still see it: it merely does not reach the API.
        ("Unknown", 9999, False, False, False),
        ("Unknown", 9999, True, True, False),
        # Its agent is gone, and Kubernetes says that the machine is well.
        ("True", 9999, False, True, False),
    ],
)
def test_a_node_is_surely_down_past_its_grace_and_out_of_everybodys_touch(
    ready: str, ago: float, fresh: bool, out_of_touch: bool, surely: bool
) -> None:
    view = NodeView(machine(ready, ago), LEASE, fresh, holds_disks=True, out_of_touch=out_of_touch, grace=GRACE)
    assert node_info(1, view, NOW, ()).surely_down is surely


def test_labels_say_where_a_node_stands_and_whose_it_is() -> None:
    labels = {TENANT: "t", ZONE: "dc", ROOM: "r", RACK: "k"}
    found = Node(metadata=ObjectMeta(name="n1", labels=labels))
    view = NodeView(found, LEASE, True, holds_disks=False, out_of_touch=False, grace=GRACE)
    info = node_info(7, view, NOW, (Marker.DISK_BROKEN,))
    assert (info.id, info.host, info.tenant, info.data_center, info.room, info.rack) == (7, "n1", "t", "dc", "r", "k")
    assert info.services == ("dynnode",)
    assert info.markers == (Marker.DISK_BROKEN,)
    assert info.start_time == 1794913200_000000 - 0 or info.start_time > 0
    assert node_info(7, NodeView(found, LEASE, True, True, False, GRACE), NOW, ()).services == ("storage",)


def test_a_start_time_that_nobody_can_read_is_none() -> None:
    lease = Lease(spec=LeaseSpec(acquire_time=MicroTime("yesterday")))
    view = NodeView(machine(), lease, True, holds_disks=True, out_of_touch=False, grace=GRACE)
    assert node_info(1, view, NOW, ()).start_time == 0


@pytest.mark.parametrize(
    ("presence", "state"),
    [(Presence.ONLINE, HostState.UP), (Presence.OFFLINE, HostState.DOWN), (None, HostState.UNKNOWN)],
)
def test_a_drive_is_as_its_agent_last_saw_it(presence: Presence | None, state: HostState) -> None:
    spec = DriveSpec(uuid="d", serial_number="s", node_id=NodeName("n1"), path="/dev/sdb")
    drive = Drive(metadata=ObjectMeta(name="d"), spec=spec, status=DriveStatus(presence=presence))
    info = drive_info(DriveId(1, 2), drive, ())
    assert (info.state, info.path) == (state, "/dev/sdb")

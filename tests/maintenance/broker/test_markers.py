"""Markers on nodes, drives and replicas, and the cluster as it is shown."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.api.duration import Duration
from quorate.api.maintenance.action import HostState, Marker, StatusCode
from quorate.api.maintenance.broker_config import BrokerConfig, BrokerConfigSpec, Limits, MonitorConfig
from quorate.api.maintenance.log_record import RecordType
from quorate.api.names import BROKER
from quorate.api.struct import replace
from quorate.maintenance.messages import (
    Caller,
    ClusterStateRequest,
    GetConfig,
    LogTailRequest,
    MarkedItems,
    SetConfig,
    SetMarker,
)
from quorate.maintenance.nouns import DriveId, DriveInfo, NodeInfo
from tests.maintenance.broker.desk import ANYONE, BEGIN, SETTINGS, Desk, replacement

BROKEN, FAULTY, ACTIVE, INACTIVE = Marker
ADMIN = Caller(name="root", admin=True)
MONITOR = Caller(name="quorate-monitor", admin=True)


async def mark(desk: Desk, marker: Marker | None, caller: Caller = ADMIN, **items: Any) -> StatusCode:
    token, reset = items.pop("token", ""), items.pop("reset", False)
    message = SetMarker(marker=marker, items=MarkedItems(**items), user_token=token, reset=reset)
    return (await desk.broker.set_marker(message, caller)).status.code


def marked(desk: Desk) -> dict[str, list[Marker]]:
    found: dict[str, list[Marker]] = {}
    for entry in desk.broker.ledger.markers:
        found.setdefault(entry.item, []).append(entry.marker)
    return found


async def test_hosts_nodes_drives_and_replicas_can_be_marked(desk: Desk) -> None:
    assert (
        await mark(desk, FAULTY, hosts=("h1",), nodes=(2,), drives=("pdisk-3-1",), vdisks=("vdisk-0-1-0-3-0",))
        is StatusCode.OK
    )
    assert list(marked(desk)) == ["node-1", "node-2", "pdisk-3-1", "vdisk-0-1-0-3-0"]
    assert {entry.by for entry in desk.broker.ledger.markers} == {"root"}


async def test_a_later_marker_takes_an_earlier_ones_place(desk: Desk) -> None:
    await mark(desk, FAULTY, drives=("pdisk-1-1",))
    await mark(desk, ACTIVE, drives=("pdisk-1-1",))
    assert marked(desk) == {"pdisk-1-1": [ACTIVE]}


async def test_a_marker_by_hand_and_the_monitors_stand_side_by_side(desk: Desk) -> None:
    await mark(desk, FAULTY, MONITOR, drives=("pdisk-1-1",))
    await mark(desk, ACTIVE, drives=("pdisk-1-1",))
    assert sorted(marked(desk)["pdisk-1-1"]) == sorted([FAULTY, ACTIVE])
    await mark(desk, ACTIVE, drives=("pdisk-1-1",), reset=True)
    assert marked(desk) == {"pdisk-1-1": [FAULTY]}
    await mark(desk, FAULTY, drives=("pdisk-1-1",), reset=True)
    assert marked(desk) == {}


async def test_resetting_what_is_not_set_changes_nothing(desk: Desk) -> None:
    await mark(desk, FAULTY, drives=("pdisk-1-1",))
    before = desk.broker.ledger
    assert await mark(desk, BROKEN, drives=("pdisk-1-1",), reset=True) is StatusCode.OK
    assert await mark(desk, FAULTY, drives=("pdisk-1-1",)) is StatusCode.OK
    assert desk.broker.ledger == before


@pytest.mark.parametrize(
    ("marker", "items", "code"),
    [
        (None, {"hosts": ("h1",)}, StatusCode.WRONG_REQUEST),
        (FAULTY, {}, StatusCode.WRONG_REQUEST),
        (FAULTY, {"hosts": ("nowhere",)}, StatusCode.NO_SUCH_HOST),
        (FAULTY, {"nodes": (99,)}, StatusCode.NO_SUCH_HOST),
        (FAULTY, {"drives": ("pdisk-1-1", "pdisk-1-9")}, StatusCode.NO_SUCH_DEVICE),
        (FAULTY, {"drives": ("/dev/sda",)}, StatusCode.NO_SUCH_DEVICE),
        (FAULTY, {"drives": ("vdisk-0-1-0-3-0",)}, StatusCode.NO_SUCH_DEVICE),
        (FAULTY, {"vdisks": ("vdisk-7-1-0-3-0",)}, StatusCode.NO_SUCH_DEVICE),
        (FAULTY, {"vdisks": ("pdisk-1-1",)}, StatusCode.NO_SUCH_DEVICE),
    ],
)
async def test_what_is_not_there_cannot_be_marked(
    desk: Desk, marker: Marker | None, items: dict[str, Any], code: StatusCode
) -> None:
    assert await mark(desk, marker, **items) is code
    assert marked(desk) == {}


class Tokens:
    """Implements the Identities port."""

    def identify(self, token: str) -> Caller | None:
        return {"s3cret": Caller(name="root", admin=True), "weak": Caller(name="alice")}.get(token)


@pytest.mark.parametrize(
    ("caller", "token", "code", "by"),
    [
        (Caller(name="alice"), "", StatusCode.UNAUTHORIZED, None),
        (Caller(name="alice"), "weak", StatusCode.UNAUTHORIZED, None),
        (Caller(name="alice"), "s3cret", StatusCode.OK, "root"),
        (Caller(name="alice"), "guess", StatusCode.UNAUTHORIZED, None),
        (ADMIN, "guess", StatusCode.UNAUTHORIZED, None),
        (ADMIN, "", StatusCode.OK, "root"),
        (ANYONE, "", StatusCode.OK, "anyone"),
        (ANYONE, "s3cret", StatusCode.OK, "root"),
        (ANYONE, "guess", StatusCode.OK, "anyone"),
        (ANYONE, "weak", StatusCode.UNAUTHORIZED, None),
    ],
)
async def test_marking_takes_an_admin_or_an_admins_token(
    caller: Caller, token: str, code: StatusCode, by: str | None
) -> None:
    desk = await Desk.open(identities=Tokens())
    assert await mark(desk, FAULTY, caller, drives=("pdisk-1-1",), token=token) is code
    assert [entry.by for entry in desk.broker.ledger.markers] == ([by] if by else [])
    records = (await desk.broker.get_log_tail(LogTailRequest(include_data=True), ADMIN)).records
    assert "s3cret" not in str(records)
    assert "guess" not in str(records)
    if by:
        record = records[-1]
        assert record.record_type is RecordType.MARKERS_MODIFICATION
        assert (record.data["item"], record.data["before"], record.data["after"]) == ("pdisk-1-1", [], [str(FAULTY)])
        proof = {"s3cret": "verified", "guess": "not verified", "": "none"}[token]
        assert (record.data["by"], record.data["token"]) == (by, proof)
    await desk.broker.close()


async def test_the_cluster_is_shown_node_by_node_with_its_devices_and_markers(desk: Desk) -> None:
    await mark(desk, FAULTY, nodes=(1,), drives=("pdisk-1-1",))
    answer = await desk.broker.cluster_state(ClusterStateRequest(hosts=("h1", "1", "2")), ANYONE)
    assert (answer.status.code, answer.timestamp) == (StatusCode.OK, BEGIN)
    first, second = answer.hosts
    assert (first.name, first.node_id, first.state, first.markers) == ("h1", 1, HostState.UP, (FAULTY,))
    assert [(one.name, one.markers) for one in first.devices] == [("pdisk-1-1", (FAULTY,)), ("vdisk-0-1-0-0-0", ())]
    assert [service.name for service in first.services] == ["storage"]
    assert second.name == "h2"
    assert len((await desk.broker.cluster_state(ClusterStateRequest(), ANYONE)).hosts) == 8


async def test_a_hosts_marker_shows_on_its_drives_unless_a_person_said_otherwise_of_one(desk: Desk) -> None:
    desk.model.put_drive(DriveInfo(id=DriveId(1, 2), path="/dev/sdb"))
    desk.model.put_drive(DriveInfo(id=DriveId(1, 3), path="/dev/sdc"))
    await mark(desk, BROKEN, hosts=("h1",))
    await mark(desk, ACTIVE, drives=("pdisk-1-2",))
    await mark(desk, FAULTY, MONITOR, drives=("pdisk-1-3",))
    answer = await desk.broker.cluster_state(ClusterStateRequest(hosts=("h1", "h2")), ANYONE)
    first, second = answer.hosts
    assert {one.name: one.markers for one in first.devices} == {
        "pdisk-1-1": (BROKEN,),
        "pdisk-1-2": (ACTIVE,),
        "pdisk-1-3": (BROKEN, FAULTY),
        "vdisk-0-1-0-0-0": (),
    }
    assert not any(one.markers for one in second.devices)
    await mark(desk, BROKEN, hosts=("h1",), reset=True)
    answer = await desk.broker.cluster_state(ClusterStateRequest(hosts=("h1",)), ANYONE)
    assert [one.markers for one in answer.hosts[0].devices] == [(), (ACTIVE,), (FAULTY,), ()]


@pytest.mark.parametrize("host", ["nowhere", "0", ""])
async def test_a_host_that_is_not_there_has_no_state(desk: Desk, host: str) -> None:
    answer = await desk.broker.cluster_state(ClusterStateRequest(hosts=("h1", host)), ANYONE)
    assert (answer.status.code, answer.hosts) == (StatusCode.NO_SUCH_HOST, ())


async def test_a_node_that_is_down_with_a_permission_is_restarting(desk: Desk) -> None:
    await desk.ask("h1")
    desk.put(1, HostState.DOWN)
    desk.put(2, HostState.DOWN)
    answer = await desk.broker.cluster_state(ClusterStateRequest(hosts=("h1", "h2")), ANYONE)
    assert [node.state for node in answer.hosts] == [HostState.RESTART, HostState.DOWN]


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (BrokerConfigSpec(default_retry_time=Duration("0s")), "defaultRetryTime"),
        (BrokerConfigSpec(default_permission_duration=Duration("0s")), "defaultPermissionDuration"),
        (BrokerConfigSpec(monitor_config=MonitorConfig(update_interval=Duration("0s"))), "updateInterval"),
    ],
)
async def test_a_configuration_without_time_is_wrong(desk: Desk, config: BrokerConfigSpec, field: str) -> None:
    answer = await desk.broker.set_config(SetConfig(config=config), ADMIN)
    assert answer.status.code is StatusCode.WRONG_REQUEST
    assert f"{field} must be more than zero" in answer.status.reason
    assert desk.model.settings == SETTINGS


async def test_setting_the_configuration_replaces_all_of_it(desk: Desk) -> None:
    limits = Limits(disabled_nodes_limit=3, disabled_nodes_ratio_limit=50)
    first = BrokerConfigSpec(cluster_limits=limits, default_retry_time=Duration("10s"))
    assert (await desk.broker.set_config(SetConfig(config=first), ADMIN)).status.code is StatusCode.OK
    assert (await desk.broker.get_config(GetConfig(), ANYONE)).config == first
    second = BrokerConfigSpec(default_permission_duration=Duration("1h"))
    await desk.broker.set_config(SetConfig(config=second), ADMIN)
    assert (await desk.broker.get_config(GetConfig(), ANYONE)).config == second
    assert desk.model.settings == second
    assert (await desk.store.get(BrokerConfig, BROKER)).spec == second
    again = await desk.again()
    assert (await again.broker.get_config(GetConfig(), ANYONE)).config == second
    await again.broker.close()


async def test_limits_that_are_set_count_at_once(desk: Desk) -> None:
    desk.model.remove_group(0)
    await desk.ask("h1")
    limits = Limits(disabled_nodes_limit=1, disabled_nodes_ratio_limit=0)
    await desk.broker.set_config(SetConfig(config=replace(SETTINGS, cluster_limits=limits)), ANYONE)
    assert (await desk.ask("h2")).status.code is StatusCode.DISALLOW_TEMP


async def test_the_log_calls_things_as_people_do(desk: Desk) -> None:
    desk.model.put_drive(DriveInfo(id=DriveId(3, 1), title="rack-7/2"))
    desk.model.put_node(NodeInfo(id=4, host="node-9"))
    await desk.ask(replacement("pdisk-3-1"))
    await mark(desk, FAULTY, drives=("pdisk-3-1",), nodes=(4,))
    told = [line.message for line in await desk.log.tail(LogTailRequest())]
    assert "alice-p-1 granted: REPLACE_DEVICES drive rack-7/2 (pdisk-3-1)" in told
    assert any(message.startswith("drive rack-7/2 (pdisk-3-1): MARKER_DISK_FAULTY set by") for message in told)
    assert any(message.startswith("node-9: MARKER_DISK_FAULTY set by") for message in told)

"""``quorate broker`` from inside: a described cluster that is changed from outside and found again after a restart."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from quorate.engine.clock import SystemClock
from quorate.errors import ConfigError
from quorate.maintenance.described import describe
from quorate.server.broker import Access, Users
from quorate.server.broker.listening import Address, Security
from quorate.server.broker.process import Served, serving
from tests.server.broker.conftest import Client
from tests.server.broker.test_access import ALICE, ROOT, digest

NODES = 8
MINUTE = 60_000_000


def description() -> dict[str, Any]:
    return {
        "nodes": [{"id": node, "host": f"h{node}", "dc": "a", "rack": f"k{node}"} for node in range(1, NODES + 1)],
        "drives": [{"node": node, "id": 1, "path": "/dev/sdb"} for node in range(1, NODES + 1)],
        "groups": [
            {
                "id": 0,
                "erasure": "block-4-2",
                "generation": 1,
                "vdisks": [
                    {"realm": 0, "domain": node - 1, "vdisk": 0, "node": node, "drive": 1}
                    for node in range(1, NODES + 1)
                ],
            }
        ],
        "rings": {"nToSelect": 3, "rings": [{"nodes": [1]}, {"nodes": [2]}, {"nodes": [3], "disabled": True}]},
        "config": {"clusterLimits": {"disabledNodesLimit": 4, "disabledNodesRatioLimit": 0}, "defaultRetryTime": "60s"},
    }


def write(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "cluster.json", description())


@asynccontextmanager
async def started(
    file: Path, state: Path | None = None, security: Security | None = None
) -> AsyncIterator[tuple[Client, Served]]:
    address = Address("127.0.0.1", 0)
    async with (
        serving(file, state, address, address, security or Security(), clock=SystemClock()) as served,
        aiohttp.ClientSession(f"http://{served.http}") as session,
    ):
        yield Client(session), served


@pytest.fixture
async def client(file: Path) -> AsyncIterator[Client]:
    async with started(file) as (found, _):
        yield found


async def cluster(client: Client) -> dict[str, Any]:
    code, found = await client.get("/cluster")
    assert code == 200
    return dict(found)


def shutdown(host: str, **more: Any) -> dict[str, Any]:
    return {"User": "u", "Actions": [{"Type": "SHUTDOWN_HOST", "Host": host, "Duration": MINUTE}], **more}


async def test_the_cluster_is_shown_in_the_form_of_its_file(client: Client) -> None:
    shown = await cluster(client)
    assert describe(shown) == describe(description())
    assert shown["config"]["clusterLimits"] == {"disabledNodesLimit": 4, "disabledNodesRatioLimit": 0}
    assert shown["config"]["defaultPermissionDuration"] == "300s"


@pytest.mark.parametrize("state", ["DOWN", "RESTART", "UNKNOWN", "UP"])
async def test_states_change_when_told(client: Client, state: str) -> None:
    for path in ("nodes/2", "drives/3/1", "vdisks/vdisk-0-1-0-3-0"):
        assert await client.call("PUT", f"/cluster/{path}/state", {"state": state}) == (200, {"state": state})
    shown = await cluster(client)
    assert [node["state"] for node in shown["nodes"][:3]] == ["UP", state, "UP"]
    assert [drive["state"] for drive in shown["drives"][:4]] == ["UP", "UP", state, "UP"]
    assert [part["state"] for part in shown["groups"][0]["vdisks"][:5]] == ["UP", "UP", "UP", state, "UP"]


async def test_a_state_changes_the_answer(client: Client) -> None:
    question = shutdown("h1", DryRun=True)
    _, before = await client.post("/cms/api/permissionrequest", question)
    await client.call("PUT", "/cluster/drives/5/1/state", {"state": "DOWN"})
    _, after = await client.post("/cms/api/permissionrequest", question)
    assert [before["Status"]["Code"], after["Status"]["Code"]] == ["ALLOW", "DISALLOW_TEMP"]
    assert after["Refused"][0]["Issue"]["Type"] == "TOO_MANY_UNAVAILABLE_VDISKS"


@pytest.mark.parametrize(
    ("path", "body", "code", "said"),
    [
        ("nodes/9", {"state": "UP"}, 404, "there is no node 9"),
        ("nodes/x", {"state": "UP"}, 404, "'x' is not a number"),
        ("nodes/1", {"state": "up"}, 400, "'up' is not one of"),
        ("nodes/1", {"state": None}, 400, "state"),
        ("nodes/1", {}, 400, "must have the key 'state'"),
        ("nodes/1", {"state": "UP", "why": 1}, 400, "must have the key 'state' and no other"),
        ("nodes/1", [], 400, "must be an object"),
        ("nodes/1", b"{", 400, "not JSON"),
        ("drives/1/2", {"state": "UP"}, 404, "there is no drive pdisk-1-2"),
        ("drives/1/-1", {"state": "UP"}, 404, "'-1' is not a number"),
        ("vdisks/vdisk-0-2-0-0-0", {"state": "UP"}, 404, "there is no vdisk 'vdisk-0-2-0-0-0'"),
        ("vdisks/pdisk-1-1", {"state": "UP"}, 404, "vdisk-0-1-0-0-0 is expected"),
    ],
)
async def test_a_state_that_cannot_be_set(client: Client, path: str, body: Any, code: int, said: str) -> None:
    before = await cluster(client)
    found, answer = await client.call("PUT", f"/cluster/{path}/state", body)
    assert found == code
    assert said in answer["message"]
    assert await cluster(client) == before


async def test_the_configuration_is_changed_where_it_is_given(client: Client) -> None:
    code, shown = await client.call(
        "PUT", "/cluster/config", {"clusterLimits": {"disabledNodesLimit": 1}, "defaultPermissionDuration": "5m"}
    )
    assert code == 200
    assert shown["clusterLimits"] == {"disabledNodesLimit": 1, "disabledNodesRatioLimit": 0}
    assert (shown["defaultPermissionDuration"], shown["defaultRetryTime"]) == ("5m", "60s")
    assert (await cluster(client))["config"] == shown
    await client.post("/cms/api/permissionrequest", shutdown("h1"))
    _, refused = await client.post("/cms/api/permissionrequest", shutdown("h2"))
    assert refused["Refused"][0]["Issue"]["Type"] == "DISABLED_NODES_LIMIT_REACHED"


async def test_null_is_not_given(client: Client) -> None:
    before = (await cluster(client))["config"]
    given = {"clusterLimits": {"disabledNodesLimit": None}, "tenantLimits": None, "logConfig": {"ttl": None}}
    assert await client.call("PUT", "/cluster/config", given) == (200, before)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"clusterLimit": {}}, "config.clusterLimit"),
        ({"clusterLimits": {"disabledNodesRatioLimit": 101}}, "config.clusterLimits.disabledNodesRatioLimit: 101"),
        ({"clusterLimits": 3}, "config.clusterLimits: 3"),
        ({"defaultRetryTime": "soon"}, "'soon' is not a duration"),
        ({"defaultRetryTime": "0s"}, "config.defaultRetryTime must be more than zero"),
        ({"monitorConfig": {"updateInterval": "0s"}}, "config.monitorConfig.updateInterval must be more than zero"),
        ({"clusterLimits": {"disabledNodesLimit": 2**63}}, "disabledNodesLimit"),
        ([], "must be an object"),
    ],
)
async def test_a_configuration_that_cannot_be_used(client: Client, body: Any, said: str) -> None:
    before = (await cluster(client))["config"]
    code, answer = await client.call("PUT", "/cluster/config", body)
    assert code == 400
    assert said in answer["message"]
    assert (await cluster(client))["config"] == before


async def test_a_refused_extension_says_who_is_in_the_way(client: Client) -> None:
    _, granted = await client.post("/cms/api/permissionrequest", shutdown("h1"))
    (permission,) = granted["Permissions"]
    await client.call("PUT", "/cluster/nodes/2/state", {"state": "DOWN"})
    extend = {"User": "u", "Command": "EXTEND", "Permissions": [permission["Id"]], "Deadline": 2**63}
    _, answer = await client.post("/cms/api/managepermissionrequest", extend)
    (refused,) = answer["Permissions"]
    assert (answer["Status"]["Code"], refused["Id"]) == ("DISALLOW", permission["Id"])
    assert refused["Action"]["Issue"]["Blockers"]


async def test_time_passes_when_told_and_permissions_end_by_it(client: Client) -> None:
    _, granted = await client.post("/cms/api/permissionrequest", shutdown("h1"))
    _, clock = await client.get("/cluster/clock")
    code, moved = await client.post("/cluster/clock", {"advance": "1h"})
    assert code == 200
    assert int(moved["now"]) >= int(clock["now"]) + 60 * MINUTE
    _, left = await client.post("/cms/api/managepermissionrequest", {"User": "u", "Command": "LIST"})
    assert granted["Status"]["Code"] == "ALLOW"
    assert left == {"Status": {"Code": "OK"}}


async def test_a_host_that_is_down_keeps_its_lock_whatever_the_time(client: Client) -> None:
    await client.post("/cms/api/permissionrequest", shutdown("h1"))
    await client.call("PUT", "/cluster/nodes/1/state", {"state": "DOWN"})
    await client.post("/cluster/clock", {"advance": "24h"})
    _, left = await client.post("/cms/api/managepermissionrequest", {"User": "u", "Command": "LIST"})
    assert [one["Id"] for one in left["Permissions"]] == ["u-p-1"]


@pytest.mark.parametrize(
    "body", [{}, {"advance": 600}, {"advance": "-600s"}, {"advance": "99999999999999999999h"}, {"advance": "s"}, []]
)
async def test_time_that_cannot_pass(client: Client, body: Any) -> None:
    code, answer = await client.post("/cluster/clock", body)
    assert code == 400
    assert answer["message"]


async def test_a_host_that_breaks_after_its_permission_is_not_restarting(client: Client) -> None:
    await client.post("/cms/api/permissionrequest", shutdown("h1"))
    await client.post("/cluster/clock", {"advance": "61s"})
    await client.call("PUT", "/cluster/nodes/1/state", {"state": "DOWN"})
    _, found = await client.post("/cms/api/clusterstaterequest", {"Hosts": ["h1"]})
    assert [host["State"] for host in found["State"]["Hosts"]] == ["DOWN"]
    _, answer = await client.post("/cms/api/permissionrequest", shutdown("h1", DryRun=True))
    assert answer["Status"]["Code"] == "ALLOW"


@pytest.mark.parametrize("span", ["99999999999999h", "99999999h"])
async def test_more_time_than_there_is(client: Client, span: str) -> None:
    code, answer = await client.post("/cluster/clock", {"advance": span})
    assert code == 400
    assert "time ends in the year 9000" in answer["message"]


async def test_after_a_restart_everything_is_as_it_was_left(file: Path, tmp_path: Path) -> None:
    state = tmp_path / "made" / "state"
    async with started(file, state) as (client, served):
        await client.post("/cluster/clock", {"advance": "240h"})
        _, granted = await client.post("/cms/api/permissionrequest", shutdown("h1"))
        for path, word in (("nodes/1", "DOWN"), ("nodes/2", "RESTART"), ("nodes/2", "UP"), ("drives/3/1", "DOWN")):
            await client.call("PUT", f"/cluster/{path}/state", {"state": word})
        await client.call("PUT", "/cluster/vdisks/vdisk-0-1-0-3-0/state", {"state": "UNKNOWN"})
        await client.call("PUT", "/cluster/config", {"tenantLimits": {"disabledNodesLimit": 7}})
        before, time = await cluster(client), served.broker.now()
        assert granted["Status"]["Code"] == "ALLOW"
    async with started(file, state) as (client, served):
        assert await cluster(client) == before
        assert time <= served.broker.now() < time + 5 * MINUTE
        _, kept = await client.post(
            "/cms/api/managepermissionrequest", {"User": "u", "Command": "GET", "Permissions": ["u-p-1"]}
        )
        assert kept["Permissions"][0]["Deadline"] == granted["Permissions"][0]["Deadline"]
        _, second = await client.post("/cms/api/permissionrequest", shutdown("h1"))
        assert second["Status"]["Code"] == "DISALLOW_TEMP"
        await client.post("/cluster/clock", {"advance": "1h"})
        await client.call("PUT", "/cluster/nodes/1/state", {"state": "UP"})
    async with started(file, state) as (client, served):
        assert served.broker.now() >= time + 60 * MINUTE
        assert (await cluster(client))["nodes"][0]["state"] == "UP"


async def test_without_a_state_file_nothing_is_kept(file: Path) -> None:
    async with started(file) as (client, _):
        await client.call("PUT", "/cluster/nodes/2/state", {"state": "DOWN"})
        await client.post("/cms/api/permissionrequest", shutdown("h1"))
    async with started(file) as (client, served):
        assert {node["state"] for node in (await cluster(client))["nodes"]} == {"UP"}
        assert served.broker.ledger.permissions == ()


async def test_states_of_what_is_described_no_more_are_passed_over(file: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with started(file, state) as (client, _):
        await client.call("PUT", "/cluster/drives/8/1/state", {"state": "DOWN"})
        await client.call("PUT", "/cluster/nodes/2/state", {"state": "DOWN"})
    smaller = write(tmp_path / "smaller.json", {"nodes": description()["nodes"][:2]})
    async with started(smaller, state) as (client, _):
        assert [node["state"] for node in (await cluster(client))["nodes"]] == ["UP", "DOWN"]


async def test_the_log_outlives_a_restart(file: Path, tmp_path: Path) -> None:
    for _ in range(2):
        async with started(file, tmp_path / "state") as (client, _):
            _, log = await client.get("/cms/api/json/log")
    assert [record["RecordType"] for record in log["LogRecords"]] == ["CMS_LOADED", "CMS_LOADED"]


async def test_a_drive_that_is_away_too_long_is_marked(client: Client) -> None:
    async with client.session.get("/cms/api/events") as events:
        await events.content.readuntil(b"\n\n")
        await client.call("PUT", "/cluster/config", {"monitorConfig": {"enableAutoUpdates": True}})
        await client.call("PUT", "/cluster/drives/2/1/state", {"state": "DOWN"})
        await client.post("/cluster/clock", {"advance": "61s"})  # seen to be away
        await client.post("/cluster/clock", {"advance": "3h"})
        async with asyncio.timeout(10):
            while b'"Kind":"MARKER"' not in await events.content.readuntil(b"\n\n"):
                pass
    _, state = await client.post("/cms/api/clusterstaterequest", {"Hosts": ["h2"]})
    drive = next(device for device in state["State"]["Hosts"][0]["Devices"] if device["Name"] == "pdisk-2-1")
    assert drive["Markers"] == ["MARKER_DISK_BROKEN"]


async def test_who_waits_is_told_when_asking_would_help(client: Client) -> None:
    await client.call("PUT", "/cluster/drives/5/1/state", {"state": "DOWN"})
    _, waiting = await client.post("/cms/api/permissionrequest", shutdown("h1", Schedule=True))
    assert waiting["Status"]["Code"] == "DISALLOW_TEMP"
    async with client.session.get(f"/cms/api/events?User=u&RequestId={waiting['RequestId']}") as events:
        await events.content.readuntil(b"\n\n")
        await client.call("PUT", "/cluster/drives/5/1/state", {"state": "UP"})
        async with asyncio.timeout(10):
            event = await events.content.readuntil(b"\n\n")
    told = json.loads(event.split(b"data: ")[1])
    assert (told["Kind"], told["Verb"], told["Id"]) == ("REQUEST", "ANSWER", waiting["RequestId"])
    assert told["Answer"]["Status"]["Code"] == "ALLOW"


async def test_a_clock_that_never_jumped_may_be_accepted(client: Client) -> None:
    assert await client.post("/cms/api/accepttimerequest", {}) == (200, {"Status": {"Code": "OK"}})


async def test_probes_and_metrics_are_there(client: Client) -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        async with client.session.get(path) as answer:
            assert (answer.status, await answer.text()) == (200, "ok")
    await client.post("/cms/api/permissionrequest", shutdown("h1", DryRun=True))
    async with client.session.get("/metrics") as answer:
        assert 'quorate_broker_answers_total{code="ALLOW",question="permission_request"} 1.0' in await answer.text()


async def test_only_admins_change_the_cluster_where_users_are_known(file: Path, tmp_path: Path) -> None:
    alice = {"name": "alice", "tokenSha256": digest(ALICE)}
    root = {"name": "root", "role": "admin", "tokenSha256": digest(ROOT)}
    users = write(tmp_path / "users", {"users": [alice, root]})
    codes = []
    async with started(file, None, Security(Access(Users(users)))) as (client, _):
        for token in (None, ALICE, ROOT):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            for method, path, body in (
                ("PUT", "/cluster/nodes/1/state", {"state": "UP"}),
                ("PUT", "/cluster/config", {}),
                ("POST", "/cluster/clock", {"advance": "1s"}),
                ("GET", "/cluster", None),
            ):
                codes.append((await client.call(method, path, body, headers=headers))[0])
    assert codes == [401, 401, 401, 401, 403, 403, 403, 200, 200, 200, 200, 200]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read"),
        ("nodes: [", "neither YAML nor JSON"),
        ("nodes: [{id: 0, host: h}]", r"nodes\[0\].id: 0 is not a whole number from 1"),
        ("nodes: [{id: 1, host: h, state: up}]", r"nodes\[0\].state: 'up' is not one of UNKNOWN, UP, RESTART, DOWN"),
        ("{}", "nodes: is missing"),
    ],
)
async def test_a_file_that_describes_nothing_is_refused(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "cluster.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=said) as refused:
        async with started(path):
            pass
    assert str(path) in str(refused.value)


async def test_a_state_file_that_cannot_be_one(file: Path, tmp_path: Path) -> None:
    for state, said in ((tmp_path, "is a directory"), (Path("/proc/nothing/state"), "cannot be made")):
        with pytest.raises(ConfigError, match=said):
            async with started(file, state):
                pass

"""The rolling restart of the specification, from start to end, by real clients against a real process."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Iterable
from pathlib import Path

import grpc
import pytest

from tests.maintenance.oracle.served import (
    BLOCK,
    USER,
    GrpcSpeaker,
    HttpSpeaker,
    Served,
    Speaker,
    Tree,
    blocks,
    serving,
    together,
)

FULL = os.environ.get("QUORATE_ORACLE") == "full"
SIZES = [8, 100, 1000]
MINUTE = 60_000_000
#: How many of a round's hosts really go down and come back: each is remembered durably, which is another's business.
REALLY_DOWN = 1000 if FULL else 10


def assert_safe(hosts: Iterable[str], nodes: int) -> None:
    """At most one node of every group may be away at a time."""
    away = {int(host.removeprefix("h")) for host in hosts}
    assert all(len(away.intersection(block)) <= 1 for block in blocks(nodes))


def action(host: str) -> Tree:
    return {"Type": "SHUTDOWN_HOST", "Host": host, "Duration": str(MINUTE)}


async def roll(speaker: Speaker, served: Served) -> int:
    """Steps 1 to 3 of the scenario; in how many rounds."""
    hosts = [f"h{node}" for node in range(1, served.nodes + 1)]
    answer = await speaker.ask(
        "PermissionRequest",
        {
            "User": USER,
            "Actions": [action(host) for host in hosts],
            "PartialPermissionAllowed": True,
            "Schedule": True,
            "Reason": "rolling restart",
        },
    )
    request_id, restarted, rounds = answer["RequestId"], [], 0
    while True:
        rounds += 1
        permissions = answer.get("Permissions", [])
        granted = [permission["Action"]["Host"] for permission in permissions]
        assert granted, answer
        assert_safe(granted, served.nodes)
        await served.restart(granted[:REALLY_DOWN])
        restarted += granted
        names = [permission["Id"] for permission in permissions]
        done = await speaker.ask("ManagePermissionRequest", {"User": USER, "Command": "DONE", "Permissions": names})
        assert done["Status"]["Code"] == "OK"
        if answer["Status"]["Code"] == "ALLOW":
            break
        assert answer["Status"]["Code"] == "ALLOW_PARTIAL"
        assert answer["RequestId"] == request_id
        answer = await speaker.ask("CheckRequest", {"User": USER, "RequestId": request_id})
    assert sorted(restarted) == sorted(hosts)
    after = await speaker.ask("CheckRequest", {"User": USER, "RequestId": request_id})
    assert after["Status"]["Code"] == "WRONG_REQUEST"
    return rounds


@pytest.mark.parametrize("nodes", SIZES)
async def test_every_host_is_restarted_once_through_grpc(tmp_path: Path, nodes: int) -> None:
    async with serving(tmp_path, nodes) as served:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{served.grpc_port}") as channel:
            rounds = await roll(GrpcSpeaker(channel), served)
        # Some blocks of 100 overlap, so there greed in the order asked may need a few more.
        assert rounds == BLOCK or nodes % BLOCK


@pytest.mark.parametrize("nodes", SIZES)
async def test_every_host_is_restarted_once_through_http(tmp_path: Path, nodes: int) -> None:
    async with serving(tmp_path, nodes) as served:
        rounds = await roll(HttpSpeaker(served), served)
        assert rounds == BLOCK or nodes % BLOCK


class Walle:
    """Wall-E: a task for each host, asked about until it may go on, removed when the host is back."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._tasks = f"{served.url}/cms/api/walle/v11/tasks"

    async def create(self, host: str) -> str:
        task = {"id": f"task-{host}", "type": "automated", "issuer": USER, "action": "reboot", "hosts": [host]}
        async with self._served.session.post(self._tasks, json=task) as response:
            assert response.status == 200, await response.text()
            return str((await response.json())["status"])

    async def check(self, host: str) -> str:
        async with self._served.session.get(f"{self._tasks}/task-{host}") as response:
            assert response.status == 200, await response.text()
            return str((await response.json())["status"])

    async def remove(self, host: str) -> int:
        async with self._served.session.delete(f"{self._tasks}/task-{host}") as response:
            return response.status

    async def listed(self) -> list[Tree]:
        async with self._served.session.get(self._tasks) as response:
            result: list[Tree] = (await response.json())["result"]
            return result


@pytest.mark.parametrize("nodes", SIZES)
async def test_every_host_is_restarted_once_through_walle(tmp_path: Path, nodes: int) -> None:
    hosts = [f"h{node}" for node in range(1, nodes + 1)]
    async with serving(tmp_path, nodes) as served:
        walle = Walle(served)
        words = await together(walle.create(host) for host in hosts)
        waiting, rounds = hosts, 0
        while waiting:
            rounds += 1
            assert set(words) <= {"ok", "in-process"}
            granted = [host for host, word in zip(waiting, words, strict=True) if word == "ok"]
            assert granted
            assert_safe(granted, nodes)
            await served.restart(granted[:REALLY_DOWN])
            assert set(await together(walle.remove(host) for host in granted)) == {204}
            waiting = [host for host in waiting if host not in granted]
            words = await together(walle.check(host) for host in waiting)
        assert await walle.listed() == []
        # Tasks are created side by side, so who comes first in a block is chance, but each block takes one at a time.
        assert rounds >= BLOCK


@pytest.mark.crash
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM] if FULL else [signal.SIGKILL])
async def test_a_broker_that_is_killed_on_the_way_forgets_nothing(tmp_path: Path, how: signal.Signals) -> None:
    """Killed after an answer, everything is as it was told, under the same ids, and goes on."""
    kills = range(BLOCK) if FULL else (0, 4)
    async with serving(tmp_path, 8) as served:
        speaker = HttpSpeaker(served)
        hosts = [f"h{node}" for node in range(1, 9)]
        asked = {"User": USER, "Actions": list(map(action, hosts)), "PartialPermissionAllowed": True, "Schedule": True}
        answer = await speaker.ask("PermissionRequest", asked)
        request_id = answer["RequestId"]
        restarted: list[str] = []
        ids: list[str] = []
        while True:
            granted = answer["Permissions"]
            round_number = len(ids)
            if round_number in kills:
                served.kill(how)
                await served.start()
            held = await speaker.ask("ManagePermissionRequest", {"User": USER, "Command": "LIST"})
            assert [(one["Id"], one["Deadline"]) for one in held["Permissions"]] == [
                (one["Id"], one["Deadline"]) for one in granted
            ]
            names = [one["Id"] for one in granted]
            restarted += [one["Action"]["Host"] for one in granted]
            ids += names
            done = {"User": USER, "Command": "DONE", "Permissions": names}
            assert (await speaker.ask("ManagePermissionRequest", done))["Status"]["Code"] == "OK"
            if round_number in kills:
                served.kill(how)
                await served.start()
            assert (await speaker.ask("ManagePermissionRequest", done))["Status"]["Code"] == "WRONG_REQUEST"
            if answer["Status"]["Code"] == "ALLOW":
                break
            answer = await speaker.ask("CheckRequest", {"User": USER, "RequestId": request_id})
        assert sorted(restarted) == sorted(hosts)
        assert len(set(ids)) == len(hosts)


@pytest.mark.crash
async def test_a_broker_that_is_killed_while_it_decides_has_decided_all_or_nothing(tmp_path: Path) -> None:
    """Killed within a question, at any moment: each host is permitted, waited for or done, and never two of these."""
    luck = random.Random(7)
    hosts = [f"h{node}" for node in range(1, 9)]
    restarted: list[str] = []
    kills = 20 if FULL else 3
    async with serving(tmp_path, 8) as served:
        speaker = HttpSpeaker(served)

        async def ask(what: str, message: Tree) -> Tree:
            """The answer, unless the broker dies first: then nobody knows, and the client begins by asking anew."""
            nonlocal kills
            question = asyncio.ensure_future(speaker.ask(what, message | {"User": USER}))
            if kills and luck.random() < 0.5:
                kills -= 1
                await asyncio.wait({question}, timeout=luck.random() * 0.02)
                served.kill()
                await asyncio.gather(question, return_exceptions=True)
                await served.start()
                raise ConnectionAbortedError
            return await question

        async def go_on() -> bool:
            """Use what is permitted, then ask on; whether anything is left."""
            held = (await ask("ManagePermissionRequest", {"Command": "LIST"})).get("Permissions", [])
            stored = (await ask("ManageRequestRequest", {"Command": "LIST"})).get("Requests", [])
            assert len(stored) <= 1
            waiting = [one["Host"] for request in stored for one in request["Actions"]]
            permitted = [permission["Action"]["Host"] for permission in held]
            assert len({*waiting, *permitted}) == len(waiting) + len(permitted)
            assert_safe(permitted, 8)
            if stored:
                assert {*waiting, *permitted, *restarted} == set(hosts)
            for permission in held:
                restarted.append(permission["Action"]["Host"])
                await ask("ManagePermissionRequest", {"Command": "DONE", "Permissions": [permission["Id"]]})
            rest = [host for host in hosts if host not in restarted]
            if stored:
                await ask("CheckRequest", {"RequestId": stored[0]["RequestId"]})
            elif rest:
                flags = {"PartialPermissionAllowed": True, "Schedule": True}
                await ask("PermissionRequest", {"Actions": list(map(action, rest)), **flags})
            return bool(held or rest)

        while True:
            try:
                if not await go_on():
                    break
            except ConnectionAbortedError:
                continue
    # A permission whose end was not answered for may be used once more, but no host is left out.
    assert set(restarted) == set(hosts)
    assert not kills


@pytest.mark.crash
async def test_what_is_down_is_down_after_the_broker_was_killed(tmp_path: Path) -> None:
    """Otherwise its lock would end with its time, while it is still away."""
    async with serving(tmp_path, 8) as served:
        await served.post("permissionrequest", {"User": USER, "Actions": [action("h1")]})
        await served.put_state(1, "DOWN")
        served.kill()
        await served.start()
        async with served.session.post(f"{served.url}/cluster/clock", json={"advance": "3600s"}) as response:
            assert response.status < 300
        refused = await served.post("permissionrequest", {"User": "other", "Actions": [action("h2")]})
        assert refused["Status"]["Code"] == "DISALLOW_TEMP"
        await served.put_state(1, "UP")
        granted = await served.post("permissionrequest", {"User": "other", "Actions": [action("h2")]})
        assert granted["Status"]["Code"] == "ALLOW"

"""The broker of ``quorate up`` and of ``quorate controller`` over the wire: HTTP, gRPC, and who may ask."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import aiohttp
import grpc
import pytest
import yaml

from quorate.server.broker.proto import cms_pb2, cms_pb2_grpc
from quorate.server.kubernetes import AgentTokens
from tests.cli import test_controller as controllers
from tests.cli.test_up import PATIENCE, call, refused, server

STATE = "/cms/api/clusterstaterequest"


@contextmanager
def up(data: Path, *arguments: str) -> Iterator[tuple[dict[str, Any], str]]:
    """``quorate up`` with three nodes; its kubeconfig, and where its gRPC is."""
    words = [sys.executable, "-m", "quorate", "up", "--port", "0", "--nodes", "3", "--data", str(data), *arguments]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            assert "ready" in process.stdout.readline()
            told = re.search(r"gRPC on (\S+)$", process.stdout.readline().strip())
            assert told is not None
            yield yaml.safe_load((data / "kubeconfig").read_text()), told[1]
        finally:
            process.terminate()
            assert process.wait(PATIENCE) == 0


def hosts(config: dict[str, Any], token: str | None = None) -> list[str]:
    """All that the broker knows, once it answers."""
    end = time.monotonic() + PATIENCE
    while True:
        answer = call(config, STATE, {"Hosts": []}, token)
        found = sorted(host["Name"] for host in answer.get("State", {}).get("Hosts", []))
        if len(found) == 3:
            return found
        assert time.monotonic() < end, answer
        time.sleep(0.1)


def test_one_broker_answers_over_http_wall_e_and_grpc(tmp_path: Path) -> None:
    with up(tmp_path) as (config, address), grpc.insecure_channel(address) as channel:
        assert hosts(config) == ["node-1", "node-2", "node-3"]
        task = {"id": "t-1", "type": "manual", "issuer": "robot", "action": "reboot", "hosts": ["node-2"]}
        assert call(config, "/cms/api/walle/v11/tasks", task)["status"] == "ok"
        stub = cast("Any", cms_pb2_grpc).CmsStub(channel)
        action = cms_pb2.TAction(Type=cms_pb2.TAction.SHUTDOWN_HOST, Host="node-1", Duration=60_000_000)
        asked = cms_pb2.TPermissionRequest(User="alice", Actions=[action])
        answer = stub.Call(cms_pb2.TCmsRequest(PermissionRequest=asked), timeout=PATIENCE)
        assert answer.PermissionResponse.Status.Code == cms_pb2.TStatus.DISALLOW_TEMP
        assert "node-2" in answer.PermissionResponse.Status.Reason or "away" in answer.PermissionResponse.Status.Reason
        with urllib.request.urlopen(f"{server(config)}/metrics", timeout=PATIENCE) as metrics:
            assert b'quorate_broker_answers_total{code="DISALLOW_TEMP",question="permission_request"} 1.0' in (
                metrics.read()
            )


def test_what_was_granted_is_granted_after_a_restart(tmp_path: Path) -> None:
    asked = {"User": "alice", "Actions": [{"Type": "SHUTDOWN_HOST", "Host": "node-1", "Duration": 600_000_000}]}
    listed = {"User": "alice", "Command": "LIST"}
    with up(tmp_path) as (config, _):
        hosts(config)
        assert call(config, "/cms/api/permissionrequest", asked)["Status"]["Code"] == "ALLOW"
    with up(tmp_path) as (config, _):
        hosts(config)
        [permission] = call(config, "/cms/api/managepermissionrequest", listed)["Permissions"]
        assert permission["Id"] == "alice-p-1"


def test_who_must_show_a_token_must_show_it_to_the_broker_too_and_agents_ask_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("0123456789abcdef")
    data = tmp_path / "data"
    with up(data, "--token-file", str(tmp_path / "mine")) as (config, _):
        assert hosts(config, "0123456789abcdef") == ["node-1", "node-2", "node-3"]
        for wrong in (None, "0123456789abcdeg", AgentTokens(data / "agents").token("node-1")):
            with pytest.raises(urllib.error.HTTPError) as error:
                call(config, STATE, {"Hosts": []}, wrong)
            error.value.close()
            assert error.value.code == 401


def test_a_broker_beyond_loopback_takes_more_than_an_open_server(tmp_path: Path) -> None:
    code, said = refused("--data", str(tmp_path), "--broker-grpc", "0.0.0.0:0")
    assert code == 3
    assert "can be reached from other machines" in said


async def test_a_controller_serves_the_broker_where_it_is_told_and_says_when_it_does_not_lead(tmp_path: Path) -> None:
    async with controllers.api(tmp_path) as store:
        process = await controllers.start(tmp_path, "--broker-http", "127.0.0.1:0", "--broker-grpc", "127.0.0.1:0")
        assert process.stdout is not None
        try:
            async with asyncio.timeout(PATIENCE):
                said = (await process.stdout.readline()).decode()
            told = re.search(r"HTTP is on (\S+);.*gRPC is on (\S+);", said)
            assert told is not None, said
            await controllers.leader(store)
            async with asyncio.timeout(PATIENCE), aiohttp.ClientSession(f"http://{told[1]}") as http:
                while True:
                    answer = await (await http.post(STATE, data=json.dumps({}))).json()
                    if answer["Status"]["Code"] == "OK":
                        break
                    assert answer["Status"]["Code"] == "ERROR_TEMP"
                    await asyncio.sleep(0.05)
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
            async with asyncio.timeout(PATIENCE):
                await process.communicate()
        assert process.returncode == 0


async def test_a_controller_does_not_open_the_broker_to_other_machines(tmp_path: Path) -> None:
    async with controllers.api(tmp_path):
        process = await controllers.start(tmp_path, "--broker-http", "0.0.0.0:0")
        async with asyncio.timeout(PATIENCE):
            _, complaints = await process.communicate()
    assert process.returncode == 3
    assert "can be reached from other machines" in complaints.decode()

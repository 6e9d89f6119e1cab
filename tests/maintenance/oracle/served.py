"""`quorate broker` as a process over a described cluster, and the three ways to talk to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol

import aiohttp
import grpc
from google.protobuf import json_format

from quorate.server.broker.proto import cms_pb2

#: Nodes of a group: block-4-2 has eight.
BLOCK = 8
USER = "restarter"
#: How many calls are on their way at once.
IN_FLIGHT = 32
Tree = dict[str, Any]


def blocks(nodes: int) -> list[list[int]]:
    """Which nodes share groups: eight by eight, the last eight overlapping if it does not work out."""
    firsts = [*range(1, nodes - BLOCK + 2, BLOCK)]
    if nodes % BLOCK:
        firsts.append(nodes - BLOCK + 1)
    return [list(range(first, first + BLOCK)) for first in firsts]


def description(nodes: int, groups_per_block: int = 2) -> Tree:
    """A cluster of block-4-2 groups, without limits on how many nodes may be away."""
    groups: list[Tree] = []
    for block in blocks(nodes):
        for _ in range(groups_per_block):
            vdisks = [
                {"realm": 0, "domain": place, "vdisk": 0, "node": node, "drive": 1, "state": "UP"}
                for place, node in enumerate(block)
            ]
            groups.append({"id": len(groups), "erasure": "block-4-2", "generation": 1, "vdisks": vdisks})
    no_limits = {"disabledNodesLimit": 0, "disabledNodesRatioLimit": 0}
    return {
        "nodes": [{"id": node, "host": f"h{node}", "services": ["storage"]} for node in range(1, nodes + 1)],
        "drives": [{"node": node, "id": 1, "path": "/dev/sdb"} for node in range(1, nodes + 1)],
        "groups": groups,
        "config": {"clusterLimits": no_limits, "tenantLimits": no_limits},
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Served:
    """The process. It can be killed and started again on the same ports and the same file."""

    def __init__(self, directory: Path, nodes: int) -> None:
        self.nodes = nodes
        self.http_port, self.grpc_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.http_port}"
        self._directory = directory
        (directory / "cluster.json").write_text(json.dumps(description(nodes)))
        self.session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=IN_FLIGHT))
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = self._spawn()
        for _ in range(600):
            with contextlib.suppress(aiohttp.ClientError):
                state = await self.post("clusterstaterequest", {"Hosts": ["h1"]})
                if state["Status"]["Code"] == "OK":
                    return
            if self._process.poll() is not None:
                break
            await asyncio.sleep(0.05)
        raise AssertionError(f"the broker does not answer: {(self._directory / 'log').read_text()[-2000:]}")

    def _spawn(self) -> subprocess.Popen[bytes]:
        program = Path(sys.executable).with_name("quorate")
        command = [str(program), "broker", "--cluster", str(self._directory / "cluster.json")]
        command += ["--http", f"127.0.0.1:{self.http_port}", "--grpc", f"127.0.0.1:{self.grpc_port}"]
        command += ["--state", str(self._directory / "state")]
        with (self._directory / "log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, env=os.environ)

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End it, without a warning unless asked otherwise."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(20)

    async def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill(signal.SIGTERM)
        await self.session.close()

    async def post(self, what: str, message: Tree) -> Tree:
        async with self.session.post(f"{self.url}/cms/api/{what}", json=message) as response:
            answer: Tree = await response.json()
            assert response.status == 200, answer
            return answer

    async def put_state(self, node: int, state: str) -> None:
        async with self.session.put(f"{self.url}/cluster/nodes/{node}/state", json={"state": state}) as response:
            assert response.status < 300, await response.text()

    async def restart(self, hosts: list[str]) -> None:
        """What the permission is for: hosts go down and come back."""
        for state in ("DOWN", "UP"):
            await together(self.put_state(int(host.removeprefix("h")), state) for host in hosts)


async def together(calls: Any) -> list[Any]:
    """Some at a time."""
    gate = asyncio.Semaphore(IN_FLIGHT)

    async def one(call: Any) -> Any:
        async with gate:
            return await call

    return await asyncio.gather(*map(one, calls))


@contextlib.asynccontextmanager
async def serving(directory: Path, nodes: int) -> AsyncIterator[Served]:
    served = Served(directory, nodes)
    try:
        await served.start()
        yield served
    finally:
        await served.close()


class Speaker(Protocol):
    """One way to put the seed's messages to the broker, as JSON trees."""

    async def ask(self, what: str, message: Tree) -> Tree: ...


class HttpSpeaker:
    """JSON over HTTP."""

    def __init__(self, served: Served) -> None:
        self._served = served

    async def ask(self, what: str, message: Tree) -> Tree:
        return await self._served.post(what.lower(), message)


class GrpcSpeaker:
    """A plain gRPC client with the published messages."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._call = channel.unary_unary(
            "/quorate.cms.Cms/Call",
            request_serializer=cms_pb2.TCmsRequest.SerializeToString,
            response_deserializer=cms_pb2.TCmsResponse.FromString,
        )

    async def ask(self, what: str, message: Tree) -> Tree:
        question = json_format.ParseDict({what: message}, cms_pb2.TCmsRequest())
        answer = await self._call(question, wait_for_ready=True)
        fields = [value for field, value in answer.ListFields() if field.name != "Status"]
        assert len(fields) == 1, answer
        tree: Tree = json_format.MessageToDict(fields[0], preserving_proto_field_name=True)
        return tree

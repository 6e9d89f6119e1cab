"""The product's server on this host, over TLS and with a token, for agents in the machines."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from random import SystemRandom

import yaml

from metal.errors import Failed
from metal.qemu.vm import END_WITH_US
from quorate.engine.clock import SystemClock
from quorate.engine.kubernetes import KubernetesStore, load_connection

#: Where machines on qemu's user network find this host's loopback.
HOST = "10.0.2.2"


class Server:
    """``quorate up --nodes 0``."""

    def __init__(self, directory: Path) -> None:
        self.data = directory / "server"
        self._log = directory / "server.log"
        self._process: asyncio.subprocess.Process | None = None
        self._store: KubernetesStore | None = None
        self._port = 0

    @property
    def store(self) -> KubernetesStore:
        assert self._store is not None
        return self._store

    async def start(self, patience: float) -> None:
        """Serve. Raises Failed."""
        self.data.mkdir(parents=True, mode=0o700)
        token = self.data / "token"
        token.write_text(os.urandom(16).hex())
        token.chmod(0o600)
        self._port = _free_port()
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *END_WITH_US,
                *(sys.executable, "-m", "quorate", "up", "--nodes", "0", "--data", str(self.data)),
                *("--port", str(self._port), "--token-file", str(token)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        kubeconfig = self.data / "kubeconfig"
        for _ in range(int(patience * 10)):
            if self._process.returncode is not None:
                break
            if kubeconfig.exists() and "is ready at" in self._log.read_text():
                clock = SystemClock()
                connection = load_connection(environ={}, clock=clock, kubeconfig=kubeconfig)
                self._store = KubernetesStore(connection, clock=clock, random=SystemRandom())
                return
            await asyncio.sleep(0.1)
        raise Failed(f"quorate up did not become ready: see {self._log}")

    async def agent_kubeconfig(self, node: str) -> str:
        """What the agent of a node is given: its own token, the server's authority, and where it is seen from there."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "quorate", "kubeconfig", "--data", str(self.data), "--agent", node),
            stdout=asyncio.subprocess.PIPE,
        )
        said, _ = await process.communicate()
        found = yaml.safe_load(said)
        cluster = found["clusters"][0]["cluster"]
        cluster["server"] = f"https://{HOST}:{self._port}"
        cluster["tls-server-name"] = "localhost"
        return str(yaml.safe_dump(found))

    async def close(self) -> None:
        """End it."""
        if self._store is not None:
            await self._store.close()
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), 20)
            if self._process.returncode is None:
                self._process.kill()
                await self._process.wait()


def _free_port() -> int:
    """One, and the next one too: the broker's gRPC takes it."""
    while True:
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            port = int(one.getsockname()[1])
            with suppress(OSError):
                other.bind(("127.0.0.1", port + 1))
                return port

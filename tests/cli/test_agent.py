"""``quorate agent`` as a process: it starts, serves its probes, refuses a second one, stops; and what --check says."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from signal import SIGINT, SIGKILL, SIGTERM, Signals

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from quorate.agent.linux import LinuxMachine
from quorate.api import all_kinds, labels, names
from quorate.api.cluster_config import AgentSettings, ClusterConfig, ClusterConfigSpec
from quorate.api.core import Lease, Namespace, Node
from quorate.api.duration import Duration
from quorate.api.meta import NodeName, ObjectMeta
from quorate.config import Config, load
from quorate.engine.clock import SystemClock
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.kubernetes import KubernetesStore, load_connection
from quorate.engine.kubernetes.metrics import ClientMetrics
from quorate.engine.store import Store
from quorate.errors import AlreadyExists, ConfigError, NotFound
from quorate.server.agent import make_machine, parts_of, roots_of
from quorate.server.kubeconfig import kubeconfig, write_kubeconfig
from quorate.server.kubernetes import Access, Facade, listen
from tests.support.apiserver import ApiServer

PATIENCE = 60.0
NODE = NodeName("n1")


@asynccontextmanager
async def api(directory: Path, *, lease: str = "40s", renew: str = "10s") -> AsyncIterator[EmbeddedStore]:
    """A store behind the Kubernetes API, with a kubeconfig in the directory."""
    clock, random = SystemClock(), Random(1)
    store = await EmbeddedStore.open(None, kinds=all_kinds(), clock=clock, random=random)
    facade = Facade(store, kinds=all_kinds(), clock=clock, chance=random, access=Access(), registry=CollectorRegistry())
    timings = AgentSettings(lease_duration=Duration(lease), renew_interval=Duration(renew))
    spec = ClusterConfigSpec(agent=timings)
    await store.create(ClusterConfig(metadata=ObjectMeta(name=names.CLUSTER), spec=spec))
    server = await listen(facade, host="127.0.0.1", port=0)
    write_kubeconfig(directory / "kubeconfig", kubeconfig(server.url))
    try:
        yield store
    finally:
        await server.close()
        await store.close()


def command(directory: Path, *arguments: str, state: str = "state") -> list[str]:
    return [
        *(sys.executable, "-m", "quorate", "agent"),
        *("--kubeconfig", str(directory / "kubeconfig"), "--state-dir", str(directory / state)),
        *("--drbd-config-dir", str(directory / "drbd.d"), "--metrics-port", "0", *arguments),
    ]


async def start(directory: Path, *arguments: str, state: str = "state", stdout: int = DEVNULL) -> Process:
    environment = {key: value for key, value in os.environ.items() if key not in ("KUBECONFIG", "NODE_NAME")}
    return await asyncio.create_subprocess_exec(
        *command(directory, *arguments, state=state), env=environment, stdout=stdout, stderr=PIPE
    )


@asynccontextmanager
async def running(directory: Path, *arguments: str, stop: Signals = SIGTERM) -> AsyncIterator[str]:
    """An agent that stops at the end, and the address of its probes."""
    process = await start(directory, "--node-name", NODE, "--log-level", "error", *arguments, stdout=PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE):
            said = (await process.stdout.readline()).decode()
            port = re.search(r"port (\d+)$", said.strip())
            assert port is not None, said
            yield f"http://127.0.0.1:{port[1]}"
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(stop)
        async with asyncio.timeout(PATIENCE):
            _, complaints = await process.communicate()
    if stop is not SIGKILL:
        assert process.returncode == 0, complaints.decode()


async def refused(directory: Path, *arguments: str, state: str = "state") -> tuple[int | None, str]:
    process = await start(directory, "--log-level", "error", *arguments, state=state)
    async with asyncio.timeout(PATIENCE):
        _, complaints = await process.communicate()
    assert "Traceback" not in complaints.decode()
    return process.returncode, complaints.decode()


async def holder(store: Store) -> str | None:
    try:
        return (await store.get(Lease, names.agent_lease(NODE), names.NAMESPACE)).spec.holder_identity
    except NotFound:
        return None


async def taken(store: Store, *, not_by: str | None = None) -> str:
    async with asyncio.timeout(PATIENCE):
        while (found := await holder(store)) in (None, not_by):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert found is not None
    return found


@pytest.mark.parametrize("stop", [SIGTERM, SIGINT])
async def test_an_agent_takes_its_node_and_gives_it_back_when_stopped(tmp_path: Path, stop: Signals) -> None:
    async with api(tmp_path) as store:
        async with running(tmp_path, stop=stop):
            await taken(store)
            assert (tmp_path / "drbd.d").is_dir()
        assert await holder(store) is None


async def test_probes_and_metrics_are_served(tmp_path: Path) -> None:
    async with api(tmp_path) as store, running(tmp_path) as url, aiohttp.ClientSession(url) as http:
        await taken(store)
        async with asyncio.timeout(PATIENCE):
            while (await http.get("/readyz")).status != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert await (await http.get("/healthz")).text() == "ok"
        assert "check passed" in await (await http.get("/livez?verbose")).text()
        metrics = await (await http.get("/metrics")).text()
        assert re.search(r'rest_client_requests_total\{code="200",host="127.0.0.1:\d+",method="GET"\} [1-9]', metrics)
        assert "controller_runtime_reconcile_total" in metrics


async def test_a_second_agent_on_the_machine_is_refused_with_its_own_exit_code(tmp_path: Path) -> None:
    async with api(tmp_path) as store, running(tmp_path):
        await taken(store)
        code, said = await refused(tmp_path, "--node-name", NODE)
        assert code == 9
        assert "is an agent on this machine" in said


async def test_an_agent_of_another_place_is_refused_when_it_sees_the_first_one_live(tmp_path: Path) -> None:
    async with api(tmp_path, renew="1s") as store, running(tmp_path):
        first = await taken(store)
        code, said = await refused(tmp_path, "--node-name", NODE, state="other")
        assert code == 9
        assert f"{first} is an agent of node n1 and lives" in said
        assert await holder(store) == first


async def test_the_successor_of_a_killed_agent_need_not_wait(tmp_path: Path) -> None:
    async with api(tmp_path, lease="1h") as store:
        async with running(tmp_path, stop=SIGKILL):
            first = await taken(store)
        assert await holder(store) == first
        async with running(tmp_path):
            await taken(store, not_by=first)


async def test_an_agent_that_loses_its_node_says_so_and_ends(tmp_path: Path) -> None:
    async with api(tmp_path, renew="1s") as store:
        process = await start(tmp_path, "--node-name", NODE, "--log-level", "error")
        await taken(store)
        thief = {"spec": {"holderIdentity": "thief_1"}}
        await store.patch(Lease, names.agent_lease(NODE), names.NAMESPACE, patch=thief)
        async with asyncio.timeout(PATIENCE):
            _, said = await process.communicate()
        assert process.returncode == 9
        assert "was taken from us by thief_1" in said.decode()


async def test_an_agent_registers_its_node_where_there_is_no_kubelet(tmp_path: Path) -> None:
    address = own_address()
    async with api(tmp_path) as store, running(tmp_path, "--register-node", "--zone", "z1", "--address", address):
        async with asyncio.timeout(PATIENCE):
            node = None
            while node is None or not node.status.addresses:
                await asyncio.sleep(0.02)
                with suppress(NotFound):
                    node = await store.get(Node, NODE)
        assert node.metadata.labels[labels.ZONE] == "z1"
        assert address in [one.address for one in node.status.addresses]


def own_address() -> str:
    """An address of this machine that is not loopback; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has loopback only")
        return str(probe.getsockname()[0])


@pytest.mark.apiserver
async def test_an_agent_works_on_a_real_api_server(apiserver: ApiServer, tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_bytes(apiserver.kubeconfig.read_bytes())
    apiserver.install_crds(kind for kind in all_kinds() if kind.crd)
    clock = SystemClock()
    connection = load_connection(environ={}, clock=clock, kubeconfig=apiserver.kubeconfig)
    store = KubernetesStore(connection, clock=clock, random=Random(1))
    try:
        with suppress(AlreadyExists):
            await store.create(Namespace(metadata=ObjectMeta(name=names.NAMESPACE)))
        async with running(tmp_path):
            await taken(store)
        assert await holder(store) is None
    finally:
        await store.close()


# What cannot start.


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        ((), 3, "give --node-name, or set NODE_NAME"),
        (("--node-name", "n1", "--kubeconfig", "/nowhere"), 3, "/nowhere: there is no such file"),
        (("--node-name", "n1", "--host-prefix", "nsenter '"), 3, "cannot be split into words"),
        (("--node-name", "n1", "--host-prefix", "no-such-program"), 3, "no command can be run"),
        (("--node-name", "n1", "--host-prefix", "false"), 3, "hostPrefix 'false' does not work"),
        (("--node-name", "n1", "--sys", "relative"), 3, "'relative' cannot be used as a path"),
        (("--node-name", "n1", "--register-node", "--address", "192.0.2.1"), 3, "no address of this machine"),
        (("--node-name", "n1", "--metrics-listen", "192.0.2.1"), 7, "cannot listen on 192.0.2.1"),
        (("--node-name", "n1", "--metrics-port", "many"), 2, "'many' is not a valid integer"),
    ],
)
async def test_an_agent_that_cannot_start_says_why(
    tmp_path: Path, arguments: tuple[str, ...], code: int, problem: str
) -> None:
    async with api(tmp_path):
        found, said = await refused(tmp_path, *arguments)
    assert (found, problem in said) == (code, True), said


# Settings.


def test_roots_and_prefix_come_from_the_settings() -> None:
    config = Config(host_root="/host", sys="/host-sys", host_prefix="nsenter -t 1 -m --")
    roots = roots_of(config)
    assert roots.locate("/etc/machine-id") == "/host/etc/machine-id"
    assert roots.locate("/sys/block") == "/host-sys/block"
    assert roots.locate("/proc/crypto") == "/host/proc/crypto"
    assert roots_of(Config()).locate("/proc/crypto") == "/proc/crypto"
    assert isinstance(make_machine(config), LinuxMachine)


def test_the_settings_of_an_agent_come_in_layers_like_all_others() -> None:
    loaded = load(None, {"QUORATE_NODE_NAME": "a", "QUORATE_REGISTER_NODE": "true"}, {"zone": "z"})
    assert (loaded.config.node_name, loaded.config.register_node, loaded.config.zone) == ("a", True, "z")
    assert loaded.origins["registerNode"] == "environment variable QUORATE_REGISTER_NODE"


async def test_a_node_is_registered_only_where_that_is_asked_for() -> None:
    machine = LinuxMachine()
    plain = await parts_of(Config(node_name="n1"), machine)
    registering = await parts_of(Config(node_name="n1", register_node=True, address="127.0.0.1"), machine)
    assert len(registering) == len(plain) + 1
    with pytest.raises(ConfigError, match="stands for nothing, which is no address of this machine"):
        await parts_of(Config(node_name="no-such-host.invalid", register_node=True), machine)


def test_requests_are_counted_under_client_gos_names() -> None:
    registry = CollectorRegistry()
    count = ClientMetrics(registry)
    count("GET", "10.0.0.1:6443", "200", 0.01)
    count("GET", "10.0.0.1:6443", "<error>", 3.0)
    shown = generate_latest(registry).decode()
    assert 'rest_client_requests_total{code="200",host="10.0.0.1:6443",method="GET"} 1.0' in shown
    assert 'rest_client_requests_total{code="<error>",host="10.0.0.1:6443",method="GET"} 1.0' in shown
    assert 'rest_client_request_duration_seconds_count{host="10.0.0.1:6443",verb="GET"} 2.0' in shown


# The check.


async def test_a_check_tells_the_truth_about_this_machine(tmp_path: Path) -> None:
    async with api(tmp_path):
        process = await start(tmp_path, "--node-name", NODE, "--check", "-o", "json", stdout=PIPE)
        async with asyncio.timeout(PATIENCE):
            said, complaints = await process.communicate()
    items = {item["name"]: item for item in json.loads(said)}
    assert items["root"]["state"] == ("ok" if os.getuid() == 0 else "wrong")
    assert items["API server"]["state"] == items["permissions"]["state"] == "ok"
    assert (items["DRBD module"]["state"] == "ok") == has_drbd_module()
    required = [item for item in items.values() if item["required"]]
    assert process.returncode == (0 if all(item["state"] == "ok" for item in required) else 1)
    assert complaints == b""
    assert not (tmp_path / "drbd.d").exists()
    assert not (tmp_path / "state").exists()


def has_drbd_module() -> bool:
    """Asked of the kernel in another way than the check does."""
    if Path("/sys/module/drbd/version").exists():
        return Path("/sys/module/drbd/version").read_text().startswith("9.")
    release = os.uname().release
    return any(Path(f"/lib/modules/{release}").glob("**/drbd.ko*"))


async def test_a_check_that_is_not_on_a_terminal_fits_into_a_mail(tmp_path: Path) -> None:
    process = await start(tmp_path, "--node-name", NODE, "--check", "--kubeconfig", "", stdout=PIPE)
    async with asyncio.timeout(PATIENCE):
        said, _ = await process.communicate()
    lines = said.decode().splitlines()
    assert any(line.startswith("DRBD module: ") for line in lines)
    assert max(map(len, lines)) <= 100
    assert not any("API server" in line for line in lines)
    missing = [number for number, line in enumerate(lines) if ": missing: " in line or ": wrong: " in line]
    assert all(any("how to mend it" in line for line in lines[at : at + 8]) for at in missing)

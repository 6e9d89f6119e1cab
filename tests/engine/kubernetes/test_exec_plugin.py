"""Credentials from a command."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from quorate.api.secret import Secret
from quorate.engine.kubernetes import Connection, load_connection
from quorate.engine.kubernetes.credentials import Identity
from quorate.engine.kubernetes.exec_plugin import ExecCommand, ExecCredentials
from quorate.engine.kubernetes.kubeconfig_file import read_merged
from quorate.engine.kubernetes.tls import ClientCertificate
from quorate.errors import ConfigError, StoreUnreachable
from tests.engine.kubernetes.manual_clock import ManualClock
from tests.support.certificates import Authority

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


class Plugin:
    """A shell script that counts its runs and prints what the test wants."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.script = directory / "plugin"
        self.answer = directory / "answer"
        self.does("cat answer")

    def does(self, commands: str) -> None:
        preamble = f'#!/bin/sh\ncd "{self.directory}"\necho run >>runs\nprintf "%s" "$KUBERNETES_EXEC_INFO" >info\n'
        self.script.write_text(f"{preamble}{commands}\n")
        self.script.chmod(self.script.stat().st_mode | stat.S_IXUSR)

    def answers(self, version: str = V1, kind: str = "ExecCredential", **status: str) -> None:
        self.answer.write_text(json.dumps({"apiVersion": version, "kind": kind, "status": status}))

    @property
    def runs(self) -> int:
        runs = self.directory / "runs"
        return len(runs.read_text().splitlines()) if runs.exists() else 0

    @property
    def info(self) -> Any:
        return json.loads((self.directory / "info").read_text())


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


def load(plugin: Plugin, clock: ManualClock, cluster: Any = None, **exec_fields: Any) -> Connection:
    exec_config = {"apiVersion": V1, "interactiveMode": "Never", "command": "./plugin", **exec_fields}
    content = {
        "current-context": "x",
        "clusters": [{"name": "x", "cluster": {"server": "https://api.test", **(cluster or {})}}],
        "users": [{"name": "x", "user": {"exec": exec_config}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    }
    file = plugin.directory / "config"
    file.write_text(json.dumps(content))
    return load_connection(environ=os.environ, clock=clock, kubeconfig=file)


@pytest.mark.parametrize("version", [V1, V1BETA1])
async def test_a_token_is_kept_until_it_expires(plugin: Plugin, version: str) -> None:
    clock = ManualClock()
    credentials = load(plugin, clock, apiVersion=version).credentials
    plugin.answers(version, token="first", expirationTimestamp="2026-11-16T12:10:00Z")
    first = await credentials.identity()
    assert first == Identity(Secret("first"))
    plugin.answers(version, token="second")
    clock.advance(599)
    assert await credentials.identity() is first
    clock.advance(1)
    assert await credentials.identity() == Identity(Secret("second"))
    clock.advance(1e6)
    assert await credentials.identity() == Identity(Secret("second")), "without an expiry it is good until refused"
    assert plugin.runs == 2


async def test_a_refused_token_is_asked_for_anew_once_for_all(plugin: Plugin) -> None:
    credentials = load(plugin, ManualClock()).credentials
    plugin.answers(token="first")
    first = await credentials.identity()
    plugin.answers(token="second")
    renewed = await asyncio.gather(*(credentials.renew(first) for _ in range(5)))
    assert renewed == [Identity(Secret("second"))] * 5
    assert await credentials.renew(first) is renewed[0], "that one was replaced already"
    assert plugin.runs == 2


async def test_a_client_certificate_can_be_the_credential(plugin: Plugin) -> None:
    pair = Authority(plugin.directory).client("me")
    plugin.answers(clientCertificateData=pair.certificate.read_text(), clientKeyData=pair.key.read_text())
    identity = await load(plugin, ManualClock()).credentials.identity()
    assert identity.token is None
    assert identity.certificate == ClientCertificate(pair.certificate.read_bytes(), Secret(pair.key.read_text()))


async def test_a_client_certificate_with_the_key_of_another_is_not(plugin: Plugin) -> None:
    authority = Authority(plugin.directory)
    pair, other = authority.client("me"), authority.client("other")
    plugin.answers(clientCertificateData=pair.certificate.read_text(), clientKeyData=other.key.read_text())
    with pytest.raises(ConfigError, match="cannot be used together"):
        await load(plugin, ManualClock()).credentials.identity()


async def test_the_plugin_gets_its_arguments_variables_and_the_cluster_if_it_asks(plugin: Plugin) -> None:
    plugin.does('printf "%s %s" "$1" "$COLOUR" >seen; cat answer')
    plugin.answers(token="t")
    cluster = {
        "certificate-authority-data": "UEVN",
        "tls-server-name": "inner",
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "me"}}],
    }
    exec_fields = {"args": ["hello"], "env": [{"name": "COLOUR", "value": "red"}], "provideClusterInfo": True}
    await load(plugin, ManualClock(), cluster, **exec_fields).credentials.identity()
    assert (plugin.directory / "seen").read_text() == "hello red"
    assert plugin.info == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "https://api.test",
                "certificate-authority-data": "UEVN",
                "tls-server-name": "inner",
                "config": {"audience": "me"},
            },
        },
    }


async def test_the_plugin_is_told_nothing_of_the_cluster_unless_it_asks(plugin: Plugin) -> None:
    plugin.answers(token="t")
    await load(plugin, ManualClock()).credentials.identity()
    assert plugin.info["spec"] == {"interactive": False}


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("no json", "no ExecCredential"),
        ('{"apiVersion": 1}', "no ExecCredential"),
        (json.dumps({"apiVersion": V1BETA1, "kind": "ExecCredential"}), "v1beta1 ExecCredential', not"),
        (json.dumps({"apiVersion": V1, "kind": "Secret"}), "Secret"),
        (json.dumps({"apiVersion": V1, "kind": "ExecCredential"}), "without a status"),
        (json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {}}), "neither a token nor"),
        (
            json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {"clientKeyData": "hunter2"}}),
            "only one of clientCertificateData and clientKeyData",
        ),
    ],
)
async def test_an_answer_that_is_no_credential_is_a_configuration_error(
    plugin: Plugin, answer: str, problem: str
) -> None:
    plugin.answer.write_text(answer)
    with pytest.raises(ConfigError) as caught:
        await load(plugin, ManualClock()).credentials.identity()
    for part in (str(plugin.directory / "config"), "user 'x'", "plugin'", problem):
        assert part in str(caught.value)
    assert "hunter2" not in str(caught.value)


async def test_a_missing_plugin_is_reported_with_the_hint_how_to_install_it(plugin: Plugin) -> None:
    credentials = load(plugin, ManualClock(), command="no-such-plugin", installHint="Get it\nfrom there.").credentials
    with pytest.raises(ConfigError, match=r"No such file or directory\nGet it\nfrom there\."):
        await credentials.identity()


async def test_a_failing_plugin_says_why_and_is_tried_again(plugin: Plugin) -> None:
    credentials = load(plugin, ManualClock()).credentials
    plugin.does("echo you must log in >&2; exit 3")
    with pytest.raises(StoreUnreachable, match="exited with 3: you must log in"):
        await credentials.identity()
    plugin.does("cat answer")
    plugin.answers(token="t")
    assert await credentials.identity() == Identity(Secret("t"))


async def test_once_it_has_worked_a_broken_plugin_is_a_problem_that_passes(plugin: Plugin) -> None:
    credentials = load(plugin, ManualClock()).credentials
    plugin.answers(token="first")
    first = await credentials.identity()
    plugin.answer.write_text("nonsense, for once")
    with pytest.raises(StoreUnreachable, match="no ExecCredential") as caught:
        await credentials.renew(first)
    assert isinstance(caught.value.__cause__, ConfigError)
    plugin.script.chmod(0)
    plugin.script.unlink()
    with pytest.raises(StoreUnreachable, match="cannot be run"):
        await credentials.renew(first)
    plugin.does("cat answer")
    plugin.answers(token="second")
    assert await credentials.renew(first) == Identity(Secret("second"))


def test_no_secret_of_a_command_shows_in_its_representation(plugin: Plugin) -> None:
    exec_fields = {
        "args": ["--password=hunter2"],
        "env": [{"name": "PASSWORD", "value": "hunter2"}],
        "provideClusterInfo": True,
    }
    cluster = {"proxy-url": "http://me:hunter2@proxy", "extensions": [{"name": "x", "extension": "hunter2"}]}
    connection = load(plugin, ManualClock(), cluster, **exec_fields)
    assert "hunter2" not in repr(connection)
    assert "hunter2" not in repr(vars(connection.credentials))
    merged = read_merged([plugin.directory / "config"])
    assert "hunter2" not in repr(merged)
    for value in (merged.clusters["x"].value, merged.users["x"].value):
        assert "hunter2" not in str(value.__rich_repr__())


def command(plugin: Plugin) -> ExecCommand:
    return ExecCommand(
        origin="test",
        api_version=V1,
        command=str(plugin.script),
        arguments=(),
        environment=os.environ,
        install_hint="",
        interactive=False,
    )


def ends(plugin: Plugin, *, within: float) -> bool:
    """Whether what the plugin started has ended, or does so in time."""
    try:
        process = os.pidfd_open(int((plugin.directory / "child").read_text()))
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], within)[0])
    finally:
        os.close(process)


async def test_a_hanging_plugin_is_ended_together_with_what_it_started(plugin: Plugin) -> None:
    plugin.does("sleep 1000 & echo $! >child; wait")
    credentials = ExecCredentials(command(plugin), clock=ManualClock(), timeout=0.2)
    with pytest.raises(StoreUnreachable, match=r"did not finish within 0\.2 s"):
        await credentials.identity()
    assert ends(plugin, within=10)


async def test_what_a_plugin_leaves_behind_on_its_output_is_ended_in_time(plugin: Plugin) -> None:
    plugin.does("sleep 1000 & echo $! >child; cat answer")
    plugin.answers(token="t")
    credentials = ExecCredentials(command(plugin), clock=ManualClock(), timeout=0.2)
    with pytest.raises(StoreUnreachable, match=r"did not finish within 0\.2 s"):
        await credentials.identity()
    assert ends(plugin, within=10)


async def test_what_has_left_the_plugins_session_cannot_hold_us_up_either(plugin: Plugin) -> None:
    plugin.does("setsid sleep 1000 & echo $! >child; cat answer")
    plugin.answers(token="t")
    credentials = ExecCredentials(command(plugin), clock=ManualClock(), timeout=0.2)
    try:
        async with asyncio.timeout(10):
            with pytest.raises(StoreUnreachable, match=r"did not finish within 0\.2 s"):
                await credentials.identity()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int((plugin.directory / "child").read_text()), signal.SIGKILL)


async def test_what_a_plugin_leaves_behind_on_purpose_is_left_alone(plugin: Plugin) -> None:
    plugin.does("sleep 1000 >/dev/null 2>&1 & echo $! >child; cat answer")
    plugin.answers(token="t")
    try:
        assert await ExecCredentials(command(plugin), clock=ManualClock()).identity() == Identity(Secret("t"))
        assert not ends(plugin, within=0)
    finally:
        os.kill(int((plugin.directory / "child").read_text()), signal.SIGKILL)


async def test_a_request_that_gives_up_does_not_cut_the_plugin_short(plugin: Plugin) -> None:
    plugin.does("while [ ! -e go ]; do sleep 0.01; done; cat answer")
    plugin.answers(token="slow")
    credentials = ExecCredentials(command(plugin), clock=ManualClock())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await credentials.identity()
    (plugin.directory / "go").touch()
    assert await credentials.identity() == Identity(Secret("slow"))
    assert plugin.runs == 1


async def test_a_run_that_fails_with_nobody_waiting_leaves_no_trace(plugin: Plugin) -> None:
    plugin.does("while [ ! -e go ]; do sleep 0.01; done; exit 1")
    credentials = ExecCredentials(command(plugin), clock=ManualClock())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await credentials.identity()
    (plugin.directory / "go").touch()
    with pytest.raises(StoreUnreachable):
        await credentials.identity()

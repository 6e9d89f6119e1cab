"""Credentials from a command."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from quorate.api.secret import Secret
from quorate.engine.kubernetes import Connection, load_connection
from quorate.engine.kubernetes.credentials import Identity
from quorate.engine.kubernetes.exec_plugin import ExecCommand, ExecCredentials
from quorate.errors import ConfigError, StoreUnreachable
from tests.engine.kubernetes.manual_clock import ManualClock

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
    plugin.answers(clientCertificateData="PEM", clientKeyData="KEY")
    identity = await load(plugin, ManualClock()).credentials.identity()
    assert identity.token is None
    assert identity.certificate is not None
    assert identity.certificate.certificate == b"PEM"
    assert identity.certificate.key.reveal() == "KEY"


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


async def test_a_hanging_plugin_is_ended_together_with_what_it_started(plugin: Plugin) -> None:
    plugin.does("sleep 1000 & echo $! >child; wait")
    credentials = ExecCredentials(command(plugin), clock=ManualClock(), timeout=0.2)
    with pytest.raises(StoreUnreachable, match=r"did not finish within 0\.2 s"):
        await credentials.identity()
    child = Path("/proc") / (plugin.directory / "child").read_text().strip() / "stat"
    assert not child.exists() or child.read_text().split()[2] == "Z"


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

"""The manifests of the agent fit the agent: its settings, its probes, its name, the time it takes to stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from quorate.agent.hands import GRACE as HANDS_GRACE
from quorate.agent.lease import REQUEST_TIMEOUT
from quorate.agent.own_objects import LABELLED
from quorate.api import longhorn
from quorate.api.cluster_config import ClusterConfig
from quorate.api.core import Event, Lease, Node
from quorate.api.meta import Resource
from quorate.api.names import NAMESPACE
from quorate.api.storage import ReplicatedVolume
from quorate.config import Config, load
from quorate.engine.manager import GRACE as MANAGER_GRACE
from quorate.server.agent import make_machine, roots_of

DEPLOY = Path(__file__).parents[2] / "deploy"


def documents(path: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / path).read_text()))


@pytest.fixture(scope="module")
def pod() -> dict[str, Any]:
    (daemon_set,) = documents("agent/daemonset.yaml")
    assert daemon_set["metadata"]["namespace"] == NAMESPACE
    found: dict[str, Any] = daemon_set["spec"]["template"]["spec"]
    return found


@pytest.fixture(scope="module")
def config(pod: dict[str, Any]) -> Config:
    given = {entry["name"]: entry.get("value", "n1") for entry in pod["containers"][0]["env"]}
    loaded = load(None, given, {})
    for name in given:
        if name.startswith("QUORATE_"):
            assert f"environment variable {name}" in loaded.origins.values(), f"{name} is no setting"
    return loaded.config


def test_its_files_are_where_the_hosts_commands_find_them(pod: dict[str, Any], config: Config) -> None:
    """A command that runs on the host is given a path that the agent has written to."""
    mounts = {mount["mountPath"]: mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
    hosts = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"]}
    make_machine(config)
    roots = roots_of(config)
    for path in (
        config.drbd_config_dir,
        config.image_dir,
        config.state_dir,
        "/sys/module/drbd",
        "/proc/crypto",
        "/etc/machine-id",
    ):
        place = roots.locate(path)
        (mount,) = [one for one in mounts if place == one or place.startswith(f"{one}/")]
        assert hosts[mounts[mount]] + place.removeprefix(mount) == path


def test_its_metrics_are_not_for_the_whole_network(config: Config) -> None:
    assert Config().metrics_listen == "127.0.0.1"
    assert config.metrics_listen == "127.0.0.1"


def test_its_probes_ask_where_it_answers(pod: dict[str, Any], config: Config) -> None:
    (container,) = pod["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert ports[asked["port"]] == config.metrics_port
        assert asked["path"] in ("/healthz", "/readyz")
    assert not 7000 <= config.metrics_port <= 7999


def test_it_is_given_the_time_that_a_stop_may_take(pod: dict[str, Any]) -> None:
    longest = MANAGER_GRACE + 2 * REQUEST_TIMEOUT + HANDS_GRACE + 2 * REQUEST_TIMEOUT
    assert pod["terminationGracePeriodSeconds"] > longest


def test_it_can_reach_the_host(pod: dict[str, Any], config: Config) -> None:
    assert config.host_prefix.startswith("nsenter -t 1 ")
    assert pod["hostPID"]
    assert pod["hostNetwork"]
    assert pod["containers"][0]["securityContext"]["privileged"]


def test_its_role_lets_it_read_what_it_watches_and_no_volume_and_delete_nothing() -> None:
    (role,) = [one for one in documents("admission/agent-role.yaml") if one["kind"] == "ClusterRole"]
    may: dict[str, set[str]] = {}
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                may.setdefault(f"{resource}.{group}".rstrip("."), set()).update(rule["verbs"])
    assert not [resource for resource in may if "*" in resource]
    assert not [resource for resource, verbs in may.items() if verbs & {"delete", "deletecollection", "update", "*"}]
    read = {resource for resource, verbs in may.items() if {"get", "list", "watch"} <= verbs}
    watched: tuple[type[Resource], ...] = (*LABELLED, ClusterConfig, Node, longhorn.Node, Lease, Event)
    needed = {cls.KIND.qualified_resource for cls in watched}
    assert read == needed
    for cls in LABELLED:
        kind = cls.KIND
        assert "patch" in may[f"{kind.plural}.{kind.group}"] & may[f"{kind.plural}/status.{kind.group}"]
    assert may["nodes/status.longhorn.io"] == {"patch"}
    assert ReplicatedVolume.KIND.qualified_resource not in may


def test_its_service_account_is_the_one_that_may(pod: dict[str, Any]) -> None:
    accounts = [one for one in documents("agent/service-account.yaml") if one["kind"] == "ServiceAccount"]
    (account,) = accounts
    assert pod["serviceAccountName"] == account["metadata"]["name"]
    bindings = [one for one in documents("admission/agent-role.yaml") if one["kind"] == "ClusterRoleBinding"]
    subjects = [(one.get("namespace"), one["name"]) for binding in bindings for one in binding["subjects"]]
    assert (account["metadata"]["namespace"], account["metadata"]["name"]) in subjects

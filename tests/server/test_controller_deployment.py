"""The manifests of the controller fit the controller: its settings, its probes, what it writes, how long it stops."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from quorate.api.names import NAMESPACE
from quorate.config import Config, load
from quorate.engine import Controller
from quorate.engine.clock import SystemClock
from quorate.engine.manager import GRACE
from quorate.engine.store import Store
from quorate.engine.writer import REQUEST_TIMEOUT
from quorate.locks import LockTable
from quorate.maintenance.live import LiveBroker
from quorate.server.controllers import cluster_wide
from quorate.volumes.volume.shared_secrets import KEPT, SELECTION

DIRECTORY = Path(__file__).parents[2] / "deploy" / "controller"


def documents(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DIRECTORY / file).read_text()))


@pytest.fixture(scope="module")
def pod() -> dict[str, Any]:
    (deployment,) = documents("deployment.yaml")
    assert deployment["metadata"]["namespace"] == NAMESPACE
    template = deployment["spec"]["template"]
    assert deployment["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    found: dict[str, Any] = template["spec"]
    return found


@pytest.fixture(scope="module")
def config(pod: dict[str, Any]) -> Config:
    given = {entry["name"]: entry["value"] for entry in pod["containers"][0]["env"]}
    loaded = load(None, given, {})
    for name in given:
        assert f"environment variable {name}" in loaded.origins.values(), f"{name} is no setting"
    return loaded.config


def _the_brokers() -> tuple[Controller[Any], ...]:
    store = cast("Store", None)  # nothing runs
    return LiveBroker(store, SystemClock(), LockTable(), holder="nobody").controllers()


def test_the_broker_listens_on_the_pods_loopback_where_the_service_finds_it(
    pod: dict[str, Any], config: Config
) -> None:
    ports = {port["name"]: port["containerPort"] for port in pod["containers"][0]["ports"]}
    for name, address in (("broker-http", config.broker_http), ("broker-grpc", config.broker_grpc)):
        host, _, port = address.rpartition(":")
        assert host == "127.0.0.1", "it is open there, so it must not be reached from elsewhere"
        assert ports[name] == int(port)
    (service,) = documents("service.yaml")
    assert {port["targetPort"] for port in service["spec"]["ports"]} == set(ports)


def test_its_probes_ask_where_it_answers(pod: dict[str, Any], config: Config) -> None:
    (container,) = pod["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert ports[asked["port"]] == config.metrics_port
        assert asked["path"] in ("/healthz", "/readyz")


def test_it_is_given_the_time_that_a_stop_may_take(pod: dict[str, Any]) -> None:
    assert pod["terminationGracePeriodSeconds"] > GRACE + 2 * REQUEST_TIMEOUT


def test_it_may_read_every_kind_that_a_controller_watches(pod: dict[str, Any]) -> None:
    account, role, in_our_namespace, its_binding, binding = documents("role.yaml")
    for bound in (its_binding, binding):
        assert pod["serviceAccountName"] == account["metadata"]["name"] == bound["subjects"][0]["name"]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert its_binding["roleRef"]["name"] == in_our_namespace["metadata"]["name"]
    # Of Secrets and who may read them only those of one namespace are watched.
    assert in_our_namespace["metadata"]["namespace"] == its_binding["metadata"]["namespace"] == SELECTION.namespace
    assert {cls.KIND.plural for cls in KEPT} == {
        each for rule in in_our_namespace["rules"] for each in rule["resources"]
    }
    readable = {
        (group, resource)
        for rule in (*role["rules"], *in_our_namespace["rules"])
        if {"get", "list", "watch"} <= set(rule["verbs"])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    for controller in (*cluster_wide(), *_the_brokers()):
        for cls in (*(watch.cls for watch in controller.watches), *controller.freshness):
            kind = cls.KIND
            known = {(kind.group, kind.plural), (kind.group, "*")}
            assert known & readable, f"{controller.name} watches {kind.qualified_resource}"

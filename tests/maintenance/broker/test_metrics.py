"""The broker's numbers, as Prometheus reads them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from quorate.api.maintenance.action import HostState
from quorate.maintenance.broker.metrics import BrokerMetrics
from tests.maintenance.broker.desk import Desk


async def test_what_is_asked_granted_and_refused_is_counted_by_reason() -> None:
    registry = CollectorRegistry()
    desk = await Desk.open(metrics=BrokerMetrics(registry))

    def read(name: str, **labels: str) -> float:
        return registry.get_sample_value(f"quorate_broker_{name}", labels) or 0.0

    await desk.ask("h1")
    await desk.ask("h2", user="bob", schedule=True)
    await desk.ask("nowhere")
    desk.clock.advance(30)
    assert read("grants_total") == 1
    assert read("refusals_total", reason="TOO_MANY_UNAVAILABLE_VDISKS") == 1
    assert read("refusals_total", reason="GENERIC") == 1
    assert read("answers_total", question="permission_request", code="ALLOW") == 1
    assert read("answers_total", question="permission_request", code="DISALLOW_TEMP") == 1
    assert (read("permissions"), read("stored_requests"), read("oldest_lock_age_seconds")) == (1, 1, 30)
    desk.put(1, HostState.DOWN)
    desk.clock.advance(3600)
    assert read("oldest_lock_age_seconds") == 3630
    await desk.done("alice-p-1")
    assert (read("permissions"), read("oldest_lock_age_seconds")) == (0, 0)
    await desk.broker.close()


async def test_a_grant_that_was_not_written_is_not_counted() -> None:
    registry = CollectorRegistry()
    desk = await Desk.open(metrics=BrokerMetrics(registry))
    other = await desk.again(holder="two")
    await desk.ask("h1")
    assert registry.get_sample_value("quorate_broker_grants_total") == 0
    await other.broker.close()
    await desk.broker.close()

"""The broker's numbers for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from quorate.api.maintenance.action import IssueType, StatusCode


class BrokerMetrics:
    """Implements :class:`quorate.maintenance.broker.ports.Metrics`. Children are looked up once and kept."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._answers = Counter(
            "quorate_broker_answers_total",
            "Questions, and how they were answered",
            ("question", "code"),
            registry=registry,
        )
        refusals = Counter(
            "quorate_broker_refusals_total", "Actions that were not granted", ("reason",), registry=registry
        )
        self._refusals = {reason: refusals.labels(reason) for reason in IssueType}
        self._grants = Counter("quorate_broker_grants_total", "Permissions given", registry=registry)
        self._jumped = Gauge(
            "quorate_broker_clock_jumped",
            "1 while the wall clock is not believed and decisions wait",
            registry=registry,
        )
        self._oldest = Gauge(
            "quorate_broker_oldest_lock_age_seconds",
            "Since the oldest permission in force was given",
            registry=registry,
        )
        self._held = Gauge("quorate_broker_permissions", "Permissions in force", registry=registry)
        self._stored = Gauge("quorate_broker_stored_requests", "Requests that wait", registry=registry)
        self._known: dict[tuple[str, StatusCode], Counter] = {}

    def answered(self, question: str, code: StatusCode) -> None:
        known = self._known.get((question, code))
        if known is None:
            known = self._known[question, code] = self._answers.labels(question, code)
        known.inc()

    def refused(self, reason: IssueType) -> None:
        self._refusals[reason].inc()

    def granted(self, permissions: int) -> None:
        self._grants.inc(permissions)

    def clock_jumped(self, jumped: bool) -> None:
        self._jumped.set(jumped)

    def watch(self, *, oldest_lock: Callable[[], float], held: Callable[[], int], stored: Callable[[], int]) -> None:
        self._oldest.set_function(oldest_lock)
        self._held.set_function(held)
        self._stored.set_function(stored)

"""How many requests, and how long they took, under the API server's own metric names."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class RequestMetrics:
    """Counts answered requests. Watches are counted, not timed: their length says nothing."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._total = Counter(
            "apiserver_request_total", "Requests answered", ("verb", "group", "resource", "code"), registry=registry
        )
        self._seconds = Histogram(
            "apiserver_request_duration_seconds",
            "From the request to its answer",
            ("verb", "group", "resource"),
            registry=registry,
            buckets=_SECONDS,
        )

    def answered(self, verb: str, group: str, resource: str, code: int, seconds: float | None) -> None:
        """A request was answered; ``seconds`` is None for a watch."""
        self._total.labels(verb, group, resource, str(code)).inc()
        if seconds is not None:
            self._seconds.labels(verb, group, resource).observe(seconds)

"""What we ask of an API server, under client-go's metric names."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


class ClientMetrics:
    """Implements :data:`quorate.engine.kubernetes.Observer`: give an instance to the store as ``observe``."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._total = Counter(
            "rest_client_requests_total", "Requests to the API server", ("code", "method", "host"), registry=registry
        )
        self._seconds = Histogram(
            "rest_client_request_duration_seconds",
            "From the request to its answer; of a watch, to the beginning of that",
            ("verb", "host"),
            registry=registry,
            buckets=_SECONDS,
        )

    def __call__(self, method: str, host: str, code: str, seconds: float) -> None:
        """A request was answered, or came to nothing (``<error>``)."""
        self._total.labels(code, method, host).inc()
        self._seconds.labels(method, host).observe(seconds)

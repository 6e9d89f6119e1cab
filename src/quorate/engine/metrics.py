"""Numbers for Prometheus, under controller-runtime's names where it has them, so that its dashboards work here too.

Looking up a labelled child costs four times as much as counting on it, so everything below is bound once, to a
controller or a kind, and counted on directly afterwards. What is counted on every pass is a tally (``engine.tallies``).
Levels (depth, age, running time) are computed when somebody scrapes them and cost nothing otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge

from quorate.engine.queue import FRESH, RESYNC, KeyQueue
from quorate.engine.tallies import CounterFamily, HistogramFamily

if TYPE_CHECKING:
    from quorate.engine.clock import Clock

_QUEUE_SECONDS = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0)
_PASS_SECONDS = (1e-4, 1e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

#: What a pass can come to, as controller-runtime names it; ``conflict`` is ours: somebody wrote first, we look again.
RESULTS = ("success", "requeue_after", "requeue", "conflict", "error")


class EngineMetrics:
    """Every metric of the engine, in a registry of the caller's."""

    def __init__(self, registry: CollectorRegistry, clock: Clock) -> None:
        self.registry = registry
        self._clock = clock

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(name, text, labels, registry=registry)

        def tallied(name: str, text: str, *labels: str) -> CounterFamily:
            family = CounterFamily(name, text, labels)
            registry.register(family)
            return family

        def histogram(
            name: str, text: str, bounds: tuple[float, ...], *labels: str, shared_with: tuple[float, ...] = ()
        ) -> HistogramFamily:
            family = HistogramFamily(name, text, labels, bounds, shared_with=shared_with)
            registry.register(family)
            return family

        of_queue = ("name", "controller")
        self.passes = tallied(
            "controller_runtime_reconcile_total", "Passes per controller and result", "controller", "result"
        )
        self.errors = counter("controller_runtime_reconcile_errors_total", "Passes that failed", "controller")
        self.panics = counter("controller_runtime_reconcile_panics_total", "Exceptions in our own code", "controller")
        self.timeouts = counter(
            "controller_runtime_reconcile_timeouts_total", "Passes that took too long", "controller"
        )
        self.pass_seconds = histogram(
            "controller_runtime_reconcile_time_seconds", "Length of a pass", _PASS_SECONDS, "controller"
        )
        self.workers = gauge("controller_runtime_max_concurrent_reconciles", "Workers", "controller")
        self.active = gauge("controller_runtime_active_workers", "Workers that have a key", "controller")
        self.depth = gauge("workqueue_depth", "Keys ready for a worker", *of_queue, "priority")
        self.adds = tallied("workqueue_adds_total", "Keys asked for that nobody had asked for yet", *of_queue)
        self.retries = counter("workqueue_retries_total", "Keys asked for after a failure", *of_queue)
        self.queue_seconds = histogram("workqueue_queue_duration_seconds", "Wait of a key", _QUEUE_SECONDS, *of_queue)
        self.work_seconds = histogram(
            "workqueue_work_duration_seconds", "Work on a key", _QUEUE_SECONDS, *of_queue, shared_with=_PASS_SECONDS
        )
        self.unfinished = gauge("workqueue_unfinished_work_seconds", "Sum of the work under way", *of_queue)
        self.longest = gauge("workqueue_longest_running_processor_seconds", "Longest work under way", *of_queue)
        self.master = gauge("leader_election_master_status", "1 while this process leads", "name")
        self.writes = tallied("quorate_store_writes_total", "Writes sent to the store", "kind", "verb", "result")
        self.cached = gauge("quorate_cache_objects", "Objects in a cache", "kind")
        self.cache_age = gauge("quorate_cache_age_seconds", "Time since the store was last heard of", "kind")
        self.undecodable = gauge("quorate_cache_undecodable_objects", "Objects that do not fit our type", "kind")
        self.restarts = counter("quorate_watch_restarts_total", "Watches started again", "kind", "reason")
        self.events_dropped = counter("quorate_events_dropped_total", "Events not recorded", "reason")

    def controller(self, name: str, workers: int) -> ControllerMetrics:
        """The metrics of one controller, bound."""
        self.workers.labels(name).set(workers)
        return ControllerMetrics(self, name, self._clock.monotonic)


class ControllerMetrics:
    """What one controller and its queue count on. Implements :class:`quorate.engine.queue.QueueObserver`."""

    def __init__(self, metrics: EngineMetrics, name: str, monotonic: Callable[[], float]) -> None:
        self._metrics = metrics
        self._name = name
        self._monotonic = monotonic
        self.results = {result: metrics.passes.labels(name, result).add for result in RESULTS}
        self.error = metrics.errors.labels(name).inc
        self.panic = metrics.panics.labels(name).inc
        self.timeout = metrics.timeouts.labels(name).inc
        self.added = metrics.adds.labels(name, name).add
        self.retried = metrics.retries.labels(name, name).inc
        waited = metrics.queue_seconds.labels(name, name)
        self.all_started = waited.add_all
        self.success = self.results["success"]
        # The length of a pass goes by two names, so it is tallied once, with the bounds of both.
        took = metrics.work_seconds.labels(name, name)
        metrics.pass_seconds.share(took, name)
        self.finished, self.all_finished = took.add, took.add_all

    def follow(self, keys: KeyQueue) -> None:
        """Show the levels of this queue from now on."""
        metrics, name = self._metrics, self._name

        def running() -> list[float]:
            now = self._monotonic()
            return [now - since for since in keys.taken().values()]

        def depth(priority: int) -> float:
            return keys.depth().get(priority, 0)

        for priority in (FRESH, RESYNC):
            metrics.depth.labels(name, name, str(priority)).set_function(partial(depth, priority))
        metrics.active.labels(name).set_function(lambda: len(keys.taken()))
        metrics.unfinished.labels(name, name).set_function(lambda: sum(running()))
        metrics.longest.labels(name, name).set_function(lambda: max(running(), default=0.0))

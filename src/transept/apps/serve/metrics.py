"""Metrics for Prometheus. No label tells who sent a request or what was in it."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The metrics of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "transept_requests",
            "Requests answered.",
            ["route", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "transept_request_seconds",
            "Time from a request's header to the end of its answer.",
            ["route"],
            registry=self._registry,
            buckets=(0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60),
        )
        self._batch = Histogram(
            "transept_batch_sentences",
            "Sentences decoded together.",
            registry=self._registry,
            buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024),
        )
        self._decoding = Counter(
            "transept_decoding_seconds", "Time spent in models.", registry=self._registry
        )
        self._queue = Gauge(
            "transept_queue_sentences", "Sentences that wait.", registry=self._registry
        )
        self._streams = Gauge(
            "transept_streams", "Translations that are streamed.", registry=self._registry
        )

    def watch(self, waiting: Callable[[], float], streaming: Callable[[], float]) -> None:
        """Use these functions to read the length of the queue and the number of streams."""
        self._queue.set_function(waiting)
        self._streams.set_function(streaming)

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request; its status is 0 if the client disconnected before the answer."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def batch_done(self, n_items: int, seconds: float) -> None:
        """Count a batch that was decoded."""
        self._batch.observe(n_items)
        self._decoding.inc(seconds)

    def streams_advanced(self, seconds: float) -> None:
        """Count the time that streams took for their steps."""
        self._decoding.inc(seconds)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)

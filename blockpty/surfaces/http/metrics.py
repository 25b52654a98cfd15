"""Metrics of the server in Prometheus' text format; a registry of its own for each server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from blockpty import __version__
from blockpty.errors import BlockptyError

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Metrics:
    """The counters of one server.

    Attributes:
        in_flight: calls that have not been answered yet, waits among them.
        subscribers: event streams and WebSockets that are open, by kind.
        last_activity: when anything was asked for, in seconds of `time.monotonic`.
    """

    def __init__(self) -> None:
        # When each series began doubles their number, and no rule here needs it.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        registry = self._registry
        build = Gauge("blockpty_build_info", "Version of the server.", ["version"], registry=registry)
        build.labels(__version__).set(1)
        self.calls = Counter(
            "blockpty_operations", "Operations that were asked for, by how they ended.", ["operation", "code"],
            registry=registry,
        )  # fmt: skip
        self.seconds = Histogram(
            "blockpty_operation_seconds", "How long operations took.", ["operation"], buckets=_BUCKETS,
            registry=registry,
        )  # fmt: skip
        self.flights = Gauge("blockpty_operations_in_flight", "Operations not answered yet.", registry=registry)
        self.streams = Gauge("blockpty_subscribers", "Open streams, by kind.", ["kind"], registry=registry)
        self.sent = Counter("blockpty_sent_bytes", "Bytes sent to subscribers, by kind.", ["kind"], registry=registry)
        self.resyncs = Counter("blockpty_resyncs", "Subscribers sent on to a later cursor.", registry=registry)
        self.refused = Counter("blockpty_refused", "Requests that did not pass the gate.", ["code"], registry=registry)
        self.conversations = Gauge("blockpty_open_conversations", "Shells that run.", registry=registry)
        self.in_flight = 0
        self.subscribers = 0
        self.last_activity = time.monotonic()

    @contextmanager
    def call(self, operation: str) -> Iterator[None]:
        """Count one call; an error goes through."""
        began = self.last_activity = time.monotonic()
        self.in_flight += 1
        self.flights.inc()
        code = "cancelled"
        try:
            yield
            code = "ok"
        except BlockptyError as error:
            code = error.code
            raise
        except Exception:
            code = "internal"
            raise
        finally:
            self.in_flight -= 1
            self.flights.dec()
            self.last_activity = time.monotonic()
            self.calls.labels(operation, code).inc()
            self.seconds.labels(operation).observe(self.last_activity - began)

    @contextmanager
    def stream(self, kind: str) -> Iterator[None]:
        """Count one subscriber."""
        self.subscribers += 1
        self.streams.labels(kind).inc()
        try:
            yield
        finally:
            self.subscribers -= 1
            self.streams.labels(kind).dec()
            self.last_activity = time.monotonic()

    def render(self) -> bytes:
        """Return the text."""
        return generate_latest(self._registry)

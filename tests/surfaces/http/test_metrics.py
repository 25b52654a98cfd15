"""Metrics: each call is counted once, by how it ended, and what is over is no longer counted as going on."""

from __future__ import annotations

import asyncio

import pytest

from blockpty.errors import BadRequest
from blockpty.surfaces.http.metrics import Metrics


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (None, "ok"),
        (BadRequest("no"), "bad_request"),
        (ValueError("a defect"), "internal"),
        (asyncio.CancelledError(), "cancelled"),
    ],
)
def test_a_call_is_counted_by_how_it_ended(error: BaseException | None, code: str) -> None:
    metrics = Metrics()

    def call() -> None:
        with metrics.call("run"):
            assert metrics.in_flight == 1
            assert b"blockpty_operations_in_flight 1.0" in metrics.render()
            if error is not None:
                raise error

    if error is None:
        call()
    else:
        with pytest.raises(type(error)):
            call()
    text = metrics.render().decode()
    assert [line for line in text.splitlines() if line.startswith("blockpty_operations_total{")] == [
        f'blockpty_operations_total{{code="{code}",operation="run"}} 1.0'
    ]
    assert 'blockpty_operation_seconds_count{operation="run"} 1.0' in text
    assert metrics.in_flight == 0
    assert "blockpty_operations_in_flight 0.0" in text


def test_a_stream_counts_as_long_as_it_is_open_even_if_it_fails() -> None:
    metrics = Metrics()

    def read() -> None:
        with metrics.stream("sse"), metrics.stream("websocket"):
            assert metrics.subscribers == 2
            assert b'blockpty_subscribers{kind="sse"} 1.0' in metrics.render()
            raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        read()
    assert metrics.subscribers == 0
    assert b'blockpty_subscribers{kind="sse"} 0.0' in metrics.render()


def test_servers_of_one_process_count_by_themselves() -> None:
    one, other = Metrics(), Metrics()
    with one.call("run"):
        pass
    assert b'operation="run"' in one.render()
    assert b'operation="run"' not in other.render()


def test_no_series_is_there_twice() -> None:
    metrics = Metrics()
    with metrics.call("run"):
        pass
    assert "_created" not in metrics.render().decode()

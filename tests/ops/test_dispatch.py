"""Dispatch: every parameter of a request reaches the method of its operation's name."""

from __future__ import annotations

from typing import Any

import pytest

from blockpty.errors import BadRequest, InternalError
from blockpty.ops.dispatch import call, stream
from blockpty.ops.requests import ConversationRequest
from blockpty.ops.table import OPERATIONS, find
from tests.support.async_tests import async_test
from tests.support.operations import EVENTS, PARAMS, RESULTS, RecordingEngine


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "events"])
def test_every_parameter_reaches_the_method(name: str) -> None:
    @async_test
    async def check() -> None:
        engine: Any = RecordingEngine()
        result = await call(engine, name, PARAMS[name])
        assert result == RESULTS[name]
        expected = dict(PARAMS[name])
        if issubclass(OPERATIONS[name].request, ConversationRequest):
            assert engine.calls.pop(0) == ("conversation", (expected.pop("conversation_id"),), {})
        positional = [item for item in OPERATIONS[name].positional if item in expected]
        ((called, args, kwargs),) = engine.calls
        assert called == name
        assert {**dict(zip(positional, args, strict=True)), **kwargs} == expected

    check()


@async_test
async def test_events_are_streamed() -> None:
    engine: Any = RecordingEngine()
    events = [event async for event in stream(engine, "events", PARAMS["events"])]
    assert events == list(EVENTS)
    assert engine.calls == [("conversation", ("c1",), {}), ("events", (3,), {"follow": False})]


@async_test
async def test_what_is_no_operation_is_refused_by_name() -> None:
    engine: Any = RecordingEngine()
    with pytest.raises(BadRequest, match="'frobnicate'") as caught:
        await call(engine, "frobnicate", {})
    assert "exec_block" in caught.value.hint
    with pytest.raises(BadRequest, match="stream"):
        await call(engine, "events", {"conversation_id": "c1"})
    with pytest.raises(BadRequest, match="call"):
        stream(engine, "run", {"conversation_id": "c1", "command": "x"})
    assert find("run") is OPERATIONS["run"]


@async_test
async def test_a_method_without_its_result_is_a_defect() -> None:
    engine: Any = RecordingEngine()
    engine.opened = None
    with pytest.raises(InternalError, match="open"):
        await call(engine, "open", {})

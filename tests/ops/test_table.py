"""The table: complete, in the contract's order, and of one mind with the Python API."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from blockpty.errors import BadRequest
from blockpty.model.events import Event
from blockpty.ops.engine import Engine
from blockpty.ops.operation import Effect, Operation, Shape
from blockpty.ops.requests import ConversationRequest
from blockpty.ops.table import OPERATIONS, call, find, stream
from blockpty.runtime.conversation import Conversation
from tests.asyncio_support import async_test
from tests.ops.samples import EVENTS, PARAMS, RESULTS, RecordingEngine

# Every operation of the contract in its order, with what was added to it (enter_shell, archive, import_recording,
# seal); those that come with a later issue, with its topic.
CONTRACT = (
    "open", "list", "status", "exec_block", "exec_interactive", "run", "send", "send_keys", "paste", "ctrl_c",
    "ctrl_d", "enter", "wait_for", "read", "blocks", "block", "diff", "events", "screen", "resize", "set_scrollback",
    "start_capture", "stop_capture", "end_session", "enter_shell", "interrupt", "reset", "kill", "close",
    "delete", "prune", "archive",
    "request_user_input", "take_control", "release_control", "approvals", "approve", "deny", "search",
    "overview", "export", "import_recording", "verify", "repair", "seal",
)  # fmt: skip
NOT_YET = {
    "request_user_input": "control",
    "take_control": "control",
    "release_control": "control",
    "approvals": "control",
    "approve": "control",
    "deny": "control",
}

each_operation = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)


def method_of(operation: Operation) -> Callable[..., Any]:
    owner = Conversation if issubclass(operation.request, ConversationRequest) else Engine
    method: Callable[..., Any] = getattr(owner, operation.name)
    return method


def test_the_table_is_the_contract_in_its_order() -> None:
    assert list(OPERATIONS) == [name for name in CONTRACT if name not in NOT_YET]
    assert set(NOT_YET) <= set(CONTRACT)


@each_operation
def test_the_python_method_has_the_parameters_of_the_request(operation: Operation) -> None:
    parameters = [item for item in inspect.signature(method_of(operation)).parameters.values() if item.name != "self"]
    of_conversation = issubclass(operation.request, ConversationRequest)
    fields = {
        name: field
        for name, field in operation.request.model_fields.items()
        if not (of_conversation and name == "conversation_id")
    }
    assert [item.name for item in parameters] == list(fields)
    assert {item.name: item.default for item in parameters} == {
        name: inspect.Parameter.empty if field.is_required() else field.get_default() for name, field in fields.items()
    }
    positional = [item.name for item in parameters if item.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert (["conversation_id"] if of_conversation else []) + positional == list(operation.positional)
    kinds = {item.kind for item in parameters}
    assert kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}


@each_operation
def test_it_is_documented(operation: Operation) -> None:
    first = operation.doc.partition("\n")[0]
    assert first.endswith(".") and first[0].isupper()
    assert operation.doc != inspect.cleandoc(ConversationRequest.__doc__ or "")
    for name, field in operation.request.model_fields.items():
        assert field.description, f"{operation.name}: {name} has no description"
        assert field.description.endswith(".")


@each_operation
def test_its_positional_parameters_are_the_required_ones_first(operation: Operation) -> None:
    required = [name for name, field in operation.request.model_fields.items() if field.is_required()]
    assert list(operation.positional[: len(required)]) == required
    assert set(operation.positional) <= set(operation.request.model_fields)


@each_operation
def test_its_route_names_parameters_that_it_has(operation: Operation) -> None:
    method, path = operation.route
    assert method in ("GET", "POST") and path.startswith("/v1/")
    assert method == "POST" or operation.effect is Effect.READ
    required = {name for name, field in operation.request.model_fields.items() if field.is_required()}
    assert set(re.findall(r"{(\w+)}", path)) <= required


def test_no_two_operations_share_a_route() -> None:
    assert len({operation.route for operation in OPERATIONS.values()}) == len(OPERATIONS)


def test_streams_give_events_and_nothing_else_does() -> None:
    streams = {name for name, operation in OPERATIONS.items() if operation.shape is Shape.STREAM}
    assert streams == {name for name, operation in OPERATIONS.items() if operation.result is Event} == {"events"}


@each_operation
def test_the_samples_leave_no_parameter_out_and_none_at_its_default(operation: Operation) -> None:
    sample = PARAMS[operation.name]
    assert list(sample) == list(operation.request.model_fields)
    for name, field in operation.request.model_fields.items():
        assert field.is_required() or sample[name] != field.get_default(), name


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

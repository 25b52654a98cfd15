"""The table: complete, in the contract's order, and of one mind with the Python API."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterator, Callable
from importlib import import_module
from typing import Any, get_type_hints

import pytest

from blockpty.model import results
from blockpty.model.events import Event
from blockpty.ops.engine import Engine
from blockpty.ops.operation import Effect, Operation, Shape
from blockpty.ops.requests import ConversationRequest
from blockpty.ops.table import OPERATIONS
from blockpty.runtime.conversation import Conversation
from tests.support.operations import PARAMS

# Every operation of the contract in its order, with what was added to it (enter_shell, archive, import_recording,
# seal, timeline); those that come with a later issue, with its topic.
CONTRACT = (
    "open", "list", "status", "exec_block", "exec_interactive", "run", "send", "send_line", "send_keys", "paste",
    "ctrl_c", "ctrl_d", "enter", "wait_for", "read", "blocks", "block", "diff", "timeline", "events", "screen",
    "resize",
    "set_scrollback", "start_capture", "stop_capture", "end_session", "enter_shell", "interrupt", "reset", "kill",
    "close", "put_file", "get_file", "delete", "prune", "archive",
    "halt", "release", "request_user_input", "take_control", "release_control", "approvals", "approve", "deny",
    "search", "overview", "audit", "export", "import_recording", "verify", "repair", "seal",
)  # fmt: skip
NOT_YET: dict[str, str] = {}

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
    # Python alone has these, behind those of the table.
    more = {"timeout": None} if "timeout_ms" in fields else {}
    more |= {"check": False} if operation.name == "run" else {}
    own = [parameters.pop() for _ in more]
    assert {item.name: item.default for item in own} == more
    assert {item.kind for item in own} <= {inspect.Parameter.KEYWORD_ONLY}
    assert [item.name for item in parameters] == list(fields)
    assert {item.name: item.default for item in parameters} == {
        name: inspect.Parameter.empty if field.is_required() else field.get_default() for name, field in fields.items()
    }
    positional = [item.name for item in parameters if item.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert (["conversation_id"] if of_conversation else []) + positional == list(operation.positional)
    kinds = {item.kind for item in parameters}
    assert kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}


@each_operation
def test_the_python_method_returns_the_result(operation: Operation) -> None:
    owner, method = method_of(operation).__module__, method_of(operation)
    returned = get_type_hints(method, vars(import_module(owner)) | vars(results))["return"]
    if operation.result_attribute is not None:
        assert returned is Conversation and operation.result_attribute == "opened"
        returned = results.OpenResult
    assert returned == (AsyncIterator[Event] if operation.shape is Shape.STREAM else operation.result)


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

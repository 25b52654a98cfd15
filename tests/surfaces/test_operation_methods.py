"""The derived methods: of the names, parameters and types of the local ones, and of nothing else."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest

import blockpty
from blockpty import Client, Conversation, Engine
from blockpty.ops.requests import ConversationRequest
from blockpty.ops.table import OPERATIONS
from blockpty.surfaces import operation_methods
from blockpty.surfaces.client import RemoteConversation
from blockpty.surfaces.operation_methods import (
    ConversationOperations,
    EngineOperations,
    SyncConversationOperations,
    SyncEngineOperations,
)
from tests.support.async_tests import async_test

STUB = ast.parse(Path(operation_methods.__file__).with_suffix(".pyi").read_text("utf-8"))
TYPED = {
    (owner.name, method.name): method
    for owner in STUB.body
    if isinstance(owner, ast.ClassDef)
    for method in owner.body
    if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
}
PAIRS = [
    (local, derived, name)
    for local, derived in ((Engine, EngineOperations), (Conversation, ConversationOperations))
    for name in (*OPERATIONS, "expect")
    # Engine's own close is no operation.
    if hasattr(local, name)
    and not (local is Engine and (name == "expect" or issubclass(OPERATIONS[name].request, ConversationRequest)))
]
BLOCKING: dict[type, type] = {
    EngineOperations: SyncEngineOperations,
    ConversationOperations: SyncConversationOperations,
}


def bare(signature: inspect.Signature) -> list[inspect.Parameter]:
    return [parameter.replace(annotation=parameter.empty) for parameter in signature.parameters.values()]


def test_they_are_those_that_the_local_classes_have() -> None:
    derived = {
        (owner, name)
        for owner in (*BLOCKING, *BLOCKING.values())
        for name, value in vars(owner).items()
        if inspect.isfunction(value)
    }
    assert derived == {(kind, name) for _, owner, name in PAIRS for kind in (owner, BLOCKING[owner])}
    made = {("SyncEngineOperations", "__init__"), ("SyncClientOperations", "__init__")}
    assert set(TYPED) == {(owner.__name__, name) for owner, name in derived} | made


@pytest.mark.parametrize(("local", "derived", "name"), PAIRS)
def test_they_have_the_signatures_of_the_local_ones(local: type, derived: type, name: str) -> None:
    ours = inspect.signature(getattr(local, name))
    for kind in (derived, BLOCKING[derived]):
        assert bare(ours) == bare(inspect.signature(getattr(kind, name)))
        assert getattr(kind, name).__doc__
        _check_types(ours, kind, name)


def _check_types(ours: inspect.Signature, kind: type, name: str) -> None:
    typed = TYPED[kind.__name__, name]
    annotations = {
        argument.arg: ast.unparse(argument.annotation)
        for argument in (*typed.args.args, *typed.args.kwonlyargs)
        if argument.annotation is not None
    }
    assert annotations == {
        parameter.name: parameter.annotation for parameter in ours.parameters.values() if parameter.name != "self"
    }
    assert typed.returns is not None
    blocking = kind in BLOCKING.values()
    expected = ours.return_annotation.replace("AsyncIterator", "Iterator") if blocking else ours.return_annotation
    if name == "open":
        expected = "SyncConversation" if blocking else "OpenCall[RemoteConversation]"
    assert ast.unparse(typed.returns) == expected
    awaited = not (blocking or name in ("open", "events"))
    assert isinstance(typed, ast.AsyncFunctionDef) is awaited


@async_test
async def test_what_no_parameter_is_called_is_refused() -> None:
    client: Any = Client(start=False)
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        await client.open(colour="red")
    with pytest.raises(TypeError, match="missing a required argument: 'command'"):
        await RemoteConversation(client, "c1").run()  # type: ignore[call-arg]


class Asked(Client):
    """Keeps what it would ask of a server elsewhere."""

    def __init__(self) -> None:
        super().__init__(url="http://elsewhere")
        self.sent: list[Any] = []

    async def _ask(self, method: str, target: str, content: Any, check: Any = None) -> dict[str, Any]:
        self.sent.append(content)
        return {"ok": True, "cursor": 0, "accepted_bytes": 0, "matched": True, "reason": "matched"}


@async_test
async def test_parameters_go_as_json_has_them() -> None:
    client = Asked()
    conversation = RemoteConversation(client, "c1")
    await conversation.send(b"\xff")
    await conversation.send_keys("x", secret=True)
    await conversation.expect([blockpty.PROMPT, blockpty.Regex("a")], stop=blockpty.Idle(5), timeout=0.5)
    asked = client.sent.pop()
    assert (asked["match"], asked["stop"]) == ([{"token": "PROMPT"}, {"regex": "a"}], {"idle_ms": 5})
    assert asked["timeout_ms"] == 500 and "timeout" not in asked
    sent, pressed = client.sent
    assert (sent["data"], sent["data_b64"]) == (None, "/w==") and "secret" not in sent
    assert (pressed["keys"], pressed["secret"]) == ("x", True)

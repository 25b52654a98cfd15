"""Dispatch of operations to the methods of Engine and Conversation.

An operation is the method of its name: its request's fields are the method's arguments, and a request to a
conversation goes to that conversation. The table says where a method returns something else than the operation's
result. No rule of an operation lives here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

from blockpty.errors import BadRequest, InternalError
from blockpty.model.events import Event
from blockpty.model.results import Result
from blockpty.ops.operation import Operation, Shape
from blockpty.ops.requests import ConversationRequest, Request
from blockpty.ops.table import find

if TYPE_CHECKING:
    # The table must be readable (help, schemas) without loading the engine.
    from blockpty.ops.engine import Engine


async def call(engine: Engine, name: str, params: Mapping[str, Any]) -> Result:
    """Run one operation of shape CALL with plain parameters; raises BlockptyError."""
    operation = _shaped(name, Shape.CALL)
    request = operation.parse(params)
    positional, named = _arguments(operation, request)
    answer = await getattr(await _receiver(engine, request), name)(*positional, **named)
    if operation.result_attribute is not None:
        answer = getattr(answer, operation.result_attribute)
        if answer is None:
            raise InternalError(f"{name} has no result")
    return cast("Result", answer)


def stream(engine: Engine, name: str, params: Mapping[str, Any]) -> AsyncIterator[Event]:
    """Run one operation of shape STREAM with plain parameters; raises BlockptyError, some of it only when iterated."""
    operation = _shaped(name, Shape.STREAM)
    return _events(engine, operation, operation.parse(params))


async def _events(engine: Engine, operation: Operation, request: Request) -> AsyncIterator[Event]:
    positional, named = _arguments(operation, request)
    events = getattr(await _receiver(engine, request), operation.name)(*positional, **named)
    # Its reader is closed here, not by the garbage collector.
    async with aclosing(cast("AsyncGenerator[Event, None]", events)):
        async for event in events:
            yield event


async def _receiver(engine: Engine, request: Request) -> Any:
    """Return the object whose method runs the request."""
    if isinstance(request, ConversationRequest):
        return await engine.conversation(request.conversation_id)
    return engine


def _arguments(operation: Operation, request: Request) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and the named arguments of the method."""
    named = {name: getattr(request, name) for name in type(request).model_fields}
    if isinstance(request, ConversationRequest):
        del named["conversation_id"]
    return [named.pop(name) for name in operation.positional if name in named], named


def _shaped(name: str, shape: Shape) -> Operation:
    operation = find(name)
    if operation.shape is not shape:
        raise BadRequest(f"{name} is a {operation.shape.value}, not a {shape.value}")
    return operation

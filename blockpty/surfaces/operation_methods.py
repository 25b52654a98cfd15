"""Python methods of the operations, derived from the manifest: what clients, engines and conversations can be asked.

Rules of this file: no operation is spelled here. Names, parameters, defaults and descriptions are those of the
manifest; a class that inherits the methods says how an operation reaches its engine. Their types stand in
`operation_methods.pyi`, which tools/gen_reference writes from the methods of Engine and Conversation; a test holds both
equal to those. Python alone has `timeout` in seconds beside each `timeout_ms`, `check` of `run`, and `expect`.
"""

from __future__ import annotations

from inspect import Parameter, Signature

from blockpty.api.conversation_context import raising
from blockpty.api.limits import milliseconds
from blockpty.api.opening import opening
from blockpty.model.conditions import match_to_wire
from blockpty.model.unmet import checked
from blockpty.ops.manifest import ManifestEntry, Shape, manifest

# Engine has these three for a conversation that cannot be opened, Conversation for itself.
_OF_BOTH = ("verify", "repair", "seal")


class EngineOperations:
    """Methods of Engine; an heir has `_call(name, params)`."""


class ConversationOperations:
    """Methods of Conversation; an heir has `_call(name, params)` and `_stream(name, params)`, which add its name."""


class SyncEngineOperations:
    """Methods of Engine that block; an heir has `_call(name, args, kwargs)`."""


class SyncClientOperations(SyncEngineOperations):
    """The same with the parameters of Client."""


class SyncConversationOperations:
    """Methods of Conversation that block; an heir has `_call(name, args, kwargs)` and `_stream(name, args, kwargs)`."""


def _method(entry: ManifestEntry, signature: Signature):
    def params(self, args, kwargs):
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        for name in ("self", "check"):
            given.pop(name, None)
        if "timeout" in given:
            given["timeout_ms"] = milliseconds(given.pop("timeout"), given["timeout_ms"])
        for name in ("match", "stop"):
            if name in given:
                given[name] = match_to_wire(given[name])
        return given

    if entry.shape is Shape.STREAM:

        def method(self, *args, **kwargs):
            return self._stream(entry.name, params(self, args, kwargs))
    else:

        async def method(self, *args, **kwargs):
            __tracebackhide__ = True
            result = await self._call(entry.name, params(self, args, kwargs))
            return checked(result) if kwargs.get("check") else result

    return method


def _blocking_method(entry: ManifestEntry):
    if entry.shape is Shape.STREAM:

        def method(self, *args, **kwargs):
            return self._stream(entry.name, args, kwargs)
    else:

        def method(self, *args, **kwargs):
            __tracebackhide__ = True
            return self._call(entry.name, args, kwargs)

    return method


def _signature(entry: ManifestEntry, *, of_conversation: bool) -> Signature:
    parameters = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)]
    for name, schema in entry.parameters.items():
        if of_conversation and name == "conversation_id":
            continue
        kind = Parameter.POSITIONAL_OR_KEYWORD if name in entry.positional else Parameter.KEYWORD_ONLY
        default = Parameter.empty if name in entry.required else schema.get("default")
        parameters.append(Parameter(name, kind, default=default))
    if "timeout_ms" in entry.parameters:
        parameters.append(Parameter("timeout", Parameter.KEYWORD_ONLY, default=None))
    if entry.name == "run":
        parameters.append(Parameter("check", Parameter.KEYWORD_ONLY, default=False))
    return Signature(parameters)


def _derive() -> None:
    for name, entry in manifest().items():
        of_conversation = "{conversation_id}" in entry.route[1]
        for owner, blocking, wanted, own in (
            (EngineOperations, SyncEngineOperations, not of_conversation or name in _OF_BOTH, False),
            (ConversationOperations, SyncConversationOperations, of_conversation, True),
        ):
            if wanted:
                signature = _signature(entry, of_conversation=own)
                method = _method(entry, signature)
                _name(method, owner, entry, signature)
                setattr(owner, name, opening(method) if name == "open" else method)
                method = _blocking_method(entry)
                _name(method, blocking, entry, signature)
                setattr(blocking, name, method)
    expect = ConversationOperations.expect = raising(ConversationOperations.wait_for)

    def blocking_expect(self, *args, **kwargs):
        __tracebackhide__ = True
        return self._call("expect", args, kwargs)

    blocking_expect.__doc__, blocking_expect.__signature__ = expect.__doc__, Signature.from_callable(expect)
    blocking_expect.__name__ = "expect"
    SyncConversationOperations.expect = blocking_expect


def _name(method, owner: type, entry: ManifestEntry, signature: Signature) -> None:
    method.__name__, method.__doc__, method.__signature__ = entry.name, entry.doc, signature
    method.__qualname__, method.__module__ = f"{owner.__name__}.{entry.name}", __name__


_derive()

"""Python methods of the operations, derived from the manifest: what a client and its conversations can be asked.

Rules of this file: no operation is spelled here. Names, parameters, defaults and descriptions are those of the
manifest; a class that inherits the methods says how an operation reaches the server. Their types stand in
`operation_methods.pyi`, which tools/gen_reference writes from the methods of Engine and Conversation; a test holds both
equal to those.
"""

from __future__ import annotations

from inspect import Parameter, Signature

from blockpty.ops.manifest import ManifestEntry, Shape, manifest

# Engine has these three for a conversation that cannot be opened, Conversation for itself.
_OF_BOTH = ("verify", "repair", "seal")


class EngineOperations:
    """Methods of Engine; an heir has `_call(name, params)`."""


class ConversationOperations:
    """Methods of Conversation; an heir has `_call(name, params)` and `_stream(name, params)`, which add its name."""


def _method(entry: ManifestEntry, *, of_conversation: bool):
    signature = _signature(entry, of_conversation=of_conversation)

    def params(self, args, kwargs):
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        del bound.arguments["self"]
        return bound.arguments

    if entry.shape is Shape.STREAM:

        def method(self, *args, **kwargs):
            return self._stream(entry.name, params(self, args, kwargs))
    else:

        async def method(self, *args, **kwargs):
            return await self._call(entry.name, params(self, args, kwargs))

    method.__name__ = entry.name
    method.__doc__ = entry.doc
    method.__signature__ = signature
    return method


def _signature(entry: ManifestEntry, *, of_conversation: bool) -> Signature:
    parameters = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)]
    for name, schema in entry.parameters.items():
        if of_conversation and name == "conversation_id":
            continue
        kind = Parameter.POSITIONAL_OR_KEYWORD if name in entry.positional else Parameter.KEYWORD_ONLY
        default = Parameter.empty if name in entry.required else schema.get("default")
        parameters.append(Parameter(name, kind, default=default))
    return Signature(parameters)


def _derive() -> None:
    for name, entry in manifest().items():
        of_conversation = "{conversation_id}" in entry.route[1]
        for owner, wanted, own in (
            (EngineOperations, not of_conversation or name in _OF_BOTH, False),
            (ConversationOperations, of_conversation, True),
        ):
            if wanted:
                method = _method(entry, of_conversation=own)
                method.__qualname__, method.__module__ = f"{owner.__name__}.{name}", __name__
                setattr(owner, name, method)


_derive()

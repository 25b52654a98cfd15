"""Resources: transcripts, blocks and status, read with the same operations as everything else.

blockpty://conversations/{conversation_id}/transcript{?from_cursor}   text, a bounded piece
blockpty://conversations/{conversation_id}/blocks{?page}              JSON
blockpty://conversations/{conversation_id}/blocks/{block_id}          JSON record, then text, bounded
blockpty://conversations/{conversation_id}/status                     JSON
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from blockpty.errors import BadRequest, BlockptyError, InternalError, NotFound
from blockpty.surfaces.access import Caller
from blockpty.surfaces.mcp.bounds import MAX_BLOCKS, MAX_OUTPUT_BYTES, block_output, fit
from blockpty.surfaces.mcp.text import bounded
from blockpty.surfaces.sanitize import sanitize

_SCHEME: Final = "blockpty"
_BASE: Final = "blockpty://conversations"
_TEXT: Final = "text/plain"
_JSON: Final = "application/json"
_NOT_FOUND: Final = -32002  # "resource not found" of the protocol up to 2025-11-25

Reader = Callable[[Caller, str, str, Mapping[str, str], list[str]], Awaitable[list[TextResourceContents]]]


def listed_templates() -> ListResourceTemplatesResult:
    """Return the forms of the URIs."""
    forms = (
        (
            "transcript",
            "/transcript{?from_cursor}",
            _TEXT,
            "A piece of the transcript as text; it says how to read on.",
        ),
        ("blocks", "/blocks{?page}", _JSON, "The blocks (commands with their output) that have ended."),
        ("block", "/blocks/{block_id}", None, "One block: its record as JSON, and its output as text."),
        ("screen", "/screen", _TEXT, "What the terminal shows now, between two lines that say size and cursor."),
        ("status", "/status", _JSON, "What the shell and its terminal are doing now."),
    )
    templates = [
        ResourceTemplate(
            name=name, uri_template=f"{_BASE}/{{conversation_id}}{path}", mime_type=mime_type, description=description
        )
        for name, path, mime_type, description in forms
    ]
    return ListResourceTemplatesResult(resource_templates=templates)


async def list_resources(caller: Caller) -> ListResourcesResult:
    """Return the resources of the live conversations; raises MCPError."""
    try:
        found = (await caller.call("list", {})).to_dict()
    except BlockptyError as error:
        raise refusal(error) from None
    resources: list[Resource] = []
    for one in found["conversations"]:
        if not one["live"]:
            continue
        name = one["conversation_id"]
        kinds = (("transcript", _TEXT), ("blocks", _JSON), ("screen", _TEXT), ("status", _JSON))
        resources += [
            Resource(name=f"{name} {kind}", uri=f"{_BASE}/{quote(name)}/{kind}", mime_type=mime_type)
            for kind, mime_type in kinds
        ]
    return ListResourcesResult(resources=resources)


async def read_resource(caller: Caller, params: ReadResourceRequestParams) -> ReadResourceResult:
    """Return a resource; raises MCPError, with the one error shape as its data."""
    uri = params.uri
    try:
        name, reader, rest, query = _parsed(uri)
        return ReadResourceResult(contents=[*await reader(caller, uri, name, query, rest)])
    except BlockptyError as error:
        raise refusal(error) from None


def subscribed(uri: str) -> tuple[str, str]:
    """Return the conversation and the kind of a resource that can be subscribed to; raises BadRequest, NotFound."""
    name, _, rest, query = _parsed(uri)
    if rest or query:
        raise BadRequest(f"{uri[:200]!r} cannot be followed", hint="transcript, blocks, screen and status can")
    return name, urlsplit(uri).path.rpartition("/")[2]


def refusal(error: BlockptyError) -> MCPError:
    """Return the error of the protocol for one of ours, which is its data."""
    code = _NOT_FOUND if isinstance(error, NotFound) else INVALID_PARAMS
    if isinstance(error, InternalError):
        code = INTERNAL_ERROR
    return MCPError(code=code, message=error.message, data=error.to_dict())


def _parsed(uri: str) -> tuple[str, Reader, list[str], dict[str, str]]:
    """Return a URI's conversation, what reads it, the rest of its path and its query; raises BadRequest, NotFound."""
    try:
        parts = urlsplit(uri)
        query = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        raise BadRequest(f"{uri[:200]!r} is no URI") from None
    path = [unquote(part) for part in parts.path.split("/")[1:]]
    if parts.scheme != _SCHEME or parts.netloc != "conversations" or len(path) < 2:
        raise NotFound(f"no resource is called {uri[:200]!r}", hint=f"they begin with {_BASE}/")
    name, kind, *rest = path
    form = (kind, len(rest))
    if form not in _READERS:
        hint = "transcript, blocks, blocks/{block_id}, screen or status"
        raise NotFound(f"no resource is called {uri[:200]!r}", hint=hint)
    reader, allowed = _READERS[form]
    for key in query:
        if key not in allowed:
            raise BadRequest(
                f"{uri[:200]!r}: no parameter is called {key[:40]!r}", hint=f"{allowed or 'there is none'}"
            )
    return name, reader, rest, query


async def _transcript(
    caller: Caller, uri: str, name: str, query: Mapping[str, str], _rest: list[str]
) -> list[TextResourceContents]:
    params = {"conversation_id": name, "from_cursor": _number(query, "from_cursor"), "max_bytes": MAX_OUTPUT_BYTES}
    found = (await caller.call("read", params)).to_dict()
    end = (await caller.call("status", {"conversation_id": name})).to_dict()["cursor"]
    text = bounded(sanitize(found["data"], colour=False))
    cursor = found["cursor"]
    meta = {"blockpty/cursor": cursor, "blockpty/end": end}
    if cursor < end:
        following = f"{_BASE}/{quote(name)}/transcript?from_cursor={cursor}"
        text = f"[... read on, from {cursor} of {end}: {following} ...]\n{text}"
    return [TextResourceContents(uri=uri, mime_type=_TEXT, text=text, _meta=meta)]


async def _blocks(
    caller: Caller, uri: str, name: str, query: Mapping[str, str], _rest: list[str]
) -> list[TextResourceContents]:
    params = {"conversation_id": name, "page": _number(query, "page") or 0, "page_size": MAX_BLOCKS}
    return [_json(uri, fit((await caller.call("blocks", params)).to_dict()))]


async def _block(
    caller: Caller, uri: str, name: str, _query: Mapping[str, str], rest: list[str]
) -> list[TextResourceContents]:
    found = (await caller.call("block", {"conversation_id": name, "block_id": rest[0]})).to_dict()
    output, _, _ = await block_output(caller, name, found["block"], MAX_OUTPUT_BYTES)
    text = bounded(sanitize(output, colour=False))
    return [_json(uri, fit(found)), TextResourceContents(uri=uri, mime_type=_TEXT, text=text)]


async def _screen(
    caller: Caller, uri: str, name: str, _query: Mapping[str, str], _rest: list[str]
) -> list[TextResourceContents]:
    found = (await caller.call("screen", {"conversation_id": name, "format": "agent"})).to_dict()
    text = bounded(sanitize(found["content"], colour=False))
    return [TextResourceContents(uri=uri, mime_type=_TEXT, text=text, _meta={"blockpty/cursor": found["cursor"]})]


async def _status(
    caller: Caller, uri: str, name: str, _query: Mapping[str, str], _rest: list[str]
) -> list[TextResourceContents]:
    return [_json(uri, fit((await caller.call("status", {"conversation_id": name})).to_dict()))]


_READERS: Final[Mapping[tuple[str, int], tuple[Reader, tuple[str, ...]]]] = {
    ("transcript", 0): (_transcript, ("from_cursor",)),
    ("blocks", 0): (_blocks, ("page",)),
    ("blocks", 1): (_block, ()),
    ("screen", 0): (_screen, ()),
    ("status", 0): (_status, ()),
}


def _json(uri: str, payload: Mapping[str, Any]) -> TextResourceContents:
    return TextResourceContents(uri=uri, mime_type=_JSON, text=json.dumps(payload, ensure_ascii=False))


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise BadRequest(f"{name} is not a number: {text[:40]!r}")
    return int(text)

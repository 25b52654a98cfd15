"""Tools: one for every operation of the table, and the names that apchat's users know.

Rules of this file: a tool has no parameter, default or rule that its operation has not; it has this surface's limits
(bounds.py).
"""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final, cast

from mcp_types import InputRequiredResult, Tool, ToolAnnotations
from msgspec import Struct
from msgspec.structs import replace

from blockpty.errors import BadRequest
from blockpty.model.events import Event
from blockpty.ops.operation import Effect, Operation, Shape, unwrapped
from blockpty.ops.requests import ConversationRequest
from blockpty.ops.table import OPERATIONS
from blockpty.surfaces.mcp.bounds import (
    DEFAULTS,
    LIMITS,
    MAX_BLOCKS,
    MAX_EVENTS,
    MAX_EXPORT_BYTES,
    MAX_JSON_BYTES,
    MAX_OUTPUT_BYTES,
    block_output,
    fit,
    json_bytes,
    lowered,
    shortened,
)
from blockpty.surfaces.mcp.calling import Call
from blockpty.surfaces.mcp.launch import LAUNCH, LAUNCHED, launch
from blockpty.surfaces.mcp.password import run_and_ask
from blockpty.surfaces.mcp.schemas import NOTE, input_schema, outcome_schema, output_schema

PREFIX: Final = "pty_"

_HARMLESS: Final = frozenset({"open", "resize"})
"""Operations that change something, but take nothing away."""
_SAME_AGAIN: Final = frozenset({"resize"})
"""Operations other than reading ones that can be done twice with one effect."""
OWN: Final = {"conversation_id": "By default the one that this session opened last."}
_NAMED: Final = frozenset({"delete", "archive", "import_recording", "repair", "seal", "verify"})
"""Operations whose conversation has to be named: they are about what is recorded, not about a terminal at work."""
_OF_PERSONS: Final = frozenset({"take_control", "release_control", "release", "approve", "deny"})
"""Operations that an agent may not use."""
_NOTES: Final[Mapping[str, str]] = {
    "run": f"At most {MAX_OUTPUT_BYTES} bytes of output are returned here; the rest can be read with pty_read.",
    "read": f"At most {MAX_OUTPUT_BYTES} bytes are returned here.",
    "blocks": f"At most {MAX_BLOCKS} are returned here.",
    "get_file": f"Here: a file of at most {MAX_OUTPUT_BYTES} bytes; of a longer one, read parts with pty_run.",
    "export": f"At most {MAX_EXPORT_BYTES} bytes are returned here; more is a file on the machine of the shell.",
    "events": f"Here: those that are recorded, at most {MAX_EVENTS}; next_seq is where to go on.",
    "screen": "For programs that draw (editors, menus); what was printed line by line is better read with pty_read.",
    "wait_for": "One wait is better than asking again and again with pty_read or pty_status.",
}


Answer = tuple[dict[str, Any], Mapping[str, Any]] | InputRequiredResult
"""A result and the parameters that gave it, or a question to the client."""


class PtyTool(Struct, frozen=True):
    """A tool.

    Attributes:
        listed: its description, as a client gets it.
        answer: how it is answered.
        described_as: the operation in whose words its result is described.
        own: it is about the session's own conversation where none is named.
        opens: it opens one where there is none.
    """

    listed: Tool
    answer: Callable[[Call], Awaitable[Answer]]
    described_as: str
    own: bool = False
    opens: bool = False


def hints(effect: Effect, *, harmless: bool = False, same_again: bool = False) -> ToolAnnotations:
    """Return the hints for a client that follow from an effect."""
    reads = effect is Effect.READ
    return ToolAnnotations(
        read_only_hint=reads,
        destructive_hint=not (reads or harmless),
        idempotent_hint=reads or same_again,
        # A command can do anything anywhere; the shell's own life is here.
        open_world_hint=effect is Effect.INPUT and not harmless,
    )


def _of(operation: Operation) -> PtyTool:
    name = operation.name
    streams = operation.shape is Shape.STREAM
    description = unwrapped(operation.doc)
    if name in _NOTES:
        description = f"{description}\n\n{_NOTES[name]}"
    listed = Tool(
        name=PREFIX + name,
        description=description,
        input_schema=input_schema(
            operation.request,
            defaults=DEFAULTS.get(name),
            limits=LIMITS.get(name),
            without=("follow",) if streams else (),
            optional=OWN if takes_own(operation) else None,
        ),
        output_schema=_PAGE if streams else output_schema(operation),
        annotations=hints(operation.effect, harmless=name in _HARMLESS, same_again=name in _SAME_AGAIN),
    )

    async def answer(call: Call) -> Answer:
        return await (_page_of_events(call) if streams else _called(call, operation))

    own = takes_own(operation)
    return PtyTool(listed, answer, name, own, own and operation.effect is Effect.INPUT)


def takes_own(operation: Operation) -> bool:
    """Whether a call that names no conversation means the session's own."""
    required = issubclass(operation.request, ConversationRequest)
    return required and operation.name not in _NAMED


async def _called(call: Call, operation: Operation) -> Answer:
    name, fields = operation.name, operation.request.model_fields
    params: Mapping[str, Any] = lowered(name, call.params, fields)
    if name in ("run", "wait_for"):
        operation.parse(params)
        params = {"timeout_ms": fields["timeout_ms"].default, **params}
        result = await run_and_ask(call, name, params)
        if isinstance(result, InputRequiredResult):
            return result
    else:
        result = await call.run(name, params)
    payload = result.to_dict()
    if name == "blocks":
        payload, params = await _fewer_blocks(call, params, payload)
    else:
        payload = await _less(call, name, params, payload)
    return fit(payload, "use filter to see others" if name == "list" else ""), params


async def _fewer_blocks(
    call: Call, params: Mapping[str, Any], payload: dict[str, Any]
) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Divide a page that is too long into smaller ones; return the first and its parameters."""
    if json_bytes(payload) <= MAX_JSON_BYTES:
        return payload, params
    page, page_size = params.get("page", 0), params["page_size"]
    found = shortened(payload)
    notes = ["long texts are shortened where that is marked"]
    while json_bytes(found) > MAX_JSON_BYTES - 512 and page_size > 1:
        # Only a divisor begins a page where the one asked for begins.
        factor = next(number for number in range(2, page_size + 1) if page_size % number == 0)
        page, page_size = page * factor, page_size // factor
        params = {**params, "page": page, "page_size": page_size}
        found = shortened((await call.caller.call("blocks", params)).to_dict())
    if page_size != call.params.get("page_size", MAX_BLOCKS):
        notes.append(f"this is page {page} with page_size {page_size}; go on with that page_size")
    return {**found, NOTE: "; ".join(notes)}, params


async def _less(call: Call, name: str, params: Mapping[str, Any], payload: dict[str, Any]) -> dict[str, Any]:
    """Read again with fewer bytes what is too long as JSON: a control takes six bytes there, a wrong byte three."""
    if name not in ("run", "read") or json_bytes(payload) <= MAX_JSON_BYTES:
        return payload
    if name == "run":
        # The command came from the caller, who knows it.
        payload = {**payload, "block": shortened(payload["block"]), NOTE: "the command is shortened"}
    max_bytes = int(params["max_bytes"])
    while (size := json_bytes(payload)) > MAX_JSON_BYTES and max_bytes > 1024:
        max_bytes = max_bytes * MAX_JSON_BYTES // size * 9 // 10
        if name == "read":
            payload = (await call.caller.call("read", {**params, "max_bytes": max_bytes})).to_dict()
            continue
        output, whole, truncated = await block_output(
            call.caller, params["conversation_id"], payload["block"], max_bytes, params["view"]
        )
        payload = {**payload, "output": output, "output_bytes": whole, "truncated": truncated}
    return payload


# Events


_PAGE: Final = outcome_schema(
    {
        "events": {"type": "array", "items": {"type": "object"}},
        "next_seq": {"type": "integer", "description": "from_seq of the next page."},
        "more": {"type": "boolean", "description": "Whether more are recorded already."},
    },
    ["events", "next_seq", "more"],
)


async def _page_of_events(call: Call) -> Answer:
    if "follow" in call.params:
        raise BadRequest(
            "events: follow: no parameter has this name", hint="this gives what is recorded; ask again from next_seq"
        )
    first = call.params.get("from_seq", 0)
    events: list[dict[str, Any]] = []
    left, more = MAX_JSON_BYTES - 1024, False
    stream = call.caller.stream("events", {**call.params, "follow": False})
    async with aclosing(cast("AsyncGenerator[Event, None]", stream)) as found:
        async for event in found:
            line = shortened(event.to_dict(call.params["conversation_id"]))
            left -= json_bytes(line) + 2
            if left < 0 or len(events) == MAX_EVENTS:
                more = True
                break
            events.append(line)
    following = events[-1]["seq"] + 1 if events else first
    return {"ok": True, "events": events, "next_seq": following, "more": more}, call.params


async def _launch(call: Call) -> Answer:
    return await launch(call), call.params


# Screens


def _get_screen() -> PtyTool:
    """Return `screen` under the name, and with the format, that apchat's users know."""
    screen = _of(OPERATIONS["screen"])
    schema = copy.deepcopy(screen.listed.input_schema)
    schema["properties"]["format"]["default"] = "agent"
    description = f"{screen.listed.description}\n\nThe same as pty_screen, in the format agent unless another is given."

    async def answer(call: Call) -> Answer:
        return await screen.answer(replace(call, params={"format": "agent", **call.params}))

    listed = screen.listed.model_copy(
        update={"name": "pty_get_screen", "description": description, "input_schema": schema}
    )
    return replace(screen, listed=listed, answer=answer)


_PLACE: Final = outcome_schema(
    {
        "column": {"type": "integer", "description": "From 0."},
        "row": {"type": "integer", "description": "From 0."},
        "visible": {"type": "boolean"},
        "cols": {"type": "integer"},
        "rows": {"type": "integer"},
        "cursor": {"type": "integer", "description": "How much of the transcript this screen shows."},
    },
    ["column", "row", "visible", "cols", "rows", "cursor"],
)


def _get_cursor() -> PtyTool:
    """Return the tool that says where the terminal's cursor stands."""
    screen = _of(OPERATIONS["screen"])
    schema = copy.deepcopy(screen.listed.input_schema)
    schema["properties"] = {"conversation_id": schema["properties"]["conversation_id"]}

    async def answer(call: Call) -> Answer:
        shown = (await call.run("screen", {**call.params, "format": "text"})).to_dict()
        column, row = shown["cursor_position"]
        place = {name: shown[name] for name in ("cols", "rows", "cursor")}
        return {"ok": True, "column": column, "row": row, "visible": shown["cursor_visible"], **place}, call.params

    listed = screen.listed.model_copy(
        update={
            "name": "pty_get_cursor",
            "description": "Say where the terminal's cursor stands on the screen, and how large the screen is.",
            "input_schema": schema,
            "output_schema": _PLACE,
        }
    )
    return replace(screen, listed=listed, answer=answer, described_as="get_cursor")


# The table


def _table() -> dict[str, PtyTool]:
    tools = {PREFIX + name: _of(operation) for name, operation in OPERATIONS.items() if name not in _OF_PERSONS}
    tools["pty_get_cursor"] = _get_cursor()
    tools["pty_get_screen"] = _get_screen()
    tools["pty_launch"] = PtyTool(
        Tool(
            name="pty_launch",
            description=unwrapped(LAUNCH.doc),
            input_schema=input_schema(LAUNCH.request),
            output_schema=LAUNCHED,
            # It runs any command.
            annotations=hints(Effect.INPUT),
        ),
        _launch,
        "launch",
    )
    return tools


TOOLS: Final[Mapping[str, PtyTool]] = _table()


def input_schema_of(name: str) -> Mapping[str, Any] | None:
    """Return the schema of a tool's arguments, or None when there is no such tool."""
    tool = TOOLS.get(name)
    return None if tool is None else tool.listed.input_schema

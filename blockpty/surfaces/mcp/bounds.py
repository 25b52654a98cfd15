"""Bounds of results for a model, and the notes that say what was left out.

Rules of this file: JSON is never cut. What can be read again is read with fewer bytes; what cannot has its long texts
shortened and its long lists ended early, and a note in the result says so and names the call that gives the rest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from blockpty.surfaces.access import Caller
from blockpty.surfaces.mcp.schemas import NOTE

MAX_OUTPUT_BYTES: Final = 24 * 1024
"""Output of programs in one result; some 6,000 to 8,000 tokens."""
MODEL_BYTES: Final = 8 * 1024
"""The same where the caller does not say how much."""
MAX_EXPORT_BYTES: Final = 8 * 1024
"""Of an export, whose lines may be JSON already; as JSON once more they still fit."""
MAX_JSON_BYTES: Final = 64 * 1024
"""The whole structured content, as JSON in UTF-8."""
MAX_BLOCKS: Final = 50
MAX_EVENTS: Final = 200

LIMITS: Final[Mapping[str, Mapping[str, int]]] = {
    "run": {"max_bytes": MAX_OUTPUT_BYTES},
    "read": {"max_bytes": MAX_OUTPUT_BYTES},
    "blocks": {"page_size": MAX_BLOCKS},
    "get_file": {"max_bytes": MAX_OUTPUT_BYTES},
    "export": {"max_bytes": MAX_EXPORT_BYTES},
}
"""Largest values of parameters here, by operation; the table allows more."""
_RENDERED: Final[Mapping[str, Any]] = {"view": "rendered"}
DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "run": {"max_bytes": MODEL_BYTES, **_RENDERED},
    "read": {"max_bytes": MODEL_BYTES, **_RENDERED},
    **dict.fromkeys(("wait_for", "send", "send_line", "send_keys", "paste", "enter"), _RENDERED),
}
"""What is meant here where a parameter is not given: what a model needs, and no more."""

_LONG_TEXT: Final = 2048
_KEPT: Final = 900


def json_bytes(value: Any) -> int:
    """Return the size of a value as JSON in UTF-8."""
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def lowered(operation: str, params: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with the defaults and within the limits of this surface; `fields` are the model's."""
    result = {**DEFAULTS.get(operation, {}), **params}
    for name, limit in LIMITS.get(operation, {}).items():
        value = result.get(name, fields[name].default)
        # Anything else than a number is the table's to refuse.
        result[name] = min(value, limit) if isinstance(value, int) and not isinstance(value, bool) else value
    return result


def fit(payload: dict[str, Any], again: str = "") -> dict[str, Any]:
    """Return a result that is small enough, with a note when something had to be left out.

    Args:
        payload: the whole result.
        again: how to ask for less, for the note.
    """
    if json_bytes(payload) <= MAX_JSON_BYTES:
        return payload
    found: dict[str, Any] = shortened(payload)
    notes = ["long texts are shortened where that is marked"] if found != payload else []
    for name, items in found.items():
        if not isinstance(items, list):
            continue
        whole = len(items)
        while items and json_bytes(found) > MAX_JSON_BYTES - 512:
            items = items[: len(items) * 3 // 4]
            found[name] = items
        if len(items) < whole:
            notes.append(f"{len(items)} of {whole} {name} are here{f'; {again}' if again else ''}")
    return {**found, NOTE: "; ".join(notes)}


def shortened(value: Any) -> Any:
    """Return a value with the middle of every long text left out, marked."""
    if isinstance(value, str) and len(value) > _LONG_TEXT:
        left_out = len(value) - 2 * _KEPT
        return f"{value[:_KEPT]}[... {left_out} of {len(value)} characters left out ...]{value[-_KEPT:]}"
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shortened(item) for item in value]
    return value


async def block_output(
    caller: Caller, conversation_id: str, block: Mapping[str, Any], max_bytes: int, view: str = "text"
) -> tuple[str, int, bool]:
    """Read a block's output: head and tail of it in a view, its whole size, and whether some was left out."""
    place = {"conversation_id": conversation_id, "block_id": block["block_id"], "view": view}

    async def piece(max_bytes: int, **more: Any) -> tuple[str, int]:
        found = (await caller.call("read", {**place, "max_bytes": max_bytes, **more})).to_dict()
        return found["data"], found["cursor"]

    text, cursor = await piece(max_bytes)
    if not (await piece(1, from_cursor=cursor))[0]:
        return text, len(text.encode("utf-8", "replace")), False
    half = max(1, max_bytes // 2)
    head, cursor = await piece(half)
    begin, end = block["span"]
    if end is None:
        end = (await caller.call("status", {"conversation_id": conversation_id})).to_dict()["cursor"]
    tail, _ = await piece(half, from_cursor=max(cursor, end - half))
    # It may begin inside a line.
    tail = tail.partition("\n")[2] or tail
    whole = block["out_bytes"] or end - begin
    left_out = whole - len(head.encode("utf-8", "replace")) - len(tail.encode("utf-8", "replace"))
    joint = f"\n[... {left_out} of {whole} bytes left out, read on at cursor {cursor} ...]\n"
    return head + joint + tail, whole, True

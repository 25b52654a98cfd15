"""Compact text of results, for a model.

Rules of this file: what we say comes first and what a program wrote comes last, so that output cannot pass for our
words; it is shown with its control characters made visible. What was left out is said with the call that reads on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from blockpty.api.limits import SHOWN_BYTES
from blockpty.surfaces.mcp.schemas import NOTE
from blockpty.surfaces.sanitize import one_line, sanitize

MAX_TEXT_BYTES: Final = 64 * 1024

_JOINT: Final = re.compile(r"\n\[\.\.\. \d+ of (\d+) bytes left out, read on at cursor (\d+) \.\.\.\]\n")
_WHY: Final[Mapping[str, str]] = {
    "timeout": "timed out",
    "password": "the program waits for a password; ask the user to type it, do not guess",
    "incomplete_input": "the shell waits for the rest of the command (a quote or bracket is open); pty_ctrl_c drops it",
    "hooks_lost": "the shell has lost its hooks; pty_status says why, pty_reset starts a new one",
    "input": "the program waits for input",
    "eof": "the session or the shell has ended",
    "prompt": "the shell is at its prompt; nothing that runs could match any more",
    "stopped": "a stop condition came first",
    "max_bytes": "so many bytes came without a match",
    "cancelled": "the wait was cancelled",
}
_OPERATION: Final = re.compile(r"\b(send_line|send_keys|ctrl_c|ctrl_d|request_user_input|enter_shell)\b")
_PREFIXED: Final = r"pty_\1"
_NEXT: Final[Mapping[str, str]] = {
    "approval_denied": "this was refused, and nothing of it was typed. Do not try the same in another form. Continue "
    "with what does not need it, or tell the user what you wanted to do and why",
    "user_in_control": "a person is typing in this terminal. Do not try again until control is handed back (pty_status "
    "says who has control), and look at the screen first then: it may have changed",
    "halted": "a person has stopped you. Do nothing more in this terminal, tell the user where you are, and wait to be "
    "asked to go on",
}


def describe(operation: str, result: Mapping[str, Any], params: Mapping[str, Any]) -> str:
    """Return a result, as structured content has it, in words."""
    note = result.get(NOTE)
    lines = [f"note: {note}"] if note else []
    teller = _TELLERS.get(operation)
    if teller is not None:
        lines.append(teller(result, params))
    else:
        facts = {name: value for name, value in result.items() if name not in ("ok", NOTE) and value is not None}
        lines += _fields(facts)
    return bounded("\n".join(lines)) or "ok"


def bounded(text: str) -> str:
    """Return a text that is not too long; controls made visible take up to eight times the room."""
    data = text.encode("utf-8", "replace")
    if len(data) <= MAX_TEXT_BYTES:
        return text
    note = "note: the end of this text is left out, so ask for less (max_bytes)\n"
    return note + data[:MAX_TEXT_BYTES].decode("utf-8", "ignore")


def describe_error(error: Mapping[str, Any]) -> str:
    """Return an error in words."""
    lines = [f"error {error['code']}: {one_line(error['message'])}"]
    if error["code"] in _NEXT:
        lines.append(f"what to do: {_NEXT[error['code']]}")
    if error["hint"]:
        lines.append(f"hint: {one_line(error['hint'])}")
    if error["details"]:
        lines.append(f"details: {_compact(error['details'])}")
    return "\n".join(lines)


def call_text(tool: str, **arguments: Any) -> str:
    """Return a call as a model would make it."""
    given = {name: value for name, value in arguments.items() if value is not None}
    return f"{tool} {one_line(json.dumps(given, ensure_ascii=False))}"


# One kind of result each


def _run(result: Mapping[str, Any], params: Mapping[str, Any]) -> str:
    block, name = result["block"], params.get("conversation_id")
    lines = [_block_line(block)]
    if block["state"] == "running":
        why = _WHY.get(result["reason"], result["reason"])
        program = one_line(str(result["foreground"]))
        lines.append(f"not ended: {why}; it keeps running (tty {result['tty']}, foreground {program})")
        lines += _hint(result)
        if result["reason"] == "input":
            answer = {"conversation_id": name, "text": "...", "match": [{"token": "INPUT"}, {"token": "PROMPT"}]}
            lines.append(f"to answer with a line: {call_text('pty_send_line', **answer)}")
        else:
            wait = {"conversation_id": name, "match": {"token": "PROMPT"}, "from_cursor": result["cursor"]}
            lines.append(f"to wait for its end: {call_text('pty_wait_for', **wait)}")
    if result["truncated"]:
        middle = {"conversation_id": name, "block_id": block["block_id"], "from_cursor": _middle(result)}
        whole = result["output_bytes"]
        lines.append(f"output: head and tail of {whole} bytes; the middle: {call_text('pty_read', **middle)}")
    return _with_output(lines, result["output"])


def _hint(result: Mapping[str, Any]) -> list[str]:
    """Return the line of a result's hint, with the names that operations have here."""
    hint = result.get("hint")
    return [f"hint: {_OPERATION.sub(_PREFIXED, one_line(hint))}"] if hint else []


def _middle(result: Mapping[str, Any]) -> int | None:
    """Return the cursor at which the left out middle begins; None when a program wrote what looks the same."""
    found = [match for match in _JOINT.finditer(result["output"]) if int(match[1]) == result["output_bytes"]]
    return int(found[0][2]) if len(found) == 1 else None


def _wait(result: Mapping[str, Any], params: Mapping[str, Any]) -> str:
    place = f"cursor {result['cursor']}, mode {result['mode']}, tty {result.get('tty')}"
    if result["matched"]:
        there = ", which was there already" if result["already_there"] else ""
        lines = [f"matched ({result['reason']}, index {result['index']}){there}: {place}"]
        if result.get("match_text") is not None:
            lines.append(f"match: {one_line(result['match_text'])}")
        if result.get("groups"):
            lines.append(f"groups: {_compact(result['groups'])}")
        lines += _hint(result)
        # Not again in the next wait: what lies behind the match.
        return _with_output([*lines, "before the match:"] if result.get("match_text") else lines, result["before"])
    if result.get("foreground"):
        place = f"{place}, foreground {one_line(result['foreground'])}"
    lines = [f"no match ({result['reason']}: {_WHY.get(result['reason'], result['reason'])}): {place}"]
    lines += _hint(result)
    if result["reason"] in ("timeout", "password"):
        again = {
            "conversation_id": params.get("conversation_id"),
            "match": params.get("match"),
            "from_cursor": result["cursor"],
        }
        lines.append(f"to wait on: {call_text('pty_wait_for', **again)}")
    if not result["text"]:
        return "\n".join([*lines, "nothing was printed"])
    shown = len(result["text"].encode("utf-8", "replace"))
    if shown >= SHOWN_BYTES - 4:
        whole = {"conversation_id": params.get("conversation_id"), "from_cursor": result["from_cursor"]}
        lines.append(f"text: the end of it; all of it: {call_text('pty_read', **whole)}")
    return _with_output(lines, result["text"])


def _sent(result: Mapping[str, Any], params: Mapping[str, Any]) -> str:
    if "matched" in result:
        return _wait(result, params)
    return "\n".join([f"{result['accepted_bytes']} bytes were typed; cursor {result['cursor']}", *_hint(result)])


def _read(result: Mapping[str, Any], params: Mapping[str, Any]) -> str:
    shown = len(result["data"].encode("utf-8", "replace"))
    lines = [f"{shown} bytes, next cursor {result['cursor']}{', nothing follows' if result['eof'] else ''}"]
    if not result["eof"]:
        again = {name: params.get(name) for name in ("conversation_id", "block_id", "view")}
        lines.append(f"to read on: {call_text('pty_read', **again, from_cursor=result['cursor'])}")
    if result["truncated_before"] is not None:
        lines.append(f"output before {result['truncated_before']} is no longer kept")
    return _with_output(lines, result["data"])


def _file(result: Mapping[str, Any], _params: Mapping[str, Any]) -> str:
    lines = [f"{result['bytes']} bytes, sha256 {result['digest']}"]
    if result["redacted"]:
        lines.append("secrets were redacted, so this differs from the file")
    if result["data_b64"] is not None:
        return "\n".join([*lines, f"no text; in base64: {result['data_b64']}"])
    return _with_output(lines, result["data"] or "")


def _screen(result: Mapping[str, Any], params: Mapping[str, Any]) -> str:
    column, row = result["cursor_position"]
    size = f"{result['cols']}x{result['rows']}"
    kind = ", alternate screen" if result["alt_screen"] else ""
    lines = [f"screen {size}{kind}, terminal cursor in column {column}, row {row} (from 0); cursor {result['cursor']}"]
    if params.get("since") is not None:
        lines.append(f"changed rows: {_compact(result['changed'])}")
    wait = {"conversation_id": params.get("conversation_id"), "match": {"changed": result["hash"]}}
    lines.append(f"to wait until it changes: {call_text('pty_wait_for', **wait)}")
    return _with_output(lines, result["content"])


def _conversations(result: Mapping[str, Any], _params: Mapping[str, Any]) -> str:
    lines = [f"{len(result['conversations'])} conversations"]
    for one in result["conversations"]:
        facts = f"{one['mode']}, {one['shell']}, {one['blocks']} blocks, cursor {one['cursor']}, in {one['cwd']}"
        lines.append(one_line(f"{one['conversation_id']}: {facts}"))
    return "\n".join(lines)


def _blocks(result: Mapping[str, Any], params: Mapping[str, Any]) -> str:
    lines = [f"{len(result['blocks'])} blocks", *map(_block_line, result["blocks"])]
    if result["next_page"] is not None:
        again = {name: value for name, value in params.items() if name != "page"}
        lines.append(f"more: {call_text('pty_blocks', **again, page=result['next_page'])}")
    return "\n".join(lines)


def _block(result: Mapping[str, Any], params: Mapping[str, Any]) -> str:
    block = result["block"]
    output = call_text("pty_read", conversation_id=params.get("conversation_id"), block_id=block["block_id"])
    return f"{_block_line(block)}\nin {one_line(str(block['cwd']))}\nits output: {output}"


def _events(result: Mapping[str, Any], params: Mapping[str, Any]) -> str:
    lines = [f"{len(result['events'])} events"]
    if result["more"]:
        again = call_text("pty_events", conversation_id=params.get("conversation_id"), from_seq=result["next_seq"])
        lines.append(f"more: {again}")
    for event in result["events"]:
        facts = {
            name: value
            for name, value in event.items()
            if name not in ("seq", "ts", "cursor", "type", "conversation_id")
        }
        lines.append(f"{event['seq']} @{event['cursor']} {event['type']} {_compact(facts)}")
    return "\n".join(lines)


def _search(result: Mapping[str, Any], params: Mapping[str, Any]) -> str:
    lines = [f"{len(result['hits'])} matches, newest first"]
    if result["partial"]:
        why = f"did not answer: {', '.join(result['missing'])}" if result["missing"] else "the time was up"
        lines.append(f"not all was looked at: {one_line(why)}")
    if result["next"] is not None:
        lines.append(f"more: {call_text('pty_search', **{**params, 'page': result['next']})}")
    for hit in result["hits"]:
        place = f"{hit['conversation_id']} {hit['block_id']} @{hit['cursor']}{_of_host(hit)}"
        lines.append(f"{place} {hit['part']}: {one_line(hit['snippet'])}")
        if hit["context"] is not None:
            lines += [f"  {one_line(line)}" for line in hit["context"].split("\n")]
    return "\n".join(lines)


def _overview(result: Mapping[str, Any], _params: Mapping[str, Any]) -> str:
    counts = ", ".join(f"{status}: {count}" for status, count in result["statuses"].items())
    lines = [
        f"{result['total_blocks']} blocks in {result['total_conversations']} conversations; exit statuses {counts}",
        *(["not all of the index is there; there is more"] if result["partial"] else []),
    ]
    lines += [
        f"{one['conversation_id']}{' (live)' if one['live'] else _of_host(one)}: {one['blocks']} blocks, "
        f"{one['failed']} failed; last {_block_line(one['last_block'])}"
        for one in result["conversations"]
    ]
    lines += [f"{one['conversation_id']}{_of_host(one)} {_block_line(one['block'])}" for one in result["blocks"]]
    return "\n".join(lines)


def _of_host(one: Mapping[str, Any]) -> str:
    return f" (of {one_line(one['elsewhere'])})" if one["elsewhere"] else ""


def _diff(result: Mapping[str, Any], _params: Mapping[str, Any]) -> str:
    lines = [_block_line(result["against"]), _block_line(result["block"])]
    lines += ["only the beginnings were compared"] if result["part"] else []
    lines += ["the diff is longer than max_bytes"] if result["truncated"] else []
    return "the outputs are the same" if result["same"] else _with_output(lines, result["diff"])


def _export(result: Mapping[str, Any], _params: Mapping[str, Any]) -> str:
    begin, end = result["span"]
    lines = [f"{result['format']} of {begin} to {end}: {result['export_bytes']} bytes"]
    files = [one_line(result[name]) for name in ("path", "timing_path") if result[name] is not None]
    return "\n".join([*lines, *(f"file: {path}" for path in files)]) if files else _with_output(lines, result["data"])


def _verify(result: Mapping[str, Any], _params: Mapping[str, Any]) -> str:
    compared = f"{result['events']} events, {result['blocks']} blocks, {result['waits']} waits compared"
    lines = [f"{'clean' if result['clean'] else 'differences'}: {compared}"]
    return "\n".join([*lines, *map(_compact, result["differences"])])


_TELLERS: Final = {
    **dict.fromkeys(("send", "send_line", "send_keys", "paste", "ctrl_c", "ctrl_d", "enter"), _sent),
    "run": _run, "wait_for": _wait, "read": _read, "list": _conversations, "blocks": _blocks, "block": _block,
    "events": _events, "search": _search, "overview": _overview, "diff": _diff, "verify": _verify, "screen": _screen,
    "export": _export, "get_file": _file,
}  # fmt: skip


# Pieces


def _block_line(block: Mapping[str, Any]) -> str:
    status = block["state"] if block["exit_status"] is None else f"exit status {block['exit_status']}"
    if block["signal"]:
        status = f"{status} ({block['signal']})"
    lasted = "" if block["duration_ms"] is None else f", {block['duration_ms']} ms"
    command = one_line(block["cmd"])
    command = command if len(command) <= 200 else f"{command[:200]}..."
    return f"{status}: {block['block_id']}{lasted}: {command}"


def _with_output(lines: list[str], output: str) -> str:
    """Return our lines, an empty one, and last what a program wrote."""
    return "\n".join([*lines, "", sanitize(output, colour=False)]) if output else "\n".join([*lines, "(no output)"])


def _fields(facts: Mapping[str, Any]) -> list[str]:
    return [f"{name}: {_compact(value)}" for name, value in facts.items()]


def _compact(value: Any) -> str:
    return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))

"""What a client learns about the tools, and what they answer, measured against the operations themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import blockpty
from blockpty.ops.operation import Effect
from blockpty.ops.table import OPERATIONS
from blockpty.surfaces.mcp.bounds import (
    MAX_EVENTS,
    MAX_JSON_BYTES,
    MAX_OUTPUT_BYTES,
    fit,
    json_bytes,
)
from blockpty.surfaces.mcp.schemas import NOTE
from blockpty.surfaces.mcp.text import describe
from blockpty.surfaces.mcp.tools import TOOLS
from tests.support.async_tests import async_test
from tests.support.mcp_clients import client_of, ok, text_of

READING = {name for name, operation in OPERATIONS.items() if operation.effect is Effect.READ}


# What a client learns about the tools


def test_there_is_a_tool_for_every_operation_of_an_agent_and_no_stub() -> None:
    persons = {"take_control", "release_control", "release", "approve", "deny"}
    made = {"pty_get_cursor", "pty_get_screen", "pty_launch"}
    assert set(TOOLS) == {f"pty_{name}" for name in set(OPERATIONS) - persons} | made


@pytest.mark.parametrize("name", TOOLS)
def test_hints_follow_from_the_effect(name: str) -> None:
    hints = TOOLS[name].listed.annotations
    assert hints is not None
    others = {"pty_get_cursor": "screen", "pty_get_screen": "screen", "pty_launch": "run"}
    operation = others.get(name, name.removeprefix("pty_"))
    reads = operation in READING
    assert (hints.read_only_hint, hints.destructive_hint) == (reads, not reads and operation not in ("open", "resize"))
    assert hints.idempotent_hint is (reads or operation == "resize")
    inputs = OPERATIONS[operation].effect is Effect.INPUT and operation != "resize"
    assert hints.open_world_hint is inputs


# How much


@pytest.mark.needs("bash")
@async_test
async def test_output_is_bounded_and_says_how_to_read_on(home: Path) -> None:
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        result = await client.call_tool(
            "pty_run", {"conversation_id": "c1", "command": "seq 100000", "max_bytes": 1_000_000}
        )
        found = result.structured_content
        assert found["truncated"] and found["output_bytes"] == 588_895
        assert len(found["output"].encode()) <= MAX_OUTPUT_BYTES + 200 and json_bytes(found) <= MAX_JSON_BYTES
        # The call that it names gives the line after the last one of the head.
        head, _, _ = found["output"].partition("\n[... ")
        line = next(line for line in text_of(result).splitlines() if "the middle: pty_read " in line)
        arguments = json.loads(line.partition("pty_read ")[2])
        # The head may have ended within a line.
        piece = await ok(client, "pty_read", **arguments)
        assert (head + piece["data"])[: 2 * MAX_OUTPUT_BYTES // 2].startswith("1\n2\n3\n")
        numbers = (head + piece["data"]).splitlines()[:-1]
        assert [int(number) for number in numbers] == list(range(1, len(numbers) + 1)) and len(numbers) > 4000
        asked = await ok(client, "pty_read", conversation_id="c1", block_id="b1", max_bytes=60_000_000)
        assert len(asked["data"].encode()) <= MAX_OUTPUT_BYTES


@pytest.mark.needs("bash")
@async_test
async def test_bytes_that_take_more_room_in_json(home: Path) -> None:
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        # Each becomes a replacement character of three bytes.
        whole: dict[str, Any] = {"view": "text", "max_bytes": MAX_OUTPUT_BYTES}
        command = "head -c 24000 /dev/zero | tr '\\0' '\\377'"
        wrong = await ok(client, "pty_run", conversation_id="c1", command=command, **whole)
        assert json_bytes(wrong) <= MAX_JSON_BYTES and NOTE in wrong
        assert wrong["truncated"] and wrong["output_bytes"] == 24_000 and "left out, read on" in wrong["output"]
        assert wrong["output"].startswith("\ufffd" * 5000) and wrong["output"].endswith("\ufffd" * 5000)
        one = {"conversation_id": "c1", "block_id": "b1", **whole}
        read = await ok(client, "pty_read", **one)
        assert json_bytes(read) <= MAX_JSON_BYTES and len(read["data"]) > 10_000
        rest = await ok(client, "pty_read", **one, from_cursor=read["cursor"])
        assert len(read["data"]) + len(rest["data"]) == 24_000
        # A control takes six, and view raw has everything twice.
        await ok(client, "pty_run", conversation_id="c1", command="head -c 24000 /dev/zero | tr '\\0' '\\1'")
        one["block_id"] = "b2"
        read = await ok(client, "pty_read", **{**one, "view": "raw"})
        assert json_bytes(read) <= MAX_JSON_BYTES and len(read["data"]) > 5000 and set(read["data"]) == {"\x01"}


@pytest.mark.needs("bash")
@async_test
async def test_a_long_command_is_shortened_not_its_output(home: Path) -> None:
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        command = f": {'x' * 70_000}; seq 3000"
        found = await ok(client, "pty_run", conversation_id="c1", command=command, max_bytes=MAX_OUTPUT_BYTES)
        assert json_bytes(found) <= MAX_JSON_BYTES and "shortened" in found[NOTE]
        assert not found["truncated"] and len(found["output"].splitlines()) == 3000


@pytest.mark.needs("bash")
@async_test
async def test_long_commands_and_many_blocks(home: Path) -> None:
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        conversation = await engine.open("c1", shell="bash")
        for _ in range(3):
            await conversation.run(f": {'x' * 50_000}")
        result = await client.call_tool("pty_blocks", {"conversation_id": "c1", "page_size": 1000})
        found = result.structured_content
        assert json_bytes(found) <= MAX_JSON_BYTES and len(found["blocks"]) == 3
        assert "shortened" in found[NOTE] and found[NOTE] in text_of(result)
        assert "characters left out" in found["blocks"][0]["cmd"]
        jsonschema.validate(found, TOOLS["pty_blocks"].listed.output_schema or {})


@pytest.mark.needs("bash")
@async_test
async def test_a_page_of_blocks_that_is_too_long_is_divided(home: Path) -> None:
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        conversation = await engine.open("c1", shell="bash")
        for _ in range(80):
            await conversation.run(f": {'x' * 5000}")
        found: list[str] = []
        arguments: dict[str, Any] | None = {"conversation_id": "c1", "page": 1, "page_size": 40}
        while arguments is not None:
            result = await client.call_tool("pty_blocks", arguments)
            page = result.structured_content
            assert json_bytes(page) <= MAX_JSON_BYTES
            assert found or "go on with that page_size" in page[NOTE]
            found += [block["block_id"] for block in page["blocks"]]
            more = [line for line in text_of(result).splitlines() if line.startswith("more: pty_blocks ")]
            arguments = json.loads(more[0].partition("pty_blocks ")[2]) if more else None
        assert found == [f"b{number}" for number in range(41, 81)]


def test_a_text_is_bounded_when_controls_are_made_visible() -> None:
    text = describe("read", {"data": "\x9b" * 20_000, "cursor": 5, "eof": True, "truncated_before": None}, {})
    assert len(text.encode()) < 66 * 1024 and text.startswith("note: ") and "<U+009B>" in text


def test_a_long_list_ends_early_with_a_note() -> None:
    found = fit({"ok": True, "conversations": [{"cwd": "/" + "x" * 500}] * 1000, "cursor": 5}, "use filter")
    assert json_bytes(found) <= MAX_JSON_BYTES and 50 < len(found["conversations"]) < 1000
    assert f"{len(found['conversations'])} of 1000 conversations are here; use filter" in found[NOTE]
    assert fit({"ok": True, "text": "x"}) == {"ok": True, "text": "x"}


@pytest.mark.needs("bash")
@async_test
async def test_events_come_in_pages(home: Path) -> None:
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        conversation = await engine.open("c1", shell="bash")
        for _ in range(60):
            await conversation.run("true")
        recorded = [event.to_dict("c1") async for event in conversation.events(follow=False)]
        found, first, pages = [], 0, 0
        while True:
            page = await ok(client, "pty_events", conversation_id="c1", from_seq=first)
            assert len(page["events"]) <= MAX_EVENTS and json_bytes(page) <= MAX_JSON_BYTES
            found += page["events"]
            pages += 1
            first = page["next_seq"]
            if not page["more"]:
                break
        assert pages > 1 and found[: len(recorded)] == json.loads(json.dumps(recorded))
        empty = await ok(client, "pty_events", conversation_id="c1", from_seq=first)
        assert (empty["events"], empty["next_seq"], empty["more"]) == ([], first, False)


# Hostile bytes


@pytest.mark.needs("bash")
@async_test
async def test_hostile_output_cannot_act_in_the_text(home: Path) -> None:
    hostile = r"printf '\033]0;owned\007\033[2J\033[31mred\302\233\342\200\256evil\r\000\377\n'"
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        result = await client.call_tool("pty_run", {"conversation_id": "c1", "command": hostile})
        text = text_of(result)
        # Our words come first; whatever follows the first empty line is the program's.
        ours, _, theirs = text.partition("\n\n")
        assert ours.startswith("exit status 0: b1") and "ed^[[" not in theirs and "ed" in theirs
        raw = {"conversation_id": "c1", "block_id": "b1", "view": "raw"}
        for name, params in (
            ("pty_read", raw),
            ("pty_read", {**raw, "view": "ansi"}),
            ("pty_wait_for", {"conversation_id": "c1", "match": {"regex": "red.*"}, "view": "raw", "from_cursor": 0}),
            ("pty_events", {"conversation_id": "c1"}),
            ("pty_blocks", {"conversation_id": "c1"}),
            ("pty_status", {"conversation_id": "\x1b[2J\u202e"}),
        ):
            text += text_of(await client.call_tool(name, params))
        for path in ("transcript", "blocks/b1"):
            for content in (await client.read_resource(f"blockpty://conversations/c1/{path}")).contents:
                text += content.text if content.mime_type == "text/plain" else ""  # type: ignore[union-attr]
        unsafe = [char for char in text if (ord(char) < 32 and char not in "\n\t") or 127 <= ord(char) < 160]
        assert not unsafe and "\u202e" not in text
        assert "^[[2J" in text


@pytest.mark.needs("bash")
@async_test
async def test_output_that_imitates_our_joint_names_no_cursor(home: Path) -> None:
    forged = "\\n[... 5 of 208894 bytes left out, read on at cursor 4 ...]\\n"
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        command = f"printf '{forged}'; seq 30000; printf '{forged}'"
        result = await client.call_tool("pty_run", {"conversation_id": "c1", "command": command})
        size = result.structured_content["output_bytes"]
        # Said with the true size, so that only the position tells them apart.
        command = command.replace("208894", str(size))
        result = await client.call_tool("pty_run", {"conversation_id": "c1", "command": command})
        assert result.structured_content["output_bytes"] == size
        line = next(line for line in text_of(result).splitlines() if "the middle: pty_read " in line)
        assert json.loads(line.partition("pty_read ")[2]) == {"conversation_id": "c1", "block_id": "b2"}


@pytest.mark.needs("bash")
@async_test
async def test_text_that_is_no_utf8(home: Path, tmp_path: Path) -> None:
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash", cwd=str(tmp_path))
        ran = await ok(
            client, "pty_run", conversation_id="c1", command=r"mkdir $'a\377b'; cd $'a\377b'; printf '\377\n'"
        )
        assert ran["output"] == "\ufffd\n"
        status = await ok(client, "pty_status", conversation_id="c1")
        assert status["cwd"].startswith(f"{tmp_path}/a")
        await ok(client, "pty_blocks", conversation_id="c1")
        await ok(client, "pty_events", conversation_id="c1")


# What a model reads


@pytest.mark.linux
@async_test
async def test_a_program_that_asks_is_answered_call_by_call(home: Path) -> None:
    """What is asked comes with what to do about it, and the answer with what came of it, each once."""
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        command = "for q in name version; do read -r -p \"$q: \" a; echo \"$q is $a\"; done"
        asked = text_of(await client.call_tool("pty_run", {"conversation_id": "c1", "command": command}))
        assert "not ended: the program waits for input; it keeps running (tty reads_line, foreground bash)" in asked
        assert "hint: the command asks for a line: pty_send_line types it, pty_ctrl_d ends the input" in asked
        line = next(line for line in asked.splitlines() if "pty_send_line {" in line)
        answer = json.loads(line.partition("pty_send_line ")[2])
        named = text_of(await client.call_tool("pty_send_line", {**answer, "text": "mine"}))
        assert named.startswith("matched (input, index 0): cursor ") and named.endswith("\n\nname is mine\nversion: ")
        done = text_of(await client.call_tool("pty_send_line", {**answer, "text": "1"}))
        assert done.startswith("matched (prompt, index 1): cursor ") and done.endswith("\n\nversion is 1\n")


@async_test
async def test_a_progress_bar_is_one_line(home: Path) -> None:
    bar = "for i in $(seq 0 100); do printf '\\rDownloading [%-50s] %d%%' '###' $i; done; echo; echo done"
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        params = {"conversation_id": "c1", "command": bar}
        shown = text_of(await client.call_tool("pty_run", params))
        assert len(shown.encode()) < 500 and shown.endswith("100%\ndone\n")
        exact = text_of(await client.call_tool("pty_run", {**params, "view": "text"}))
        assert exact.count("Downloading") == 102


@async_test
async def test_a_table_keeps_its_tabs(home: Path) -> None:
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        ran = await ok(client, "pty_run", conversation_id="c1", command="printf '\\033[1m+\\ta\\033[0m \\n'")
        assert ran["output"] == "+\ta \n"


@async_test
async def test_a_match_does_not_come_twice(home: Path) -> None:
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        await ok(client, "pty_run", conversation_id="c1", command="echo first; echo port 80; echo behind")
        found = {"conversation_id": "c1", "match": {"regex": r"port (\d+)"}, "from_cursor": 0}
        text = text_of(await client.call_tool("pty_wait_for", found))
        assert "match: port 80" in text and text.endswith("before the match:\n\nfirst\n")
        assert ", which was there already: cursor" in text and "behind" not in text

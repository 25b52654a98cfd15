"""What a client is told about the tools, and what they answer, measured against the operations themselves."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

import blockpty
from blockpty.control.principals import Principal, Scope
from blockpty.errors import BlockptyError
from blockpty.ops.operation import Effect
from blockpty.ops.table import OPERATIONS
from blockpty.surfaces.access import Caller
from blockpty.surfaces.mcp.bounds import (
    DEFAULTS,
    MAX_EVENTS,
    MAX_JSON_BYTES,
    MAX_OUTPUT_BYTES,
    MODEL_BYTES,
    fit,
    json_bytes,
)
from blockpty.surfaces.mcp.schemas import NOTE
from blockpty.surfaces.mcp.server import build_server
from blockpty.surfaces.mcp.text import describe
from blockpty.surfaces.mcp.tools import TOOLS, takes_own
from tests.support.async_tests import async_test
from tests.support.mcp_clients import ok, text_of
from tests.support.slow_verify import slow_verify

READING = {name for name, operation in OPERATIONS.items() if operation.effect is Effect.READ}


@asynccontextmanager
async def client_of(engine: blockpty.Engine, principal: Principal | None = None) -> AsyncIterator[Client]:
    """Give a client in this process."""
    caller = Caller(engine) if principal is None else Caller(engine, principal)
    async with Client(build_server(lambda _context: caller), mode="legacy") as client:
        yield client


def every(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every object in a schema."""
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from every(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from every(item)


# What a client is told


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


@pytest.mark.parametrize("name", TOOLS)
def test_schemas_are_plain_and_described(name: str) -> None:
    tool = TOOLS[name].listed
    assert tool.description and tool.output_schema is not None
    for schema in (tool.input_schema, tool.output_schema):
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert not [part for part in every(schema) if "$ref" in part or "$defs" in part]
    # Some clients take neither of these at the top.
    assert not {"anyOf", "oneOf", "allOf"} & set(tool.input_schema)
    for field, schema in tool.input_schema["properties"].items():
        assert schema.get("description"), field
        assert {"type": "null"} not in schema.get("anyOf", ()), field
        assert "title" not in schema and schema.get("default", ...) is not None, field
    operation = OPERATIONS.get(name.removeprefix("pty_"))
    if operation is not None:
        required = [key for key, field in operation.request.model_fields.items() if field.is_required()]
        if "conversation_id" in required and takes_own(operation):
            required.remove("conversation_id")
        assert tool.input_schema.get("required", []) == required
        missing = set(operation.request.model_fields) - set(tool.input_schema["properties"])
        assert missing == ({"follow"} if name == "pty_events" else set())


def test_arguments_that_the_schema_allows_are_those_that_the_table_takes() -> None:
    schema = jsonschema.Draft202012Validator(TOOLS["pty_wait_for"].listed.input_schema)
    good: list[object] = [{"screen": "x"}, {"changed": "0a-1b-2c"}]
    good += ["x", {"regex": "x"}, {"token": "PROMPT"}, {"token": "EOF"}, {"idle_ms": 5}, ["x", {"idle_ms": 5}]]
    bad = ["", {"token": "OTHER"}, {}, {"regex": "x", "idle_ms": 5}, [], 5]
    for match, allowed in [*((match, True) for match in good), *((match, False) for match in bad)]:
        assert schema.is_valid({"conversation_id": "c1", "match": match}) is allowed, match
    assert not schema.is_valid({"conversation_id": "c1", "match": "x", "timeout": 5})
    assert not schema.is_valid({"conversation_id": "../c1", "match": "x"})


def test_the_limits_of_this_surface_are_told() -> None:
    assert TOOLS["pty_run"].listed.input_schema["properties"]["max_bytes"]["default"] == MODEL_BYTES
    assert TOOLS["pty_read"].listed.input_schema["properties"]["max_bytes"]["maximum"] == MAX_OUTPUT_BYTES
    assert str(MAX_OUTPUT_BYTES) in (TOOLS["pty_run"].listed.description or "")


@async_test
async def test_the_prompt_and_the_instructions(home: Path) -> None:
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        assert "pty_run" in (client.instructions or "")
        (prompt,) = (await client.list_prompts()).prompts
        found = await client.get_prompt(prompt.name, {"task": "mend the build", "conversation_id": "c1"})
        text = found.messages[0].content.text  # type: ignore[union-attr]
        named = {word.strip("().,;:") for word in text.split() if word.startswith("pty_")} - {"pty_"}
        assert named <= set(TOOLS) and {"pty_run", "pty_wait_for", "pty_send_line"} <= named
        assert "mend the build" in text and "c1" in text
        for name, arguments in (("other", {}), ("terminal", {"other": "x"})):
            with pytest.raises(MCPError, match="Unknown"):
                await client.get_prompt(name, arguments)


def test_nothing_else_loads_the_sdk() -> None:
    program = (
        "import sys, blockpty, blockpty.surfaces.cli.commands, blockpty.surfaces.access; print('mcp' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout == "False\n"


def test_serving_an_agent_loads_no_engine_and_makes_no_schemas() -> None:
    program = (
        "import sys, blockpty.surfaces.client, blockpty.surfaces.mcp.stdio, blockpty.surfaces.mcp.toolsets as sets; "
        "assert len(sets.tool_set('all').listed) > 40; print(*sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(found.stdout.split())
    assert not {"blockpty.runtime", "blockpty.redact", "blockpty.screen", "blockpty.ops.schema"} & loaded


# What the tools answer


@pytest.mark.needs("bash")
@async_test
async def test_structured_content_is_the_result(home: Path) -> None:
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        caller = Caller(engine)
        await ok(client, "pty_open", conversation_id="c1", shell="bash", cwd="/")
        ran = await ok(
            client, "pty_run", conversation_id="c1", command="printf 'a\\tb\\n'; exit_with() { return 3; }; exit_with"
        )
        assert (ran["output"], ran["block"]["exit_status"]) == ("a\tb\n", 3)
        one = {"conversation_id": "c1"}
        same: list[tuple[str, dict[str, Any]]] = [
            ("status", one),
            ("list", {}),
            ("blocks", one),
            ("block", {**one, "block_id": "b1"}),
            ("read", {**one, "block_id": "b1"}),
            ("read", {**one, "from_cursor": 0, "view": "raw", "max_bytes": 300}),
            ("wait_for", {**one, "match": {"regex": r"(\w)\tb"}, "from_cursor": 0}),
            ("wait_for", {**one, "match": "never", "from_cursor": 0, "timeout_ms": 0}),
        ]
        for name, params in same:
            result = await client.call_tool(f"pty_{name}", params)
            meant = {**DEFAULTS.get(name, {}), **params}
            assert result.structured_content == (await caller.call(name, meant)).to_dict(), name
            assert NOTE not in result.structured_content
        verified = await ok(client, "pty_verify", **one)
        assert verified["clean"] is True
        place, screen = await ok(client, "pty_get_cursor", **one), await ok(client, "pty_screen", **one)
        assert [place["column"], place["row"]] == screen["cursor_position"] and place["cols"] == 80


@pytest.mark.needs("bash")
@async_test
async def test_errors_are_results_in_the_one_shape(home: Path) -> None:
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        caller = Caller(engine)
        assert (await client.call_tool("pty_status", {})).structured_content["error"]["code"] == "bad_request"
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        wrong: list[tuple[str, dict[str, Any], str]] = [
            ("status", {"conversation_id": "nope"}, "not_found"),
            ("status", {"conversation_id": "../c1"}, "bad_request"),
            ("run", {"conversation_id": "c1"}, "bad_request"),
            ("run", {"conversation_id": "c1", "command": "true", "timeout": 5}, "bad_request"),
            ("run", {"conversation_id": "c1", "command": "true", "timeout_ms": "5"}, "bad_request"),
            ("run", {"conversation_id": "c1", "command": "true", "timeout_ms": -5}, "bad_request"),
            ("run", {"conversation_id": "c1", "command": "true", "max_bytes": "many"}, "bad_request"),
            ("wait_for", {"conversation_id": "c1", "match": {"regex": "("}}, "bad_condition"),
            ("wait_for", {"conversation_id": "c1", "match": "x", "from_cursor": 10**9}, "bad_cursor"),
            ("send", {"conversation_id": "c1", "data": "x"}, "no_session"),
            ("block", {"conversation_id": "c1", "block_id": "b99"}, "not_found"),
            ("events", {"conversation_id": "nope"}, "not_found"),
            ("events", {"conversation_id": "c1", "from_seq": -1}, "bad_request"),
        ]
        for name, params, code in wrong:
            result = await client.call_tool(f"pty_{name}", params)
            assert result.is_error, (name, params)
            content = result.structured_content
            assert content["ok"] is False and content["error"]["code"] == code, content
            assert set(content["error"]) == {"code", "message", "hint", "details"}
            assert text_of(result).startswith(f"error {code}: ") and "Traceback" not in text_of(result)
            jsonschema.validate(content, TOOLS[f"pty_{name}"].listed.output_schema or {})
            if name != "events":
                with pytest.raises(BlockptyError) as caught:
                    await caller.call(name, params)
                assert content == caught.value.to_dict()
        followed = await client.call_tool("pty_events", {"conversation_id": "c1", "follow": True})
        assert followed.is_error and "next_seq" in text_of(followed)
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("pty_other", {})
        assert unknown.value.error.code == -32602
        assert unknown.value.error.data["error"]["code"] == "bad_request"


@async_test
async def test_a_defect_has_the_one_shape_too(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        async def list(self, _filter: str | None) -> Any:
            raise RuntimeError("a defect")

    caller = Caller(Broken())
    async with Client(build_server(lambda _context: caller), mode="legacy") as client:
        result = await client.call_tool("pty_list", {})
    assert result.is_error and result.structured_content["error"]["code"] == "internal"
    assert "Traceback" not in text_of(result)
    # The trace is for who runs the server.
    assert caplog.records[-1].exc_info is not None


@pytest.mark.needs("bash")
@async_test
async def test_rights_are_those_of_the_caller(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        for name in ("c1", "c2"):
            await engine.open(name, shell="bash")
        reader = Principal("reader", Scope.READ, frozenset({"c1"}))
        async with client_of(engine, reader) as client:
            listed = await ok(client, "pty_list")
            assert [one["conversation_id"] for one in listed["conversations"]] == ["c1"]
            await ok(client, "pty_status", conversation_id="c1")
            for tool, params in (
                ("pty_status", {"conversation_id": "c2"}),
                ("pty_events", {"conversation_id": "c2"}),
                ("pty_run", {"conversation_id": "c1", "command": "true"}),
                ("pty_launch", {"command": "cat"}),
                ("pty_close", {"conversation_id": "c1"}),
            ):
                result = await client.call_tool(tool, params)
                assert result.structured_content["error"]["code"] == "forbidden", tool
            uris = [resource.uri for resource in (await client.list_resources()).resources]
            assert uris and all("/c1/" in uri for uri in uris)
            with pytest.raises(MCPError) as caught:
                await client.read_resource("blockpty://conversations/c2/transcript")
            assert caught.value.error.data["error"]["code"] == "forbidden"


@async_test
async def test_resources_that_do_not_exist(home: Path) -> None:
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        for path, code in (
            ("conversations/nope/status", "not_found"),
            ("conversations/c1/other", "not_found"),
            ("conversations/c1", "not_found"),
            ("other/c1/status", "not_found"),
            ("conversations/..%2Fc1/status", "bad_request"),
            ("conversations/c1/transcript?from_cursor=-1", "bad_request"),
            ("conversations/c1/transcript?from_cursor=x", "bad_request"),
            ("conversations/c1/status?page=1", "bad_request"),
            ("conversations/c1/transcript?from_cursor", "bad_request"),
        ):
            with pytest.raises(MCPError) as caught:
                await client.read_resource(f"blockpty://{path}")
            assert caught.value.error.data["error"]["code"] == code, path


@pytest.mark.needs("bash")
@async_test
async def test_launch_uses_or_opens_a_conversation(home: Path, tmp_path: Path) -> None:
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        first = await ok(client, "pty_launch", command="cat", working_dir=str(tmp_path), cols=100, rows=30)
        assert (first["working_dir"], first["size"], first["command"]) == (str(tmp_path), [100, 30], "cat")
        name = first["conversation_id"]
        again = await client.call_tool("pty_launch", {"command": "cat", "conversation_id": name})
        assert again.structured_content["error"]["code"] == "interactive_session_active"
        assert again.structured_content["error"]["details"]["conversation_id"] == name
        await ok(client, "pty_ctrl_d", conversation_id=name)
        await ok(client, "pty_wait_for", conversation_id=name, match={"token": "EOF"})
        other = await ok(client, "pty_launch", command="cat", conversation_id=name, working_dir="/")
        assert (other["conversation_id"], other["working_dir"]) == (name, "/")
        shell = await ok(client, "pty_launch")
        assert (shell["session_id"], shell["block_id"], shell["command"]) == (None, None, None)
        wrong = await client.call_tool("pty_launch", {"command": "cat", "cwd": "/"})
        assert wrong.structured_content["error"]["code"] == "bad_request"


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


@pytest.mark.needs("bash")
@async_test
async def test_many_calls_at_once(home: Path) -> None:
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        begun = {
            name: (await ok(client, "pty_open", conversation_id=name, shell="bash"))["cursor"] for name in ("c1", "c2")
        }
        waits = [
            asyncio.create_task(
                ok(client, "pty_wait_for", conversation_id=name, match=f"word {name}", from_cursor=cursor)
            )
            for name, cursor in (*begun.items(),) * 20
        ]
        for name in begun:
            await ok(client, "pty_run", conversation_id=name, command=f"echo word {name}")
        found = await asyncio.gather(*waits)
        assert [one for one in found if not one["matched"]] == []


# What a model reads


@pytest.mark.linux
@async_test
async def test_a_program_that_asks_is_answered_call_by_call(home: Path) -> None:
    """What is asked comes with what to do about it, and the answer with what came of it, each once."""
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        command = "for q in name version; do read -r -p \"$q: \" a; echo \"$q is $a\"; done"
        asked = text_of(await client.call_tool("pty_run", {"conversation_id": "c1", "command": command}))
        assert "not ended: the program waits for input; it runs on (tty reads_line, foreground bash)" in asked
        assert "hint: the command asks for a line: pty_send_line types it, pty_ctrl_d says" in asked
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


@async_test
async def test_progress_is_that_of_the_operation(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[float, float | None, str | None]] = []
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        with slow_verify(monkeypatch) as going:

            async def progress(done: float, total: float | None, message: str | None) -> None:
                told.append((done, total, message))
                going.set()

            arguments = {"conversation_id": "c1"}
            result = await client.call_tool("pty_verify", arguments, progress_callback=progress)
        assert result.structured_content["clean"]
    assert told[0][:2] == (5.0, 8.0) and str(told[0][2]).startswith("verify: 62 %, 5 B of 8 B, ")

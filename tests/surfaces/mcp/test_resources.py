"""Resources: transcripts, blocks and status, and those that do not exist."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

import blockpty
from tests.support.async_tests import async_test
from tests.support.mcp_clients import client_of, connected, each_connection, ok


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


@each_connection
@async_test
async def test_resources(home: Path, connection: str) -> None:
    async with connected(connection, home) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        ran = await ok(client, "pty_run", conversation_id="c1", command="seq 30000")
        await ok(client, "pty_open", conversation_id="gone", shell="bash")
        await ok(client, "pty_close", conversation_id="gone")
        listed = [resource.uri for resource in (await client.list_resources()).resources]
        base = "blockpty://conversations/c1"
        assert listed == [f"{base}/transcript", f"{base}/blocks", f"{base}/screen", f"{base}/status"]
        templates = (await client.list_resource_templates()).resource_templates
        assert {template.name for template in templates} == {"transcript", "blocks", "block", "screen", "status"}

        # Page after page of the transcript, every line once.
        uri, lines = f"{base}/transcript", []
        for _ in range(20):
            (content,) = (await client.read_resource(uri)).contents
            first, _, rest = content.text.partition("\n")
            assert len(content.text.encode()) < 32 * 1024
            if not first.startswith("[... read on"):
                lines.append(content.text)
                break
            lines.append(rest)
            uri = first.partition(": ")[2].removesuffix(" ...]")
        found = [line for line in "".join(lines).splitlines() if line.lstrip("^M").isdecimal()]
        assert [int(line.lstrip("^M")) for line in found] == list(range(1, 30001))

        record, output = (await client.read_resource(f"{base}/blocks/b1")).contents
        assert record.mime_type == "application/json" and '"exit_status": 0' in record.text
        assert ran["truncated"] and output.text[:4_000] == ran["output"][:4_000]
        assert output.text.endswith("29999\n30000\n") and "bytes left out, read on at cursor" in output.text
        (blocks,) = (await client.read_resource(f"{base}/blocks?page=0")).contents
        assert '"b1"' in blocks.text
        (screen,) = (await client.read_resource(f"{base}/screen")).contents
        assert screen.text.startswith("[Terminal Screen - 80x24 - Alt Screen: No") and "\n30000\n" in screen.text
        shown = await ok(client, "pty_get_screen", conversation_id="c1")
        assert (shown["content"], shown["format"]) == (screen.text, "agent")
        shown = await ok(client, "pty_screen", conversation_id="c1", since=shown["seqno"])
        assert "\n30000\n" in shown["content"] and not shown["content"].startswith("[") and shown["changed"] == []
        (status,) = (await client.read_resource(f"{base}/status")).contents
        assert '"idle"' in status.text

"""MCP at the server: where it is not installed, a request to it says so."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.extras import python


def test_a_server_without_the_sdk_says_so_at_mcp(home: Path) -> None:
    done = python(
        """
import asyncio, json
from pathlib import Path
import httpx2
from blockpty.surfaces.http.app import application
from blockpty.surfaces.http.mcp import MountedMcp
from blockpty.surfaces.http.metrics import Metrics
from blockpty.surfaces.private_files import owner_token
from blockpty.surfaces.tokens import TokenBook

async def main():
    home = Path(sys.argv[1])
    mounted = MountedMcp(None, hosts=["localhost"], origins=[])
    app = application(None, TokenBook(home), Metrics(), hosts={"localhost"}, origins=(), mcp=mounted)
    headers = {"Authorization": f"Bearer {owner_token(home)}"}
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://localhost") as client:
        answer = await client.post("/mcp", json={}, headers=headers)
        print(answer.status_code, answer.text)

asyncio.run(main())
""",
        home,
        str(home),
        blocked=("mcp", "mcp_types"),
    )
    status, _, text = done.stdout.partition(" ")
    assert status == "400", done.stdout + done.stderr
    assert json.loads(text)["error"]["hint"] == "pip install 'blockpty[mcp]'"

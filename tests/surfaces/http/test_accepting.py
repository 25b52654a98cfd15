"""Few descriptors, and many connections: what has no token keeps no other client out, and the log stays short."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from blockpty.surfaces.private_files import owner_token
from tests.support.async_tests import async_test
from tests.support.http_client import http, post, serving
from tests.support.processes import stop_server


def blockpty(home: Path, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "blockpty", *arguments, "--home", str(home), "--json"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    lines = done.stdout.splitlines() or done.stderr.splitlines()
    assert lines, done
    found: dict[str, Any] = json.loads(lines[-1])
    return found


@contextmanager
def server_with(home: Path, descriptors: int, **environment: str) -> Iterator[tuple[str, int]]:
    """A server in the background that can never have more descriptors."""
    done = subprocess.run(
        [sys.executable, "-m", "blockpty", "serve", "--background", "--port", "0", "--home", str(home), "--json"],
        capture_output=True, text=True, timeout=60, check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors)),
    )  # fmt: skip
    said = json.loads(done.stdout.splitlines()[-1])
    try:
        yield said["url"], said["pid"]
    finally:
        for one in blockpty(home, "list").get("conversations", ()):
            if one["live"]:
                blockpty(home, "close", one["conversation_id"])
        stop_server(home)


@pytest.mark.linux
def test_connections_without_a_token_keep_no_client_out(home: Path) -> None:
    with server_with(home, 256) as (url, _):
        place = urlsplit(url)
        assert blockpty(home, "open", "one", "--shell", "bash")["conversation_id"] == "one"
        idle = []
        try:
            for _ in range(400):
                connection = socket.create_connection((place.hostname, place.port), timeout=10)
                idle.append(connection)
            # A client with a token, over either way.
            assert httpx2.get(f"{url}/healthz", trust_env=False, timeout=20).status_code == 200
            headers = {"Authorization": f"Bearer {owner_token(home)}"}
            answer = httpx2.post(
                f"{url}/v1/conversations/one/run", json={"command": "echo x"}, headers=headers, trust_env=False,
                timeout=20,
            )  # fmt: skip
            assert answer.json()["output"] == "x\n", answer.text
            assert blockpty(home, "run", "one", "echo y")["block"]["exit_status"] == 0
        finally:
            for connection in idle:
                connection.close()
        assert (home / "server" / "server.log").stat().st_size < 20_000


@pytest.mark.linux
def test_few_descriptors_are_said_and_the_rest_works_on(home: Path) -> None:
    with server_with(home, 72) as (url, _):
        headers = {"Authorization": f"Bearer {owner_token(home)}"}
        with httpx2.Client(base_url=url, headers=headers, trust_env=False, timeout=20) as client:

            def opened(name: str) -> dict[str, Any]:
                answer = client.post("/v1/conversations", json={"conversation_id": name, "shell": "bash"})
                content: dict[str, Any] = answer.json()
                return content

            count, answer = 0, opened("c0")
            while "error" not in answer:
                count, answer = count + 1, opened(f"c{count + 1}")
            assert count
            assert answer["error"]["code"] == "pty_limit", answer
            assert "ulimit" in answer["error"]["hint"]
            for number in range(count):
                done = client.post(f"/v1/conversations/c{number}/run", json={"command": "echo x"}).json()
                assert done["output"] == "x\n"
            client.post("/v1/conversations/c0/close", json={})
            assert "error" not in opened("again")
        assert blockpty(home, "run", "again", "echo x")["block"]["exit_status"] == 0
        assert (home / "server" / "server.log").stat().st_size < 20_000


@async_test
async def test_what_has_ended_keeps_no_descriptors(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blockpty.runtime.engine.UNUSED_SECONDS", 0.2)
    async with serving(home) as url, http(home, url) as client:

        def held() -> list[str]:
            return [
                target
                for name in os.listdir("/proc/self/fd")
                if "/conversations/" in (target := os.path.realpath(f"/proc/self/fd/{name}"))
            ]

        for number in range(4):
            await client.post("/v1/conversations", json={"conversation_id": f"c{number}", "shell": "bash"})
            await post(client, f"c{number}", "run", command="echo x")
            await post(client, f"c{number}", "close")
        assert held()
        for _ in range(300):
            if not held():
                break
            await asyncio.sleep(0.1)
        assert held() == []
        read = await post(client, "c1", "run", command="echo x")
        assert read["error"]["code"] == "exited"

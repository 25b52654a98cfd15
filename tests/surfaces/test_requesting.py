"""A call as a server gets it, and what its answer says."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from blockpty.errors import Busy, InternalError
from blockpty.ops.manifest import manifest_entry
from blockpty.surfaces.requesting import content_of, request_of, wire_params
from blockpty.surfaces.wire import Unanswered


@pytest.mark.parametrize(
    ("name", "params", "method", "target", "body"),
    [
        ("status", {"conversation_id": "c1"}, "GET", "/conversations/c1/status", None),
        ("status", {"conversation_id": "../x y"}, "GET", "/conversations/..%2Fx%20y/status", None),
        ("status", {"conversation_id": ".."}, "GET", "/conversations/%2E%2E/status", None),
        ("status", {"conversation_id": ""}, "GET", "/conversations/-/status", None),
        ("run", {"conversation_id": "c1", "command": "ls"}, "POST", "/conversations/c1/run", {"command": "ls"}),
    ],
)
def test_requests(name: str, params: dict[str, Any], method: str, target: str, body: dict[str, Any] | None) -> None:
    found = request_of(manifest_entry(name), params)
    assert (found[0], found[1].removeprefix("/v1"), found[2]) == (method, target, body)


def test_a_query_has_what_was_given() -> None:
    entry = manifest_entry("read")
    _, target, body = request_of(entry, {"conversation_id": "c1", "from_cursor": 0, "block_id": None, "view": "a&b=é"})
    assert body is None
    assert target.partition("?")[2].split("&") == ["from_cursor=0", "view=a%26b%3D%C3%A9"]


def test_parameters_of_the_caller(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LANG", "C")
    monkeypatch.setenv("SECRET_OF_MINE", "x")
    opened = wire_params("open", {"conversation_id": "c1"}, here=True)
    assert opened["cwd"] == str(tmp_path)
    assert opened["env_from"]["LANG"] == "C" and "SECRET_OF_MINE" not in opened["env_from"]
    assert wire_params("open", {"conversation_id": "c1"}, here=False) == {"conversation_id": "c1"}
    # A directory of this machine means nothing to what is shown of another.
    assert "cwd" not in wire_params("open", {"source": "ssh:host"}, here=True)
    assert wire_params("import_recording", {"path": Path("a.cast")}, here=True)["path"] == str(tmp_path / "a.cast")


def test_bytes_and_waits() -> None:
    assert wire_params("send", {"data": b"\xff", "secret": False}, here=True) == {"data": None, "data_b64": "/w=="}
    waits = {"data": "x", "match": None, "stop": None, "timeout_ms": 5, "view": "text", "max_bytes": None}
    assert wire_params("send", waits, here=True) == {"data": "x"}
    assert wire_params("send", {**waits, "match": "y"}, here=True) == {**waits, "match": "y"}


def test_answers() -> None:
    assert content_of(200, b'{"ok": true, "cursor": 1}') == {"ok": True, "cursor": 1}
    error = {"ok": False, "error": {"code": "busy", "message": "no", "hint": "wait", "details": {"block_id": "b1"}}}
    with pytest.raises(Busy, match="no") as raised:
        content_of(409, json.dumps(error).encode())
    assert (raised.value.hint, raised.value.details) == ("wait", {"block_id": "b1"})
    with pytest.raises(Unanswered):
        content_of(200, b'{"ok": tr')
    for status, body in ((502, b"<html>"), (200, b"[]"), (200, b"null"), (500, b"")):
        with pytest.raises(InternalError, match=str(status)):
            content_of(status, body)
    with pytest.raises(InternalError):
        content_of(200, os.fsencode('{"ok": "true"}'))

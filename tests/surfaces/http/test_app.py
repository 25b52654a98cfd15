"""Application of the server: its paths, their methods, and one shape for what goes wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from blockpty.ops.table import OPERATIONS
from blockpty.runtime.engine import ConversationEngine
from blockpty.surfaces.http.docs_page import DOCS_POLICY
from tests.support.async_tests import async_test
from tests.support.http_server import JSON_TYPE, serving

if TYPE_CHECKING:
    import pytest


@async_test
async def test_a_method_that_a_path_has_not_names_those_it_has(home: Path) -> None:
    paths: dict[str, set[str]] = {}
    for operation in OPERATIONS.values():
        method, path = operation.route
        paths.setdefault(path.format(conversation_id="c1", block_id="b1"), set()).add(method)
    paths |= {"/healthz": {"GET"}, "/metrics": {"GET"}, "/openapi.json": {"GET"}, "/auth/code": {"POST"}}
    paths |= {"/readyz": {"GET"}, "/docs": {"GET"}}
    paths |= {"/auth/token": {"POST"}, "/admin/stop": {"POST"}}
    async with serving(home) as server:
        for path, methods in paths.items():
            for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} - methods:
                answer = await server.ask(method, path, headers=[] if method == "POST" else [JSON_TYPE])
                assert (answer.status, answer.code) == (405, "bad_request"), (method, path)
                assert set(answer.headers["allow"].replace(" ", "").split(",")) - {"HEAD"} == methods, (method, path)
        assert (await server.ask("PUT", "/nothing", headers=[JSON_TYPE])).code == "not_found"


@async_test
async def test_a_defect_is_an_error_like_others(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(self: ConversationEngine, *args: object, **named: object) -> None:
        raise ZeroDivisionError("with a secret in it")

    async with serving(home) as server:
        with monkeypatch.context() as patch:
            for name in ("conversation", "list", "live"):
                patch.setattr(ConversationEngine, name, broken)
            for method, path in (
                ("GET", "/v1/conversations"), ("GET", "/v1/conversations/c1/status"), ("GET", "/metrics"),
                ("POST", "/v1/conversations/c1/run"), ("GET", "/v1/conversations/c1/events"),
            ):  # fmt: skip
                answer = await server.ask(method, path, {"command": "true"} if method == "POST" else None)
                assert (answer.status, answer.code) == (500, "internal"), path
                assert b"secret" not in answer.body
        assert (await server.ask("GET", "/v1/conversations")).status == 200


@async_test
async def test_it_is_served_without_a_token_and_the_server_says_whether_it_is_ready(home: Path) -> None:
    async with serving(home) as server:
        answer = await server.ask("GET", "/docs", token=None)
        assert answer.status == 200 and answer.headers["content-security-policy"] == DOCS_POLICY
        assert (await server.ask("GET", "/readyz", token=None)).content == {"ok": True}

"""Token uses at new addresses: one entry each, also over several runs of a server."""

from __future__ import annotations

from pathlib import Path

from blockpty.spool.audit_log import AuditLog
from blockpty.surfaces.access import OWNER, Principal, Scope
from blockpty.surfaces.http.token_uses import TokenUses
from blockpty.surfaces.tokens import add_token
from tests.support.async_tests import async_test
from tests.support.http_server import serving


def test_an_address_is_new_once(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "home")
    ann = Principal("ann", Scope.READ)
    for _run in range(2):
        uses = TokenUses(log)
        for principal in (OWNER, ann):
            for address in ("unix", "127.0.0.1", "unix"):
                uses(principal, address)
    assert [(one["principal"], one["address"]) for one in log.entries()] == [
        ("owner", "unix"), ("owner", "127.0.0.1"), ("ann", "unix"), ("ann", "127.0.0.1"),
    ]  # fmt: skip
    log.close()


@async_test
async def test_a_server_shows_who_came_from_where_and_what_they_did(home: Path) -> None:
    async with serving(home) as server:
        reader, bound = add_token(home, "tr", "read", None, 0), add_token(home, "ta", "admin", ("a",), 0)
        assert (await server.ask("POST", "/v1/conversations", {"conversation_id": "a"}, token=bound)).status == 200
        assert (await server.ask("GET", "/v1/audit", token=reader)).code == "forbidden"
        assert (await server.ask("GET", "/v1/audit", token=bound)).code == "forbidden"
        of_a = (await server.ask("GET", "/v1/audit?conversation_id=a&verify=true", token=reader)).content
        assert [(one["operation"], one["principal"], one["outcome"]) for one in of_a["entries"]] == [
            ("open", "ta", "done")
        ]
        assert of_a["findings"] == []
        uses = (await server.ask("GET", "/v1/audit?type=token_use")).content["entries"]
        assert {(one["principal"], one["address"]) for one in uses} >= {("tr", "127.0.0.1"), ("ta", "127.0.0.1")}
        first = (await server.ask("GET", "/v1/audit?page_size=1")).content
        older = (await server.ask("GET", f"/v1/audit?page_size=1&page={first['next']}")).content
        assert older["entries"][0]["seq"] == first["entries"][0]["seq"] - 1
        assert (await server.ask("POST", "/v1/conversations/a/close", {}, token=bound)).status == 200

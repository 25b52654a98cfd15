"""The page's files: who may have them, and under which rules a browser runs them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from blockpty.surfaces.http import page
from blockpty.surfaces.http.page import BuiltPage
from tests.support.async_tests import async_test
from tests.support.http_client import serving


@pytest.fixture
def built(tmp_path: Path) -> Iterator[TestClient]:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text('<!doctype html><script src="./assets/index-abc.js"></script>')
    (tmp_path / "embed.html").write_text('<!doctype html><script src="./assets/embed-abc.js"></script>')
    (tmp_path / "assets" / "index-abc.js").write_text("export {}")
    with TestClient(Starlette(routes=[*BuiltPage(tmp_path).routes()])) as client:
        yield client


@pytest.mark.parametrize("place", ["/", "/search", "/search?q=x", "/c/api", "/c/api/b12", "/c/%2e%2e/x"])
def test_every_place_is_the_one_page(built: TestClient, place: str) -> None:
    answer = built.get(place)
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/html")
    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    ("place", "script"),
    [
        ("/", "./assets/index-abc.js"), ("/search?q=/a/b", "./assets/index-abc.js"),
        ("/c/api", "../assets/index-abc.js"), ("/c/api/b12", "../../assets/index-abc.js"),
        ("/c/a%2Fb", "../assets/index-abc.js"), ("/embed/api/screen", "../../assets/embed-abc.js"),
    ],
)  # fmt: skip
def test_addresses_lead_up_to_where_the_server_is(built: TestClient, place: str, script: str) -> None:
    answer = built.get(place)
    assert answer.text == f'<!doctype html><script src="{script}"></script>'
    other = built.get("/c/a/b/c", headers={"If-None-Match": answer.headers["etag"]})
    assert other.status_code == 200, "the page of another depth is another one"


def test_a_place_has_no_more_parts_than_there_are(built: TestClient) -> None:
    assert built.get("/c" + "/a" * 5).status_code == 404


def test_nothing_but_built_scripts_may_run(built: TestClient) -> None:
    for place in ("/", "/assets/index-abc.js", "/assets/none.js"):
        headers = built.get(place).headers
        policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
        assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == "'self'"
        assert (policy["require-trusted-types-for"], policy["trusted-types"]) == ("'script'", "'none'")
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"


def test_assets_are_kept_and_known_by_their_tag(built: TestClient) -> None:
    answer = built.get("/assets/index-abc.js")
    assert answer.text == "export {}" and answer.headers["content-type"].startswith("text/javascript")
    assert "immutable" in answer.headers["cache-control"]
    tag = answer.headers["etag"]
    assert built.get("/assets/index-abc.js", headers={"If-None-Match": f'"x", {tag}'}).status_code == 304
    assert built.get("/assets/index-abc.js", headers={"If-None-Match": tag.removeprefix("W/")}).status_code == 304
    assert built.get("/", headers={"If-None-Match": tag}).status_code == 200


def test_text_is_compressed_for_who_takes_that(built: TestClient, tmp_path: Path) -> None:
    script, font = b"export const a = 1;\n" * 200, bytes(4000)
    (tmp_path / "assets" / "large.js").write_bytes(script)
    (tmp_path / "assets" / "mono.woff2").write_bytes(font)
    with TestClient(Starlette(routes=[*BuiltPage(tmp_path).routes()])) as client:
        for accepted, encoding in (
            ("gzip, deflate, br", "gzip"), ("br;q=1, GZIP;q=0.5", "gzip"), ("gzip;q=0", None), ("identity", None),
            ("xgzip", None),
        ):  # fmt: skip
            answer = client.get("/assets/large.js", headers={"Accept-Encoding": accepted})
            assert answer.content == script and answer.headers["vary"] == "Accept-Encoding"
            assert answer.headers.get("content-encoding") == encoding
            assert (int(answer.headers["content-length"]) < len(script)) is (encoding == "gzip")
        # What is small or compressed already goes as it is.
        for name in ("mono.woff2", "index-abc.js"):
            assert "content-encoding" not in client.get(f"/assets/{name}").headers


@pytest.mark.parametrize("name", ["none.js", "../index.html", "%2e%2e/index.html", "/etc/passwd", "index-abc.js/"])
def test_only_built_files_are_served(built: TestClient, name: str) -> None:
    assert built.get(f"/assets/{name}").status_code in (200, 404)
    assert "root:" not in built.get(f"/assets/{name}").text


def test_without_a_built_page_it_says_so(tmp_path: Path) -> None:
    with TestClient(Starlette(routes=[*BuiltPage(tmp_path / "none").routes()])) as client:
        answer = client.get("/")
    assert answer.status_code == 503 and "without its page" in answer.text
    assert "script-src 'self'" in answer.headers["content-security-policy"]


def _ask(url: str, path: str, method: str = "GET", **headers: str) -> int:
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port)
    with contextlib.closing(connection):
        connection.request(method, path, headers={key.replace("_", "-"): value for key, value in headers.items()})
        return connection.getresponse().status


@async_test
async def test_the_page_needs_no_token_and_all_else_does(home: Path) -> None:
    async with serving(home) as url:

        async def status(path: str, method: str = "GET", **headers: str) -> int:
            return await asyncio.to_thread(_ask, url, path, method, **headers)

        page_status = 200 if (page.BUILT / "index.html").exists() else 503
        assert await status("/") == await status("/c/any") == page_status
        assert await status("/", "HEAD") == page_status
        for path in ("/v1/conversations", "/openapi.json", "/metrics", "/c", "/assets"):
            assert await status(path) == 401, path
        assert await status("/", "POST", Content_Type="application/json") == 401
        assert await status("/", Host="evil.example") == 403
        cross = {"Sec_Fetch_Site": "cross-site"}
        assert await status("/", **cross, Sec_Fetch_Dest="document") == page_status, "a link from elsewhere"
        assert await status("/", **cross, Sec_Fetch_Dest="iframe") == 403
        assert await status("/v1/conversations", **cross, Sec_Fetch_Dest="document") == 403


def test_a_code_goes_into_the_fragment() -> None:
    assert page.page_address("http://127.0.0.1:1", "abc") == "http://127.0.0.1:1/#code=abc"

"""A terminal in a frame of another page: the example of the docs, in a real browser, from a server of its own."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.support.browser import Served, Watched, skip_where_missing

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

pytestmark = [skip_where_missing(), pytest.mark.needs("bash"), pytest.mark.slow, pytest.mark.timeout(240)]

EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "embed.html"


@contextmanager
def _site(page: str) -> Iterator[str]:
    """Serve one page; gives its origin."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = page.encode() if self.path == "/" else b""
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    # By a name of its own, so that it is another site for the browser.
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://localhost:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def _page(served: Served, place: str = "/embed/c1") -> str:
    """The example, with what is the reader's to fill in."""
    token = json.loads(
        served.cli("token", "add", f"frame{place.count('/')}", "--scope", "read", "--conversation", "c1", "--json")
    )["token"]
    text = EXAMPLE.read_text("utf-8")
    assert "http://127.0.0.1:7717" in text and "/embed/demo" in text and "YOUR READ TOKEN" in text
    return (
        text.replace("http://127.0.0.1:7717", served.url).replace("/embed/demo", place)
        .replace("YOUR READ TOKEN", token)
    )  # fmt: skip


def test_an_allowed_page_shows_the_terminal_and_cannot_type(context: BrowserContext, served: Served) -> None:
    with _site(_page(served)) as origin, _site(_page(served, "/embed/c1/blocks")) as other:
        served.kill()
        served.start("--allowed-frame", origin, "--allowed-frame", other)
        watched = Watched(context.new_page())
        sockets: list[str] = []
        watched.page.on("websocket", lambda socket: sockets.append(urlsplit(socket.url).path))
        watched.page.goto(origin)
        frame = watched.page.frame_locator("iframe")
        frame.locator(".chip.run").wait_for()
        served.cli("run", "c1", "echo framed-$((40 + 2))")
        frame.locator(".xterm-rows", has_text="framed-42").wait_for()
        frame.locator(".glass").click()
        watched.page.keyboard.type("echo no\n")
        served.cli("run", "c1", "echo after")
        frame.locator(".xterm-rows", has_text="after").wait_for()
        assert not any("no" in row for row in served.rows())
        assert not any(isinstance(one, bytes) for one in watched.sent)
        watched.page.goto(other)
        watched.page.frame_locator("iframe").locator(".block .row", has_text="framed-42").wait_for()
        assert set(sockets) == {"/v1/conversations/c1/ws"}, "a frame asks for nothing but its conversation"
        watched.page.goto(f"{served.url}/embed/c1")
        watched.page.get_by_text("This frame waits for its page.").wait_for()  # a lent token is kept nowhere
        assert watched.complaints == []


def test_a_page_that_was_not_allowed_cannot_frame_it(context: BrowserContext, served: Served) -> None:
    with _site(_page(served)) as origin:
        watched = Watched(context.new_page())
        watched.page.goto(origin)
        watched.until(lambda: any("frame-ancestors" in one for one in watched.complaints), "the browser refuses")
        watched.until(lambda: watched.page.frames[1].url.startswith("chrome-error:"), "the frame shows an error")

"""The page of a server that a proxy has below a path."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.support.browser import Watched, skip_where_missing
from tests.support.tcp_proxy import between

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

    from tests.support.browser import Served

pytestmark = skip_where_missing()
BELOW = "/tools/blockpty"


def test_every_address_is_below_the_path(context: BrowserContext, served: Served) -> None:
    with between(served.port, BELOW) as proxy:
        served.kill()
        top = f"http://127.0.0.1:{proxy.port}"
        served.start("--allowed-host", f"127.0.0.1:{proxy.port}", "--allowed-origin", top)
        served.cli("run", "c1", "echo found")
        watched = Watched(context.new_page())
        page = watched.page
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        code = json.loads(served.cli("view", "--web", "--json"))["page"].split("#")[1]
        page.goto(f"{top}{BELOW}/#{code}")
        page.click(".side .entry")
        page.locator("#b1 .out", has_text="found").wait_for()
        assert page.url == f"{top}{BELOW}/c/c1"
        watched.until(lambda: any("echo found" in row for row in watched.screen()), "the screen is there")
        # A place with more parts, opened anew; then back inside the page.
        page.click("#b1 .command")
        page.keyboard.press("o")
        page.wait_for_url(f"{top}{BELOW}/c/c1/b1")
        page.reload()
        page.locator("#b1 .out", has_text="found").wait_for()
        assert page.evaluate("document.fonts.check('16px \"JetBrains Mono Variable\"')")
        page.goto(f"{top}{BELOW}/c/c1/replay?at=0")
        page.wait_for_selector(".lane")
        page.goto(f"{top}{BELOW}/search?q=found")
        page.click(".hits a")
        page.wait_for_url(f"{top}{BELOW}/c/c1/b1*")
        page.click(".logo")
        page.wait_for_url(f"{top}{BELOW}/")
        manifest = page.get_attribute("link[rel=manifest]", "href")
        scope = "async (url) => new URL((await (await fetch(url)).json()).scope, new URL(url, location)).href"
        assert page.evaluate(scope, manifest) == f"{top}{BELOW}/"
        page.goto(f"{top}{BELOW}/embed/c1/screen")
        page.wait_for_selector("#page *")
        assert watched.complaints == []
        assert len(watched.opened) >= 4
        ours = f"127.0.0.1:{proxy.port}{BELOW}/"
        assert [one for one in asked + watched.opened if not one.partition("://")[2].startswith(ours)] == []

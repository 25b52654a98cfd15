"""A page whose token is removed or expires: it asks to sign in, says nothing of what it does not know, and goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from blockpty.surfaces.tokens import BROWSERS_NAME
from tests.support.browser import Served, Watched, skip_where_missing

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

pytestmark = [skip_where_missing(), pytest.mark.needs("bash"), pytest.mark.slow, pytest.mark.timeout(240)]

# A refused handshake and a refused call are errors of the console; nothing else may be.
REFUSED = ("WebSocket connection", "Failed to load resource")


def _signed_out(watched: Watched) -> None:
    watched.page.get_by_role("heading", name="Sign in").wait_for()
    assert watched.page.title() == "Sign in · blockpty"
    assert watched.page.locator(".home, .foot, .middle").count() == 0, "nothing says that all is well"


def test_a_token_that_holds_no_more_asks_to_sign_in_and_goes_on_there(context: BrowserContext, served: Served) -> None:
    token = json.loads(served.cli("token", "add", "helper", "--types-as", "user", "--json"))["token"]
    headers = {"Authorization": f"Bearer {token}"}
    code = context.request.post(f"{served.url}/auth/code", headers=headers, data={}).json()["code"]
    watched = Watched(context.new_page())
    page = watched.page
    page.goto(f"{served.url}/c/c1#code={code}")
    page.wait_for_selector(".screen-head .chip.run")

    # Removed while the page is open: it is notified with the next thing that happens.
    served.cli("token", "remove", "helper")
    served.cli("run", "c1", "true")
    _signed_out(watched)
    page.reload()
    _signed_out(watched)
    second = Watched(context.new_page())
    second.page.goto(served.url)
    _signed_out(second)

    page.fill("[name=code]", json.loads(served.cli("view", "--web", "--json"))["page"])
    page.check("[name=stays]")
    page.press("[name=code]", "Enter")
    page.wait_for_selector(".screen-head .chip.run")
    assert page.url == f"{served.url}/c/c1", "where one was"
    second.page.wait_for_selector(".side .entry")  # it is signed in by the first one
    second.page.close()
    assert page.evaluate("[sessionStorage.length, 'blockpty.token' in localStorage]") == [0, True]

    # Expired while the server was away: the handshake is refused, of which a browser does not tell the reason.
    served.kill()
    browsers = served.home / "server" / BROWSERS_NAME
    content = json.loads(browsers.read_text())
    for one in content["browsers"].values():
        one["until"] = 0
    browsers.write_text(json.dumps(content))
    served.start()
    _signed_out(watched)
    assert page.evaluate("[sessionStorage.length, 'blockpty.token' in localStorage]") == [0, False]

    # A page that is opened with an old token says nothing of conversations, and neither that there are none.
    old = {"token": "x" * 43, "scope": "admin", "name": "owner", "person": True}
    page.evaluate("(old) => sessionStorage.setItem('blockpty.token', JSON.stringify(old))", old)
    # Another one that the browser has got is not forgotten with it.
    page.evaluate("localStorage.setItem('blockpty.token', JSON.stringify({ token: 'another' }))")
    page.goto(served.url)
    _signed_out(watched)
    assert page.evaluate("[sessionStorage.length, 'blockpty.token' in localStorage]") == [0, True]
    assert [one for one in watched.complaints if not any(word in one for word in REFUSED)] == []


def test_while_the_server_does_not_answer_nothing_is_said_to_be_well(context: BrowserContext, served: Served) -> None:
    watched = Watched(context.new_page())
    page = watched.page
    page.goto(json.loads(served.cli("view", "--web", "--json"))["page"])
    page.get_by_role("heading", name="Nothing needs you").wait_for()
    page.get_by_text("1 of 1 shells open").wait_for()
    served.kill()
    page.get_by_role("heading", name="The server does not answer").wait_for()
    assert page.get_by_text("Nothing needs you").count() == 0
    served.start()
    page.get_by_role("heading", name="Nothing needs you").wait_for()
    # A conversation that could not be read is not said to be missing, and is read later.
    page.route("**/c1/status", lambda route: route.abort())
    page.click(".side .entry")
    page.locator(".banner", has_text="The server does not answer.").wait_for()
    assert page.get_by_text("There is no such conversation").count() == 0
    page.unroute("**/c1/status")
    page.wait_for_selector(".screen-head .chip.run")
    page.goto(f"{served.url}/c/none")
    page.get_by_text("There is no such conversation").wait_for()
    assert [one for one in watched.complaints if not any(word in one for word in REFUSED)] == []

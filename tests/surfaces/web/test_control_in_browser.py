"""What a person does to shells in the page: stop, halt, release, answer, paste; and what the page says of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.browser import Served, Watched, sign_in, skip_where_missing

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, WebSocketRoute

pytestmark = [skip_where_missing(), pytest.mark.needs("bash"), pytest.mark.slow, pytest.mark.timeout(240)]


def _enter(context: BrowserContext, served: Served) -> Watched:
    """Sign in and go to the conversation; returns when the screen is live."""
    watched = sign_in(context, served)
    watched.page.click(".side .entry")
    watched.page.wait_for_selector(".screen-head .chip.run")
    return watched


def _agent(served: Served) -> dict[str, str]:
    """Return the headers of an agent."""
    token = json.loads(served.cli("token", "add", "helper", "--json"))["token"]
    return {"Authorization": f"Bearer {token}"}


def _types(context: BrowserContext, served: Served, headers: dict[str, str]) -> str:
    """Have an agent run something; return the code of the error, "" for none."""
    body = {"command": "true"}
    answer = context.request.post(f"{served.url}/v1/conversations/c1/run", headers=headers, data=body).json()
    return str(answer.get("error", {}).get("code", ""))


def _command(watched: Watched, words: str) -> None:
    """Give a command by name."""
    watched.page.keyboard.press("Control+k")
    watched.page.keyboard.type(words)
    watched.page.keyboard.press("Enter")


def test_stop_goes_on_to_stronger_signals_and_all_can_be_halted(context: BrowserContext, served: Served) -> None:
    watched = _enter(context, served)
    page = watched.page
    for deaf_to, name, how in (("INT", "End it", "SIGTERM"), ("INT TERM", "Kill it", "SIGKILL")):
        served.cli("exec-block", "c1", f"bash -c 'trap \"\" {deaf_to}; echo up; while :; do sleep 1000; done'")
        page.locator(".block.run .row", has_text="up").wait_for()
        page.get_by_role("button", name="Stop").click()
        page.get_by_role("button", name=name).click()
        page.locator(".block .ending", has_text=f"killed ({how})").wait_for()
        assert page.locator(".choices").count() == 0
    served.cli("exec-block", "c1", "sleep 1000")
    page.locator(".block.run").wait_for()
    page.keyboard.press("Control+Shift+Period")
    page.locator(".block .ending", has_text="interrupted").wait_for()

    headers = _agent(served)
    served.cli("exec-block", "c1", "sleep 1000")
    page.locator(".block.run").wait_for()
    page.click(".logo")
    page.get_by_role("button", name="Stop everything").click()
    page.get_by_text("Agents are halted, and 1 command was interrupted.").wait_for()
    page.get_by_text("owner has halted agents").wait_for()
    assert _types(context, served, headers) == "halted"
    page.get_by_role("button", name="Release").click()
    page.locator(".banner").wait_for(state="detached")
    assert _types(context, served, headers) == ""

    page.click(".side .entry")
    page.wait_for_selector(".screen-head .chip.run")
    _command(watched, "stop everything")
    page.locator(".banner.red", has_text="owner has halted agents").wait_for()
    assert _types(context, served, headers) == "halted"
    page.locator(".banner").get_by_role("button", name="Release").click()
    page.locator(".banner").wait_for(state="detached")
    assert _types(context, served, headers) == ""
    assert watched.complaints == []


def test_what_is_said_of_a_conversation(own_context: BrowserContext, served: Served) -> None:
    """A full disk, what a program has said last, who types and since when, an ended shell."""
    full = True

    def fill(route: WebSocketRoute) -> None:
        """Have the feed say that the disk is full: a real one is in the tests of the server."""
        server = route.connect_to_server()

        def change(message: str | bytes) -> None:
            content: dict[str, Any] = json.loads(message)
            if full and content["type"] == "conversation":
                content["conversation"]["needs"] = ["storage"]
            route.send(json.dumps(content))

        server.on_message(change)

    own_context.route_web_socket("**/v1/ws?*", fill)
    watched = sign_in(own_context, served)
    page = watched.page
    alarm = page.get_by_role("alert")
    alarm.get_by_text("Programs that print wait; nothing is lost.").wait_for()
    assert page.locator(".ask").count() == 0, "nothing that a person could answer"
    page.click(".side .entry")
    page.wait_for_selector(".screen-head .chip.run")
    assert alarm.is_visible()
    full = False
    served.cli("exec-interactive", "c1", "read -p 'Your name, please: ' name")
    alarm.wait_for(state="detached")

    page.locator(".banner code", has_text="Your name, please:").wait_for()
    page.locator(".banner").get_by_role("button", name="Answer").click()
    page.wait_for_selector(".glass.mine")
    watched.until(lambda: page.title() == "You type · blockpty", "the title says it")
    page.keyboard.type("Ada\n")
    page.keyboard.press("Control+]")
    page.wait_for_selector(".glass:not(.mine)")
    watched.until(lambda: page.title() == "c1 · blockpty", "and no more")
    served.cli("take-control", "c1", "--who", "Grace")
    page.locator(".title .chip.user").get_by_text("Grace types since ").wait_for()
    served.cli("release-control", "c1")
    served.cli("exec-interactive", "c1", "read -rs -p 'Secret: ' x")
    page.locator(".banner", has_text="asks for a password").get_by_role("button", name="Ctrl-C").click()
    page.locator(".banner").wait_for(state="detached")

    served.cli("run", "c1", "cd /usr")
    served.cli("close", "c1")
    page.get_by_role("button", name="Open it again").click()
    watched.until(lambda: not page.url.endswith("/c/c1"), "a new conversation")
    page.wait_for_selector(".screen-head .chip.run")
    page.locator(".facts code", has_text="/usr").wait_for()
    served.cli("close", page.url.rpartition("/")[2])
    assert watched.complaints == []

"""The bar of keys that a phone's keyboard lacks: what the program gets for each, and that the page still fits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.browser import Served, Watched, sign_in, skip_where_missing

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext

pytestmark = [skip_where_missing(), pytest.mark.needs("bash"), pytest.mark.slow, pytest.mark.timeout(240)]

# Shows each byte that it gets; some programs ask for other arrows.
RAW = "bash -c 'stty raw -echo; printf \"{mode}\"; cat -v'"


@pytest.fixture(scope="module")
def phone(chromium: Browser) -> Iterator[BrowserContext]:
    made = chromium.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True,
        permissions=["clipboard-read", "clipboard-write"],
    )  # fmt: skip
    made.new_page()  # as in the fixture `shared_context`
    yield made
    made.close()


def _typing(context: BrowserContext, served: Served, mode: str = "") -> Watched:
    watched = sign_in(context, served)
    served.cli("exec-interactive", "c1", RAW.format(mode=mode))
    # Of what an address asks for, nothing takes control.
    watched.page.goto(f"{served.url}/c/c1?take=1")
    watched.page.wait_for_selector(".screen-head .chip.run", state="attached")
    watched.page.get_by_role("button", name="Take over").click()
    watched.page.wait_for_selector(".glass.mine")
    assert sum("take_control" in str(one) for one in watched.sent) == 1
    return watched


def _end(watched: Watched, served: Served) -> None:
    watched.page.goto("about:blank")
    served.cli("release-control", "c1")
    served.cli("close", "c1")


@pytest.mark.parametrize(("mode", "arrows"), [("", "^[["), ("\\e[?1h", "^[O")], ids=["arrows", "application arrows"])
def test_each_key_is_what_a_terminal_sends(phone: BrowserContext, served: Served, mode: str, arrows: str) -> None:
    watched = _typing(phone, served, mode)
    bar = watched.page.get_by_role("toolbar", name="Keys of a terminal")
    sent = ""

    def gives(shown: str) -> None:
        nonlocal sent
        sent += shown
        watched.until(lambda: sent in "".join(watched.screen()), f"{sent!r}: {watched.screen()}")

    def touch(name: str) -> None:
        bar.get_by_role("button", name=name, exact=True).tap()

    try:
        for name, shown in (
            ("Esc", "^["), ("Up", f"{arrows}A"), ("Left", f"{arrows}D"), ("Ctrl+C", "^C"), ("|", "|"), ("~", "~"),
            ("Enter", "^M"),
        ):  # fmt: skip
            touch(name)
            gives(shown)
        # Of the keyboard, which the bar leaves open.
        touch("Ctrl")
        assert bar.get_by_role("button", name="Ctrl", exact=True).get_attribute("aria-pressed") == "true"
        watched.page.keyboard.type("ab")
        gives("^Ab")
        touch("Alt")
        watched.page.keyboard.type("x")
        gives("^[x")
        touch("Alt")
        touch("Right")
        gives("^[[1;3C")
        watched.page.evaluate("navigator.clipboard.writeText('pasted')")
        touch("Paste")
        gives("pasted")
        assert watched.page.evaluate("document.scrollingElement.scrollWidth") <= 390
        # The screen itself is panned: 80 columns are wider than a phone, and keep a size that can be read.
        reached = "(() => { const g = document.querySelector('.glass'); g.scrollLeft = 9e9; return g.scrollLeft })()"
        shown = "document.querySelector('.xterm-screen').offsetWidth - document.querySelector('.glass').clientWidth"
        assert watched.page.evaluate(f"{reached} >= {shown}") and watched.page.evaluate(f"{shown} > 0")
        assert bar.bounding_box()["height"] >= 44  # type: ignore[index]
        assert watched.complaints == []
    finally:
        _end(watched, served)


def test_there_is_none_where_a_mouse_and_a_keyboard_are(context: BrowserContext, served: Served) -> None:
    watched = _typing(context, served)
    assert watched.page.locator(".keybar").count() == 1
    assert not watched.page.locator(".keybar").is_visible()
    _end(watched, served)

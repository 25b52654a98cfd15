"""The strip of a replay in a real browser: marks, seeking while it plays, silences, single changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from blockpty.testing import FakePty, Recording
from tests.support.browser import Served, sign_in, skip_where_missing

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

pytestmark = [skip_where_missing(), pytest.mark.needs("bash"), pytest.mark.slow, pytest.mark.timeout(240)]

# Longer than any test waits.
SILENCE_MS = 240_000
NOW = "Number(document.querySelector('.lane').getAttribute('aria-valuenow'))"
SILENT = """(() => { const part = document.querySelector('.lane u:last-of-type').getBoundingClientRect();
    return part.width / document.querySelector('.lane').getBoundingClientRect().width })()"""


def _recording() -> Recording:
    pty = FakePty()
    pty.spawn()
    pty.prompt()
    pty.run("echo one", b"one\r\n")
    pty.clock.advance(500)
    pty.entry("tick")
    pty.run("false", b"", 1)
    pty.clock.advance(500)
    pty.submit("vim", "session")
    pty.begin()
    pty.output(b"\x1b[?1049hfull")
    pty.clock.advance(500)
    pty.entry("tick")
    pty.output(b" screen")
    pty.clock.advance(500)
    pty.entry("tick")
    pty.output(b"\x1b[?1049l")
    pty.end()
    pty.prompt()
    pty.entry("note", note={"type": "control", "state": "user", "who": "eve"})
    pty.clock.advance(SILENCE_MS)
    pty.entry("tick")
    pty.run("echo two", b"two\r\n")
    pty.entry("exit", status=0, signal=None)
    pty.entry("eof")
    return pty.recording


@pytest.fixture(scope="module")
def played(serve_recording: Callable[[str, Recording], Served]) -> Served:
    return serve_recording("c1", _recording())


def test_the_strip_shows_what_happened_and_is_gone_along(context: BrowserContext, played: Served) -> None:
    blocks = {one["cmd"]: one["span"] for one in json.loads(played.cli("blocks", "c1", "--json"))["blocks"]}
    watched = sign_in(context, played)
    page = watched.page
    page.goto(f"{played.url}/c/c1/replay?at={blocks['false'][0]}")
    page.wait_for_selector(".lane i.fail")
    label = page.locator(".lane .label:not(.pointed)")
    watched.until(lambda: label.inner_text() == "false", "the playhead has the command")
    assert page.locator(".lane i").count() == 4
    assert page.locator(".lane i.full").count() == 1
    assert page.locator(".lane em[title*='eve took over']").count() == 1
    assert page.locator(".lane s").count() > 2, "times stand below it"

    cursor = page.locator(".facts .mono")
    places = [cursor.inner_text()]
    for _ in range(2):
        page.keyboard.press(".")
        watched.until(lambda: cursor.inner_text() != places[-1], "one change on")
        places.append(cursor.inner_text())
    page.keyboard.press(",")
    watched.until(lambda: cursor.inner_text() == places[1], "and back")
    page.keyboard.press("n")
    watched.until(lambda: label.inner_text() == "vim", "the next block")
    for _ in range(9):
        if "full screen" in watched.screen():
            break
        before = cursor.inner_text()
        page.keyboard.press(".")
        watched.until(lambda before=before: cursor.inner_text() != before, "the next change")
    assert "full screen" in watched.screen()
    page.keyboard.press("p")
    watched.until(lambda: label.inner_text() == "false", "the block before")

    at = page.evaluate(NOW)
    page.keyboard.press("Shift+ArrowRight")
    watched.until_script(f"{NOW} - {at} >= 59 && {NOW} - {at} <= 61")
    page.keyboard.press("Shift+ArrowLeft")
    watched.until_script(f"{NOW} - {at} <= 1")

    # A silence takes as much room as it is played.
    assert page.evaluate(SILENT) < 0.5
    page.get_by_label("Skip silence").uncheck()
    watched.until_script(f"{SILENT} > 0.9")
    box = page.locator(".lane").bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 15)
    pointed = page.locator(".lane .pointed")
    pointed.wait_for()
    assert "02:0" in pointed.inner_text() and "cursor from" in pointed.inner_text()
    assert watched.complaints == []


def test_a_seek_while_it_plays_plays_on_and_silence_is_skipped(context: BrowserContext, played: Served) -> None:
    blocks = {one["cmd"]: one["span"] for one in json.loads(played.cli("blocks", "c1", "--json"))["blocks"]}
    watched = sign_in(context, played)
    page = watched.page
    page.goto(f"{played.url}/c/c1/replay?at={blocks['vim'][1]}")
    page.wait_for_selector(".lane i.fail")
    page.get_by_label("Skip silence").uncheck()
    page.get_by_label("Play").click()
    page.wait_for_selector(".controls [aria-label=Pause]")
    box = page.locator(".lane").bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 15)
    watched.until_script(f"{NOW} > {SILENCE_MS / 2000 - 5} && {NOW} < {SILENCE_MS / 2000 + 10}")
    assert "two" not in watched.screen()
    assert page.locator(".controls [aria-label=Pause]").count() == 1, "it plays on, in the silence"
    page.get_by_label("Skip silence").check()
    watched.until(lambda: "two" in watched.screen(), "it was not waited for")
    page.wait_for_selector(".controls [aria-label=Play]")
    # Back from the end it plays from there, and not from the beginning.
    page.keyboard.press("p")
    watched.until(lambda: "two" not in watched.screen(), "the block before")
    sent = len(watched.sent)
    page.get_by_label("Play").click()
    watched.until(lambda: any("resume" in str(one) for one in watched.sent[sent:]), "it plays")
    assert not any("seek" in str(one) for one in watched.sent[sent:])
    # On a button that was reached by keys, Space is the button's.
    page.keyboard.press("Tab")
    assert "Previous" in page.evaluate("document.activeElement.textContent")
    page.keyboard.press(" ")
    watched.until(lambda: any("step" in str(one) for one in watched.sent[sent:]), "it is pressed")
    assert watched.complaints == []

"""Lists of blocks in a real browser: filters and counts of a long conversation, paging, the map, a block alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from blockpty.testing import FakePty, Recording
from tests.support.browser import Served, Watched, sign_in, skip_where_missing

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Request, Route

pytestmark = [skip_where_missing(), pytest.mark.needs("bash"), pytest.mark.slow, pytest.mark.timeout(240)]

COUNT = 600
SLOW = 5
# Every fiftieth fails, and prints more than the others.
FAILED = [f"b{number}" for number in range(3, COUNT + 1, 50)]
SHOWN = "[...document.querySelectorAll('.block')].map((one) => one.id)"
BOX = "document.querySelector('.blocks')"
# The end of a frame: what is changed between two of them is never seen.
PAINTED = """new Promise((done) => requestAnimationFrame(() => new ResizeObserver((_, it) => (it.disconnect(), done()))
    .observe(document.body)))"""
# Where something stands in the window, as it is painted.
TOP = f"(one) => {PAINTED}.then(() => document.querySelector(one).getBoundingClientRect().top)"
# The first block in view, and where it stands there.
FIRST = f"""{PAINTED}.then(() => {{ const top = {BOX}.getBoundingClientRect().top;
    const one = [...document.querySelectorAll('.block')].find((one) => one.getBoundingClientRect().bottom > top);
    return one && [one.id, one.getBoundingClientRect().top - top] }})"""


def _recording() -> Recording:
    pty = FakePty()
    pty.spawn()
    pty.prompt()
    for number in range(1, COUNT + 1):
        pty.clock.advance(1000)
        if f"b{number}" in FAILED:
            pty.run("make check", b"".join(b"line %d of %d\r\n" % (line, number) for line in range(1, 41)), 2)
        elif number == SLOW:
            pty.submit("sleep 20")
            pty.begin()
            pty.clock.advance(20_000)
            pty.entry("tick")
            pty.end()
            pty.prompt()
        else:
            pty.run(f"echo {number}", b"%d\r\n" % number)
    pty.entry("exit", status=0, signal=None)
    pty.entry("eof")
    return pty.recording


@pytest.fixture(scope="module")
def long(serve_recording: Callable[[str, Recording], Served]) -> Served:
    """A server with a conversation of many blocks."""
    return serve_recording("long", _recording())


def _asked(watched: Watched) -> list[str]:
    """Return a list that grows with what the page asks of blocks."""
    asked: list[str] = []

    def requested(request: Request) -> None:
        path = urlsplit(request.url).path
        if "/blocks" in path or path.endswith("/block"):
            asked.append(request.url)

    watched.page.on("request", requested)
    return asked


def _tab(watched: Watched, name: str) -> str:
    return watched.page.locator(".tabs button", has_text=name).inner_text()


def test_filters_and_counts_know_all_blocks(context: BrowserContext, long: Served) -> None:
    watched = sign_in(context, long)
    page = watched.page
    page.goto(f"{long.url}/c/long")
    page.wait_for_selector(f"#b{COUNT}")
    watched.until(lambda: _tab(watched, "All") == f"All {COUNT:,}", "all are counted")
    assert [_tab(watched, name) for name in ("Failed", "Slow", "Agent", "You")] == [
        f"Failed {len(FAILED)}", "Slow 1", f"Agent {COUNT:,}", "You 0",
    ]  # fmt: skip
    page.keyboard.press("F")
    watched.until_script(f"{SHOWN}.join() === '{','.join(FAILED)}'")
    page.keyboard.press("S")
    watched.until_script(f"{SHOWN}.join() === 'b{SLOW}'")
    page.get_by_label("Seconds from which on a block is slow").fill("30")
    page.get_by_text(f"The filter hides all {COUNT:,} blocks.").wait_for()
    page.get_by_label("Seconds from which on a block is slow").fill("19.5")
    page.wait_for_selector(f"#b{SLOW}")
    page.reload()
    page.wait_for_selector(f"#b{COUNT}")
    page.keyboard.press("S")
    assert page.get_by_label("Seconds from which on a block is slow").input_value() == "19.5", "the browser keeps it"
    page.get_by_role("button", name="All").click()
    page.get_by_label("Only commands with this text").fill("make")
    watched.until_script(f"{SHOWN}.join() === '{','.join(FAILED)}'")
    watched.until(lambda: _tab(watched, "All") == f"All {len(FAILED)}", "the counts are those of the text")
    watched.until(lambda: page.locator(".map i.fail").count() == len(FAILED), "so is the map")
    assert watched.complaints == []


def test_a_long_list_is_read_in_pages_and_stays_where_it_is(context: BrowserContext, long: Served) -> None:
    watched = sign_in(context, long)
    page = watched.page
    page.goto(f"{long.url}/c/long")
    page.wait_for_selector(f"#b{COUNT}")
    watched.until(lambda: _tab(watched, "All") == f"All {COUNT:,}", "all are counted")
    at = int(page.evaluate(FIRST)[0][1:])
    page.keyboard.press("b")
    watched.until(lambda: int(page.evaluate(FIRST)[0][1:]) < at - 5, "a page up")
    # Outputs may still come in and take room, so that a page down ends at another block than the first page was.
    up = int(page.evaluate(FIRST)[0][1:])
    page.keyboard.press("Space")
    watched.until(lambda: int(page.evaluate(FIRST)[0][1:]) > up + 5, "a page down")
    # Up to the first one, in steps, and at each what is looked at stays where it is.
    first = COUNT
    while first > 1:
        page.evaluate(f"{BOX}.scrollTop = 500")
        before = page.evaluate(FIRST)
        watched.until_script(f"{SHOWN}[0] !== 'b{first}'")
        first = int(page.evaluate(SHOWN)[0][1:])
        after = page.evaluate(FIRST)
        assert after[0] == before[0] and abs(after[1] - before[1]) < 1, (before, after)
        assert page.locator(".block").count() <= 400
    assert page.get_by_role("button", name="To the newest block").is_visible()
    # And down again.
    while page.locator(f"#b{COUNT}").count() == 0:
        last = page.evaluate(SHOWN)[-1]
        page.evaluate(f"{BOX}.scrollTop = {BOX}.scrollHeight - {BOX}.clientHeight - 500")
        before = page.evaluate(FIRST)
        watched.until_script(f"{SHOWN}.at(-1) !== '{last}'")
        after = page.evaluate(FIRST)
        assert after[0] == before[0] and abs(after[1] - before[1]) < 1, (before, after)
        assert page.locator(".block").count() <= 400
    assert watched.complaints == []


def test_what_is_read_stays_where_it_is_whatever_changes_above_it(context: BrowserContext, long: Served) -> None:
    """Without help of the browser: not every one has some."""
    watched = sign_in(context, long)
    page = watched.page
    page.goto(f"{long.url}/c/long")
    page.wait_for_selector(f"#b{COUNT} .row")
    watched.until(lambda: _tab(watched, "All") == f"All {COUNT:,}", "all are counted")
    assert page.evaluate(f"getComputedStyle({BOX}).overflowAnchor") == "none"
    held: list[Route] = []
    page.route("**/stream?*", lambda route: held.append(route))
    assert page.locator("#b553 .row").count() == 0
    page.evaluate("document.querySelector('#b558').scrollIntoView()")
    before = page.evaluate(TOP, "#b558")
    drawn = "['#b553', '#b557', '#b558'].every((one) => document.querySelector(`${one} .row`))"

    def are_drawn() -> bool:
        while held:
            held.pop().continue_()
        return bool(page.evaluate(drawn))

    watched.until(are_drawn, "outputs above it are drawn")
    assert page.evaluate(TOP, "#b558") == before
    page.unroute("**/stream?*")
    # All are folded, and shown again.
    page.keyboard.press("Z")
    page.wait_for_selector("#b553 .row", state="detached")
    assert page.evaluate(TOP, "#b558") == before
    page.keyboard.press("Z")
    page.wait_for_selector("#b553 .row")
    assert page.evaluate(TOP, "#b558") == before
    # A line within an output, which is shown whole, in larger letters, and folded: then its block is at the top.
    last = "#b553 .row:last-child"
    page.click("#b558 .command")
    page.keyboard.press("{")
    page.wait_for_selector("#b553.selected")
    edge = page.evaluate(f"{BOX}.getBoundingClientRect().top")

    def is_at_top() -> bool:
        """Outputs that are drawn just then may take it elsewhere."""
        page.evaluate("(one) => document.querySelector(one).scrollIntoView()", last)
        return bool(page.evaluate(TOP, last) == edge)

    watched.until(is_at_top, "the line is at the top")
    page.keyboard.press("Enter")
    watched.until(lambda: page.locator("#b553 .row").count() == 40, "all of it is shown")
    assert page.evaluate(TOP, last) == edge
    page.keyboard.press("+")
    watched.until_script(f"document.querySelector('{last}').clientHeight === 21")
    assert abs(page.evaluate(TOP, last) - edge) <= 1
    page.keyboard.press("-")
    page.keyboard.press("z")
    watched.until(lambda: page.locator("#b553 .row").count() == 0, "it is folded")
    assert page.evaluate(TOP, "#b553") == edge
    assert watched.complaints == []


def test_a_block_is_shown_alone_and_among_the_others(context: BrowserContext, long: Served) -> None:
    """By a token that may only read, with few requests however far away it is."""
    token = json.loads(long.cli("token", "add", "watcher", "--scope", "read", "--json"))["token"]
    code = context.request.post(f"{long.url}/auth/code", headers={"Authorization": f"Bearer {token}"}, data={}).json()
    watched = Watched(context.new_page())
    page = watched.page
    page.goto(f"{long.url}/#code={code['code']}")
    page.wait_for_selector(".side .entry")
    (third,) = [one for one in json.loads(long.cli("blocks", "long", "--json"))["blocks"] if one["block_id"] == "b3"]
    asked = _asked(watched)
    page.goto(f"{long.url}/c/long/b3?at={third['span'][1] - 3}")
    page.locator("#b3 .row", has_text="line 40 of 3").wait_for()
    watched.until(lambda: page.locator("#b3 .row").count() == 40, "all of it is there")
    assert page.evaluate(SHOWN) == ["b3"]
    watched.until(lambda: page.locator(".map").count() == 0 and len(asked) >= 2, "nothing else is shown")
    assert sum("/blocks/b3" in one for one in asked) == 1
    # The others are two pages.
    page.get_by_text("Show it among the others").click()
    page.wait_for_selector("#b4")
    page.wait_for_selector("#b3.selected")
    assert urlsplit(page.url).path == "/c/long"
    assert sum("before_seq=4&" in f"{one}&" for one in asked) == 1
    assert page.locator(f"#b{COUNT}").count() == 0, "what is between is not loaded"
    page.keyboard.press("o")
    watched.until_script(f"{SHOWN}.join() === 'b3'")
    assert urlsplit(page.url).path == "/c/long/b3"
    page.keyboard.press("o")
    page.wait_for_selector("#b4")
    page.get_by_role("button", name="To the newest block").click()
    page.wait_for_selector(f"#b{COUNT}")
    watched.until_script(f"{BOX}.scrollHeight - {BOX}.scrollTop - {BOX}.clientHeight < 1")
    _answers_that_come_too_late(watched, long)
    assert watched.complaints == []


def _answers_that_come_too_late(watched: Watched, long: Served) -> None:
    """A block was to be shown alone, but then the others were wanted again, or another block."""
    page = watched.page
    held: list[Route] = []
    page.goto(f"{long.url}/c/long/b3")
    page.wait_for_selector("#b3.selected")
    page.keyboard.press("o")
    page.wait_for_selector("#b4")
    page.route("**/blocks/b3", lambda route: held.append(route))

    def ask() -> None:
        page.keyboard.press("o")
        watched.until(lambda: bool(held), "it is asked for")

    def answer() -> None:
        with page.expect_event("requestfinished", lambda request: request.url.endswith("/blocks/b3")):
            held.pop().continue_()
        page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")

    ask()
    page.keyboard.press("o")
    page.wait_for_selector("#b3.selected")
    answer()
    page.keyboard.press("}")
    page.wait_for_selector("#b53.selected")
    assert urlsplit(page.url).path == "/c/long", "all are shown"
    page.keyboard.press("{")
    page.wait_for_selector("#b3.selected")
    ask()
    page.evaluate(
        "(to) => { history.pushState(null, '', to); dispatchEvent(new PopStateEvent('popstate')) }", "/c/long/b4"
    )
    watched.until_script(f"{SHOWN}.join() === 'b4'")
    answer()
    assert page.evaluate(SHOWN) == ["b4"]
    page.unroute("**/blocks/b3")


def test_a_failure_near_by_is_found_before_all_blocks_are_read(context: BrowserContext, long: Served) -> None:
    watched = sign_in(context, long)
    page = watched.page
    held: list[Route] = []
    page.route("**/blocks?order=newest&page_size=500&before_seq=*", lambda route: held.append(route))
    page.goto(f"{long.url}/c/long/b53")
    page.wait_for_selector("#b53.selected")
    page.keyboard.press("o")
    page.wait_for_selector("#b54")
    watched.until(lambda: bool(held), "the others are being read")
    page.keyboard.press("{")
    page.wait_for_selector("#b3.selected")
    held[0].continue_()
    page.unroute("**/blocks?order=newest&page_size=500&before_seq=*")
    page.keyboard.press("}")
    page.wait_for_selector("#b53.selected")
    assert watched.complaints == []


def test_a_block_that_is_shown_takes_no_key_from_where_one_types(context: BrowserContext, long: Served) -> None:
    """It has the focus a frame later, when the palette may be open, or a filter is being typed."""
    watched = sign_in(context, long)
    page = watched.page
    page.goto(f"{long.url}/c/long")
    page.wait_for_selector(f"#b{COUNT}")
    page.keyboard.press("k")
    page.wait_for_selector(".block.selected:focus")
    # In one turn of the browser's loop: on a slow machine people are as fast.
    focused = page.evaluate(
        """async () => {
          const press = (key, ctrlKey) => document.activeElement
            .dispatchEvent(new KeyboardEvent('keydown', { key, ctrlKey, bubbles: true, cancelable: true }));
          press('k', false);
          press('k', true);
          for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
          return document.activeElement.id }"""
    )
    assert focused == "palette-box"
    page.keyboard.press("Escape")
    page.locator(".palette").wait_for(state="hidden")
    box = page.get_by_label("Only commands with this text")
    box.fill("echo")
    watched.until_script(f"{SHOWN}.length && !{SHOWN}.includes('b553')")
    assert page.evaluate(f"{PAINTED}.then(() => document.activeElement.type)") == "search"
    assert watched.complaints == []


def test_a_block_that_is_not_there_is_said_to_be_missing(context: BrowserContext, long: Served) -> None:
    watched = sign_in(context, long)
    asked = _asked(watched)
    for name in (f"b{COUNT + 1}", "no-block"):
        watched.page.goto(f"{long.url}/c/long/{name}")
        watched.page.get_by_text(f"There is no block {name} here").wait_for()
        assert sum(name in one for one in asked) == 1
        assert watched.page.locator(".block").count() == 0
    watched.page.get_by_text("Show the newest blocks").click()
    watched.page.wait_for_selector(f"#b{COUNT}")
    assert [one for one in watched.complaints if "Failed to load resource" not in one] == []


def test_the_map_and_the_runs_of_a_command_are_those_of_all_blocks(context: BrowserContext, long: Served) -> None:
    watched = sign_in(context, long)
    page = watched.page
    page.goto(f"{long.url}/c/long")
    page.wait_for_selector(f"#b{COUNT}")
    watched.until(lambda: page.locator(".map i.fail").count() == len(FAILED), "all are in the map")
    strip = page.locator(".map").bounding_box()
    mark = page.locator(".map i.fail").first.bounding_box()
    assert strip and mark and mark["y"] < strip["y"] + strip["height"] / 10
    page.mouse.click(mark["x"] + 3, mark["y"] + mark["height"] / 2)
    page.wait_for_selector(".block.selected")
    assert int(page.locator(".block.selected").get_attribute("id")[1:]) < 10  # type: ignore[index]
    page.keyboard.press("}")
    failed = page.locator(".block.fail.selected")
    failed.wait_for()
    assert page.locator(".runs a").count() == len(FAILED)
    page.locator(".runs a").last.click()
    page.wait_for_selector(f"#{FAILED[-1]}.selected")
    assert urlsplit(page.url).path == "/c/long"
    page.keyboard.press("f")
    page.keyboard.insert_text("line 7 of 153")
    page.get_by_text("1 match", exact=True).wait_for()
    assert page.locator(".map i.hit").count() == 1
    page.keyboard.press("Enter")
    page.wait_for_selector("#b153.selected")
    assert watched.complaints == []


def test_a_reader_sees_what_came_and_a_hidden_page_draws_nothing(context: BrowserContext, served: Served) -> None:
    served.cli("run", "c1", "seq 1 100; false", check=False)
    watched = sign_in(context, served)
    page = watched.page
    received: list[int] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: received.append(len(frame))))
    page.goto(f"{served.url}/c/c1")
    page.wait_for_selector(".screen-head .chip.run")
    page.locator("#b1 .fold button").click()
    watched.until_script("document.querySelectorAll('#b1 .row').length === 100")
    watched.until_script(f"{BOX}.scrollTop > 500")
    page.evaluate(f"{BOX}.scrollTop = 100")
    before = page.evaluate(TOP, "#b1 .row:nth-child(9)")
    served.cli("exec-interactive", "c1", "cat")
    page.wait_for_selector("#b2.run")
    served.cli("send", "c1", "one\ntwo\n")  # the terminal echoes them, and cat prints them
    # The end of the line with the command may come behind the news that it runs.
    expected = ["1 new block, 4 new lines", "1 new block, 5 new lines"]
    watched.until(lambda: page.locator(".pill").inner_text() in expected, "blocks and lines are counted")
    page.locator(".banner", has_text="waits for a line").wait_for()
    assert page.evaluate(TOP, "#b1 .row:nth-child(9)") == before, "neither the block nor the banner moves what is read"
    page.locator(".pill").click()
    page.locator(".pill").wait_for(state="detached")

    hide = """(hidden) => { Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
        document.dispatchEvent(new Event('visibilitychange')); }"""
    page.evaluate(hide, True)
    served.cli("ctrl-d", "c1")
    page.wait_for_selector("#b2.ok")
    before, sent = watched.screen(), len(watched.sent)
    received.clear()
    served.cli("run", "c1", "seq 1 50000")
    page.wait_for_selector("#b3.ok")
    assert watched.screen() == before and len(watched.sent) == sent, "blocks are followed, and nothing is drawn"
    assert sum(received) < 100_000, "no more than a window of it was sent"
    page.evaluate(hide, False)
    watched.until(lambda: watched.screen() == served.rows(), "the screen is that of the engine")

    def command(words: str) -> None:
        page.keyboard.press("Control+k")
        page.keyboard.type(words)
        page.locator("[role=option]", has_text=words).wait_for()
        page.keyboard.press("Enter")

    with page.expect_download() as saved:
        command("export this conversation")
    assert saved.value.suggested_filename == "c1.html"
    assert "seq 1 50000" in Path(saved.value.path()).read_text("utf-8")
    command("close this conversation")
    page.locator(".banner", has_text="The shell has ended").wait_for()
    page.keyboard.press("Control+k")
    page.locator("[role=option]", has_text="export this conversation").wait_for()
    assert page.locator("[role=option]", has_text="close this conversation").count() == 0
    assert watched.complaints == []

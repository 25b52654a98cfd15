"""The places of the page in a real browser: home, search, find, replay, commands by name; keys, phone, axe."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.browser import Served, Watched, end_of_row, sign_in, skip_where_missing
from tests.support.processes import stop_server
from tests.support.profile import some_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Route

pytestmark = [skip_where_missing(), pytest.mark.needs("bash"), pytest.mark.slow, pytest.mark.timeout(240)]

# What a page needs two columns for, a phone shows below one another.
PLACES = ("/", "/c/c1", "/c/c1/b2", "/c/c1/replay?at=0", "/search?q=two")
SIDEWAYS = "document.scrollingElement.scrollWidth > innerWidth"


def _filled(home: Path) -> Served:
    started = Served(home)
    started.cli("open", "c1", "--shell", "bash")
    for command in ("echo one; printf '%0304d\\n' 7", "seq 1 300; echo two words", "false", "echo 'two <b>'"):
        started.cli("run", "c1", command, check=False)
    return started


@pytest.fixture
def served(home: Path) -> Iterator[Served]:
    started = _filled(home)
    yield started
    started.stop()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, homes: dict[Path, str]) -> Iterator[Served]:
    """The same for all tests that only look at it."""
    top = tmp_path_factory.mktemp("h")
    homes[top] = __name__
    (top / "home").mkdir(mode=0o700)
    started = _filled(top / "home")
    yield started
    started.stop()
    stop_server(top / "home")


def _conversation(watched: Watched, served: Served, path: str = "/c/c1") -> None:
    watched.page.goto(served.url + path)
    watched.page.wait_for_selector(".screen-head .chip.run")


def _session(context: BrowserContext, served: Served, command: str) -> Watched:
    """Have a program run in another conversation, and look at the first page."""
    served.cli("open", "c2", "--shell", "bash")
    served.cli("exec-interactive", "c2", command)
    return sign_in(context, served)


def test_the_first_page_shows_what_runs_and_what_failed(context: BrowserContext, served: Served) -> None:
    watched = _session(context, served, "printf 'first \\e[31mred\\e[30;42mback\\e[m\\n'; cat")
    try:
        tile = watched.page.locator(".tile")
        tile.locator(".mini span.a1", has_text="red").wait_for()
        on_green = tile.locator(".mini span.b2", has_text="back")
        assert on_green.evaluate("(one) => getComputedStyle(one).backgroundColor") == "rgb(29, 122, 70)"
        assert on_green.evaluate("(one) => getComputedStyle(one).color") == "rgb(235, 236, 236)", "made lighter"
        served.cli("send", "c2", "typed\n")
        tile.locator(".mini div", has_text="typed").first.wait_for()
        # A title ends with the byte of the bell, and is none.
        served.cli("send", "c2", "\x1b]0;title\x07 titled\n")
        tile.locator(".mini div", has_text="titled").first.wait_for()
        bell = tile.locator(".chip", has_text="bell")
        marked = watched.page.locator(".side .why", has_text="The bell has rung")
        assert bell.count() == marked.count() == 0
        served.cli("send", "c2", "\x07\n")
        bell.wait_for()
        marked.wait_for()
        failed = watched.page.locator(".lately .table a")
        failed.wait_for()
        assert failed.locator(".ending").inner_text() == "exit 1"
        failed.click()
        watched.page.wait_for_selector("#b3.selected")
        assert watched.page.url.endswith("/c/c1/b3")
        assert watched.complaints == []
    finally:
        served.cli("close", "c2")


def test_a_password_is_asked_for_on_the_first_page_and_typed(context: BrowserContext, served: Served) -> None:
    watched = _session(context, served, "read -rs -p 'Secret: ' x; echo; echo length ${#x}")
    try:
        card = watched.page.locator(".ask")
        card.wait_for()
        # What it asks is read from the screen, which may come a moment later than the fact that it asks.
        watched.until(lambda: card.locator("pre").inner_text() == "Secret:", "the question is shown")
        assert watched.page.title().startswith("(1)")
        card.get_by_role("button", name="Type it").click()
        watched.page.wait_for_selector(".glass.mine")
        watched.page.keyboard.type("hunter22\n")
        watched.until(lambda: "length 8" in watched.screen(), "the program has what was typed")
        watched.page.wait_for_selector(".side .entry[aria-current] .sign:not(.wait)")
        watched.page.keyboard.press("Control+]")
        watched.page.wait_for_selector(".glass:not(.mine)")
        files = [path for path in served.home.rglob("*") if path.is_file()]
        assert files and not [path for path in files if b"hunter22" in path.read_bytes()]
        assert watched.complaints == []
    finally:
        served.cli("close", "c2")


def test_a_search_finds_as_one_types_and_opens_at_the_line(context: BrowserContext, kept: Served) -> None:
    watched = sign_in(context, kept)
    watched.page.keyboard.press("/")
    watched.page.keyboard.type("two w")
    # The answers to what was typed before come first, where the server is quick.
    watched.page.locator("main[aria-busy=false] .hits mark", has_text="two w").wait_for()
    assert watched.page.locator(".hits mark").all_inner_texts() == ["two w"]
    watched.page.locator(".around .chosen", has_text="two words").wait_for()
    assert watched.page.locator(".around a").count() == 3, "the blocks before and behind it"
    watched.page.keyboard.press("Enter")
    watched.until_script("document.activeElement === document.body")
    watched.page.keyboard.press("Enter")
    watched.page.wait_for_selector("#b2.selected")
    watched.until_script(
        """[...document.querySelectorAll('#b2 .row')].some((row) => { const box = row.getBoundingClientRect();
        return row.textContent === 'two words\\n' && box.top > 0 && box.bottom < innerHeight })"""
    )
    watched.page.go_back()
    watched.page.wait_for_selector(".hits a")
    assert watched.complaints == []


def test_nothing_is_opened_from_the_answer_to_what_was_typed_before(context: BrowserContext, kept: Served) -> None:
    watched = sign_in(context, kept)
    page = watched.page
    page.goto(f"{kept.url}/search?q=tw")
    page.locator("main[aria-busy=false] .hits a.chosen", has_text="two <b>").wait_for()
    held: list[Route] = []
    page.route("**/search?*query=two+w&*", lambda route: held.append(route))
    page.keyboard.press("/")
    page.keyboard.press("End")
    page.keyboard.type("o w")
    watched.until(lambda: bool(held), "the last answer is asked for")
    assert page.locator(".hits a").count() == 2, "what was found before is still shown"
    assert page.locator("main [role=status]").inner_text() == "Searching…", "and not counted"
    page.keyboard.press("Enter")
    watched.until_script("document.activeElement === document.body")
    page.keyboard.press("Enter")
    held.pop().continue_()
    page.locator("main[aria-busy=false]", has_text="1 block.").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_selector("#b2.selected")
    page.unroute("**/search?*query=two+w&*")
    assert watched.complaints == []


def test_an_expression_that_cannot_be_read_shows_no_hits(context: BrowserContext, kept: Served) -> None:
    watched = sign_in(context, kept)
    watched.page.goto(f"{kept.url}/search?q=tw&mode=regex")
    watched.page.locator("main[aria-busy=false] .hits a.chosen").wait_for()
    watched.page.keyboard.press("/")
    watched.page.keyboard.press("End")
    watched.page.keyboard.type("(")
    watched.page.wait_for_selector(".notice")
    watched.page.wait_for_selector("main[aria-busy=false]")
    assert watched.page.locator(".hits a").count() == 0
    assert watched.page.locator("main [role=status]").count() == 0, "and says of no search that it is complete"


def test_a_long_output_that_has_gone_is_looked_for_no_more(context: BrowserContext, kept: Served) -> None:
    watched = sign_in(context, kept)
    (second,) = [one for one in json.loads(kept.cli("blocks", "c1", "--json"))["blocks"] if one["block_id"] == "b2"]
    watched.page.goto(f"{kept.url}/c/c1/b2?at={second['span'][1] - 1}")
    watched.page.locator("#b2 .row", has_text="two words").wait_for()
    # In the same turn of the browser's loop, before anything is undone that may wait for the next frame.
    watched.page.evaluate(
        """async () => { const blocks = document.querySelector('.blocks');
        document.querySelector('a[href="/"]').click();
        while (blocks.isConnected) await null;
        blocks.dispatchEvent(new Event('scroll')); dispatchEvent(new Event('resize')) }"""
    )
    watched.page.wait_for_selector(".home h1")
    assert watched.complaints == []


def test_a_screen_that_was_left_before_it_was_loaded_is_not_made(context: BrowserContext, kept: Served) -> None:
    watched = sign_in(context, kept)
    held: list[Route] = []
    watched.page.route("**/assets/glass-*.js", lambda route: held.append(route))
    watched.page.goto(f"{kept.url}/c/c1")
    watched.until(lambda: bool(held), "it is asked for")
    watched.page.click("a[href='/']")
    watched.page.wait_for_selector(".home h1")
    (script,) = held
    script.continue_()
    # Who asks for it behind the page gets it behind the page; what fails then is said in the next turn of the loop.
    watched.page.evaluate(
        "(url) => import(url).then(() => new Promise((done) => setTimeout(done)))", script.request.url
    )
    assert watched.complaints == []


def test_a_key_goes_to_no_place_that_has_gone(context: BrowserContext, kept: Served) -> None:
    watched = sign_in(context, kept)
    _conversation(watched, kept)
    watched.page.wait_for_selector("#b4")
    # In the turn of the browser's loop in which a place goes: nothing was undone yet that waits for the next frame.
    taken = watched.page.evaluate(
        """async () => {
          const press = (key) => !document.body.dispatchEvent(
            new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
          const here = press('F'), blocks = document.querySelector('.blocks');
          document.querySelector('a[href="/"]').click();
          while (blocks.isConnected) await null;
          return [here, press('F'), press('j')];
        }"""
    )
    assert taken == [True, False, False]
    assert watched.complaints == []


def test_a_search_takes_its_filters_from_the_address(context: BrowserContext, kept: Served) -> None:
    watched = sign_in(context, kept)
    watched.page.goto(f"{kept.url}/search?q=^two&mode=regex")
    watched.until_script("document.querySelectorAll('.hits a').length === 2")
    watched.page.get_by_role("button", name="Failed only").click()
    watched.page.get_by_text("Nothing was found. Complete and exact.").wait_for()
    assert "failed=1" in watched.page.url

    def go(query: str) -> None:
        watched.page.evaluate(
            "(to) => { history.pushState(null, '', to); dispatchEvent(new PopStateEvent('popstate')) }",
            f"/search?q={query}",
        )

    def hits(query: str, count: int) -> None:
        go(query)
        watched.page.locator("main[aria-busy=false]").wait_for()
        watched.until(lambda: watched.page.locator(".hits a").count() == count, query)

    hits("two&blocks=0", 4)
    # Each leaves fewer of them, or it was not asked for.
    for filtered in (
        "conversation_id=c9", "author=user", "kind=session", "cwd=/nowhere", "exit_status=7", "failed=true",
        "min_duration_ms=600000", "since=4102444800000", "until=1000",
    ):  # fmt: skip
        hits(f"two&blocks=0&{filtered}", 0)
        hits("two&blocks=0", 4)
    hits("TWO&blocks=0", 0)
    hits("TWO&blocks=0&ignore_case=true", 4)
    hits("two&blocks=0&part=output&author=agent", 2)
    assert watched.page.locator(".hits .snippet b").all_inner_texts() == ["1", "301"], "the lines are numbered"
    # What the address says the controls show, and the other way round.
    assert watched.page.get_by_label("Submitted by").input_value() == "agent"
    watched.page.get_by_label("Looked for in").select_option("command")
    watched.until(lambda: "part=command" in watched.page.url, "it is in the address")
    watched.page.get_by_label("Exit status").fill("7")
    watched.page.get_by_text("Nothing was found. Complete and exact.").wait_for()
    # A search that is not wanted any more is given up.
    held: list[Route] = []
    failed: list[str] = []
    watched.page.on("requestfailed", lambda request: failed.append(request.url))
    watched.page.route("**/search?*query=tw&*", lambda route: held.append(route))
    go("tw")
    watched.until(lambda: bool(held), "it is asked for")
    go("two")
    watched.until(lambda: any("query=tw&" in one for one in failed), "it is given up")
    watched.page.unroute("**/search?*query=tw&*")
    watched.page.goto(f"{kept.url}/search?q=[&mode=regex")
    watched.page.wait_for_selector(".notice.failed")
    assert [one for one in watched.complaints if "Failed to load resource" not in one] == []


def test_find_goes_from_match_to_match_and_counts_all(context: BrowserContext, kept: Served) -> None:
    watched = sign_in(context, kept)
    _conversation(watched, kept)
    watched.page.keyboard.press("f")
    # At once: a part of it has as many matches, and is looked for when a busy machine types slowly.
    watched.page.keyboard.insert_text("TWO")
    watched.page.get_by_text("2 matches").wait_for()
    watched.page.keyboard.press("Enter")
    watched.page.get_by_text("1 of 2").wait_for()
    watched.page.wait_for_selector("#b2.selected")
    watched.until_script("CSS.highlights.get('find')?.size > 0")
    watched.page.click(".findbar button:text('In b2 only')")
    watched.page.locator(".findbar", has_text="1 match").wait_for()
    watched.page.click(".findbar [aria-pressed=true]")
    watched.page.get_by_text("2 matches").wait_for()
    watched.page.focus(".findbar input")
    watched.page.keyboard.press("Enter")
    watched.page.get_by_text("1 of 2").wait_for()
    watched.page.keyboard.press("Enter")
    watched.page.wait_for_selector("#b4.selected")
    watched.page.keyboard.press("Shift+Enter")
    watched.page.wait_for_selector("#b2.selected")
    # A match in two rows of a line is marked in both.
    watched.page.click("#b1 .command")
    watched.page.keyboard.press("w")
    watched.until_script("document.querySelectorAll('#b1 .row').length > 2")
    width = watched.page.evaluate("document.querySelector('#b1 .row:nth-child(2)').textContent.length - 1")
    watched.page.keyboard.press("f")
    watched.page.keyboard.insert_text("0" * (width + 1))
    parts = [length for at in range(303 // (width + 1)) for length in (width - at, at + 1)]
    marks = "[...CSS.highlights.get('find') ?? []].map((one) => `${one}`.length).join()"
    watched.until_script(f"{marks} === '{','.join(map(str, parts))}'")
    watched.page.keyboard.press("Escape")
    watched.page.wait_for_selector(".findbar", state="hidden")
    watched.until_script("!CSS.highlights.has('find')")
    watched.page.keyboard.press("w")
    assert watched.page.url.endswith("/c/c1")
    assert watched.complaints == []


def test_a_replay_shows_a_moment_and_plays_to_the_end(context: BrowserContext, kept: Served) -> None:
    watched = sign_in(context, kept)
    (third,) = [one for one in json.loads(kept.cli("blocks", "c1", "--json"))["blocks"] if one["block_id"] == "b3"]
    cursor = third["span"][0]
    watched.page.goto(f"{kept.url}/c/c1/replay?at={cursor}")
    shown = kept.rows(at=cursor)
    watched.until(lambda: watched.screen() == shown, "the screen at that cursor")
    watched.page.wait_for_selector(".moments .chosen:has-text('false')")
    watched.page.locator(".moments button", has_text="echo one").click()
    watched.until(lambda: "two words" not in watched.screen() and "false" not in "".join(watched.screen()), "earlier")
    watched.page.keyboard.press(" ")
    watched.until(lambda: watched.screen() == kept.rows(), "it plays to the end")
    watched.page.wait_for_selector(".controls [aria-label=Play]")
    watched.page.keyboard.press("k")
    # The last block has begun already.
    watched.page.wait_for_selector(".moments .chosen:has-text('false')")
    watched.page.get_by_text("Go live").click()
    watched.page.wait_for_selector(".screen-head .chip.run")
    assert watched.complaints == []
    # A player's commands and nothing else: a replay has no way to the program.
    kinds = {json.loads(one)["type"] for one in watched.sent if isinstance(one, str)}
    assert kinds <= {"pause", "resume", "seek", "step", "ack"}
    assert not any(isinstance(one, bytes) for one in watched.sent)


def test_everything_can_be_reached_by_keys(context: BrowserContext, kept: Served) -> None:
    watched = sign_in(context, kept)
    watched.page.keyboard.press("1")
    watched.page.wait_for_selector(".screen-head .chip.run")
    watched.page.wait_for_selector("#b4")
    for _ in range(2):
        watched.page.keyboard.press("k")
    watched.page.wait_for_selector("#b3.selected")
    assert watched.page.locator(".inspector b").inner_text() == "b3"
    watched.page.keyboard.press("F")
    watched.until_script("document.querySelectorAll('.block').length === 1")
    watched.page.keyboard.press("0")
    watched.until_script("document.querySelectorAll('.block').length === 4")
    watched.page.keyboard.press("i")
    watched.page.wait_for_selector(".inspector", state="detached")
    watched.page.keyboard.press("Control+k")
    watched.page.keyboard.type("replay")
    watched.page.keyboard.press("Enter")
    watched.page.wait_for_selector(".replay .lane")
    watched.page.keyboard.press("Escape")
    watched.page.wait_for_selector(".composer")
    watched.page.keyboard.press("Control+k")
    watched.page.keyboard.type("screen alone")
    watched.page.keyboard.press("Enter")
    watched.page.wait_for_selector(".at-screen .screen-head .chip.run")
    box = watched.page.locator(".screen").bounding_box()
    assert box and box["width"] == 1600 and watched.page.url.endswith("/c/c1/screen")
    assert watched.page.locator(".block, .notice.failed").count() == 0
    watched.page.keyboard.press("Escape")
    watched.page.wait_for_selector(".composer")
    watched.page.keyboard.press("?")
    watched.page.wait_for_selector("[role=dialog][aria-label=Keys]")
    watched.page.get_by_label("Keys without Ctrl do something").uncheck()
    watched.page.keyboard.press("Escape")
    watched.page.wait_for_selector("[role=dialog][aria-label=Keys]", state="detached")
    for key in ("g", "h", "1", "?", "n"):
        watched.page.keyboard.press(key)
    # Those with Ctrl do, so that the others can be turned on again, and a conversation be gone to by its place.
    watched.page.keyboard.press("Control+j")
    watched.page.wait_for_selector("[role=option]")
    assert watched.page.locator("[role=option] span").all_inner_texts() == ["1 go to c1"]
    assert watched.page.locator("[role=dialog][aria-label=Keys], .home h1").count() == 0
    watched.page.keyboard.press("Control+k")
    watched.page.locator(".palette").wait_for(state="hidden")
    watched.page.keyboard.press("Control+k")
    watched.page.keyboard.type("single keys")
    watched.page.keyboard.press("Enter")
    watched.page.get_by_text("Single keys are on").wait_for()
    watched.page.keyboard.press("g")
    watched.page.keyboard.press("h")
    watched.page.wait_for_selector(".home h1")
    watched.page.keyboard.press("Control+k")
    watched.page.keyboard.type("by its place")
    watched.page.keyboard.press("Enter")
    watched.page.locator("[role=option]", has_text="1 go to c1").wait_for()
    watched.page.keyboard.press("Enter")
    watched.page.wait_for_selector(".composer")
    assert watched.complaints == []


def test_the_width_of_a_column_is_chosen_and_kept(context: BrowserContext, kept: Served) -> None:
    watched = sign_in(context, kept)
    page = watched.page
    _conversation(watched, kept)
    side, screen = "document.querySelector('.side').offsetWidth", "document.querySelector('.screen').offsetWidth"
    assert page.evaluate(f"[{side}, {screen}]") == [268, 600]
    page.mouse.move(268, 400)
    page.mouse.down()
    page.mouse.move(400, 400)
    page.mouse.up()
    watched.until_script(f"{side} === 400")
    page.get_by_role("separator", name="Width of the screen").press("ArrowLeft")
    watched.until_script(f"{screen} === 616")
    page.reload()
    page.wait_for_selector(".screen-head .chip.run")
    assert page.evaluate(f"[{side}, {screen}]") == [400, 616]
    for name in ("list", "screen"):
        page.get_by_role("separator", name=f"Width of the {name}").dblclick()
    watched.until_script(f"{side} === 268 && {screen} === 600")
    assert watched.complaints == []


def test_a_filter_leaves_what_used_the_screen(context: BrowserContext, served: Served) -> None:
    """Also blocks that end while it is on."""
    served.cli("run", "c1", r"printf 'up\e[A and over\n'")
    served.cli("exec-interactive", "c1", "cat")
    served.cli("ctrl-d", "c1")
    watched = sign_in(context, served)
    _conversation(watched, served)
    watched.page.wait_for_selector("#b6.ok")
    watched.page.keyboard.press("T")
    shown = "[...document.querySelectorAll('.block')].map((one) => one.id).join()"
    watched.until_script(f"{shown} === 'b5,b6'")
    assert watched.page.locator(".tabs [aria-pressed=true]").inner_text() == "Screen 2"
    served.cli("run", "c1", "echo no")
    served.cli("run", "c1", r"printf '\e[?1049h\e[?1049l'")
    watched.until_script(f"{shown} === 'b5,b6,b8'")
    watched.page.keyboard.press("T")
    watched.until_script(f"{shown} === 'b1,b2,b3,b4,b5,b6,b7,b8'")
    assert watched.complaints == []


def test_the_difference_to_the_run_before_is_in_the_inspector(context: BrowserContext, served: Served) -> None:
    for text in ("old", "new"):
        (served.home / "text").write_text(f"same\n{text}\n")
        served.cli("run", "c1", f"cat {served.home / 'text'}")
    watched = sign_in(context, served)
    _conversation(watched, served)
    watched.page.wait_for_selector("#b6")
    watched.page.keyboard.press("k")
    watched.page.wait_for_selector("#b6.selected")
    watched.page.keyboard.press("d")
    watched.page.wait_for_selector(".diff .added")
    assert watched.page.locator(".diff .added").last.inner_text() == "+new"
    assert watched.page.locator(".diff .removed").last.inner_text() == "-old"
    assert watched.page.locator(".runs a").count() == 2
    assert watched.complaints == []


@pytest.mark.parametrize(("width", "height"), [(390, 844), (800, 480)], ids=["phone", "200 per cent of 1600"])
def test_no_place_scrolls_sideways(chromium: Browser, kept: Served, width: int, height: int) -> None:
    context = chromium.new_context(viewport={"width": width, "height": height}, has_touch=True)
    try:
        watched = sign_in(context, kept)
        for place in PLACES:
            watched.page.goto(kept.url + place)
            watched.page.wait_for_selector(".home h1, .block .row, .lane i")
            assert not watched.page.evaluate(SIDEWAYS), place
        # The last one was the search. Nothing that tells when, how long and beside what is left out.
        for part in (".hits .age", ".around a", ".around .muted"):
            watched.page.locator(part).first.wait_for()
        # What does not fit is not cut off: the output is moved within itself.
        watched.page.goto(kept.url + "/c/c1")
        watched.page.locator(".block .meta").first.wait_for()
        watched.page.locator("#b1 .row").nth(1).wait_for()
        assert end_of_row(watched, "#b1") == "07"
        assert not watched.page.evaluate(SIDEWAYS)
        # Blocks and screen have no room beside each other.
        assert not watched.page.is_visible(".screen")
        shown = watched.page.get_by_role("group", name="Shown")
        shown.get_by_role("button", name="Screen").click()
        watched.page.wait_for_selector(".screen-head .chip.run")
        assert not watched.page.evaluate(SIDEWAYS) and not watched.page.is_visible(".document")
        shown.get_by_role("button", name="Blocks").click()
        watched.page.wait_for_selector(".block .row")
        assert not watched.page.is_visible(".screen")
        assert watched.complaints == []
    finally:
        context.close()


# In a long run each place in both.
@pytest.mark.parametrize(
    ("theme", "places"), [("light", some_of(PLACES, 2)), ("dark", some_of(PLACES, 2, 1))], ids=["light", "dark"]
)
def test_axe_finds_nothing(chromium: Browser, kept: Served, theme: Any, places: list[str]) -> None:
    from axe_playwright_python.sync_playwright import Axe

    context = chromium.new_context(viewport={"width": 1600, "height": 960}, color_scheme=theme)
    try:
        watched = sign_in(context, kept)
        found = {}
        for place in places:
            watched.page.goto(kept.url + place)
            watched.page.wait_for_selector(".lately a, .block .row, .hits a, .lane i")
            results = Axe().run(watched.page)
            found[place] = [(one["id"], one["nodes"][0]["html"]) for one in results.response["violations"]]
        assert found == {place: [] for place in places}
    finally:
        context.close()

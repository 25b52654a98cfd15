"""Outputs in a real browser: long lines, colours, links, what is copied, and what can be done with a block."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.browser import Served, Watched, end_of_row, enter, sign_in, skip_where_missing
from tests.support.processes import stop_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Route

pytestmark = [skip_where_missing(), pytest.mark.needs("bash"), pytest.mark.slow, pytest.mark.timeout(240)]

COUNT = 50_000
WIDE = "".join(f"{number:04}" for number in range(76))  # 304 characters
LONG = (
    f"{'p' * 2490}plain-tail{'q' * 500}\n"
    f"\x1b[31m{'c' * 2490}\x1b[32mcolour-tail\x1b[m{'d' * 500}\n"
    f"{'文' * 10}\t{'w' * 400}\n{WIDE}\n"
)
GROUNDS = ("", "41", "44", "107", "48;5;226", "48;5;17", "48;2;1;2;3", "48;2;250;250;240", "7", "7;41")
FRONTS = ("39", "30", "33", "38;5;235", "38;5;231", "38;2;120;120;120")
COLOURS = "".join(f"\x1b[{back};{front}mtext-{front}\x1b[m\n" for back in GROUNDS for front in FRONTS)
WIDE_LINK = f"https://example.org/{'w' * 200}/end"
LINKS = (
    "see https://example.org/a_(b)?c=d, (or http://\u0430pple.example/x).\n"
    "a \x1b]8;;https://host.example/whole?path\x1b\\shown\x1b]8;;\x1b\\ and \x1b[1mhttps://two.exam\x1b[mple/colours\n"
    f"{WIDE_LINK}\n"
    "no \x1b]8;;javascript:window.pwned=1\x1b\\script\x1b]8;;\x1b\\ \x1b]8;;file:///etc/passwd\x1b\\file\x1b]8;;\x1b\\"
    " ftp://example.org javascript://x https://\n"
)
CONTRASTS = """(block) => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = colour.map((p) => (p /= 255) <= 0.04045 ? p / 12.92 : ((p + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (one) => {
    const [r, g, b, share = 1] = parts(getComputedStyle(one).backgroundColor);
    const below = share < 1 ? ground(one.parentElement) : [0, 0, 0];
    return [r, g, b].map((part, at) => part * share + below[at] * (1 - share));
  };
  return [...document.querySelectorAll(`#${block} .row span`)].map((one) => {
    const [low, high] = [light(parts(getComputedStyle(one).color)), light(ground(one))].sort((a, b) => a - b);
    return [one.textContent, getComputedStyle(one).backgroundColor, (high + 0.05) / (low + 0.05)];
  });
}"""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, homes: dict[Path, str]) -> Iterator[Served]:
    """A conversation for all tests, which run nothing in it but what they run again."""
    top = tmp_path_factory.mktemp("h")
    homes[top] = __name__
    home = top / "home"
    home.mkdir(mode=0o700)
    started = Served(home)
    started.cli("open", "c1", "--shell", "bash")
    for name, text in (("long", LONG), ("colours", COLOURS), ("links", LINKS)):
        (top / name).write_text(text)
        started.cli("run", "c1", f"cat {top / name}")
    started.cli("run", "c1", f"seq 1 {COUNT}")
    started.cli("run", "c1", "echo 'two\nlines'; false", check=False)
    started.cli("run", "c1", r"printf '\e[?1049h\e[2Jdrawn here\e[?1049l'")
    started.cli("run", "c1", f"cat {top / 'links'}")
    yield started
    started.stop()
    stop_server(home)


def _look(context: BrowserContext, served: Served, path: str = "/c/c1") -> Watched:
    watched = sign_in(context, served)
    watched.page.goto(served.url + path)
    _until_drawn(watched)
    return watched


def _until_drawn(watched: Watched) -> None:
    """Wait for all outputs: each moves what is below it, and some have the same lines."""
    watched.until_script(
        "document.querySelector('#b6 .fold a') && "
        "[...document.querySelectorAll('.block')].every((one) => one.querySelector('.row, .fold'))"
    )


def _read(served: Served, block: str) -> str:
    read = json.loads(served.cli("read", "c1", "--block-id", block, "--max-bytes", "1048576", "--json"))
    return str(read["data"]).removesuffix("\n")


def _open(watched: Watched, block: str) -> None:
    """Show all lines of a block, which is the selected one then."""
    watched.page.click(f"#{block} .command")
    watched.page.wait_for_selector(f"#{block} .row")  # what is folded is drawn together with the first lines
    if watched.page.locator(f"#{block} .fold button", has_text="Show all").count():
        watched.page.click(f"#{block} .fold button")
        watched.page.wait_for_selector(f"#{block} .fold button:text('Read as text')")


def _clipboard(watched: Watched) -> str:
    text: str = watched.page.evaluate("navigator.clipboard.readText()")
    return text


def _click_row(watched: Watched, text: str, x: int, extend: bool = False) -> None:
    """Click at the place where a line is shown: its row is another one a moment later."""
    place = """(text) => { const box = document.querySelector('.blocks').getBoundingClientRect();
        const rows = [...document.querySelectorAll('.row')];
        const places = rows.map((row) => [row.textContent, row.getBoundingClientRect()]);
        const isShown = ({ top, bottom }) => top > box.top + 40 && bottom < box.bottom;
        const found = places.find(([one, at]) => one === text && isShown(at));
        return found && [found[1].left, found[1].top + 9] }"""
    found: list[float] = []

    def is_found() -> bool:
        found[:] = watched.page.evaluate(place, f"{text}\n") or []
        return bool(found)

    watched.until(is_found, f"{text} is in view")
    left, top = found
    if extend:
        watched.page.keyboard.down("Shift")
    watched.page.mouse.click(left + x, top)
    watched.page.keyboard.up("Shift")


def test_all_of_a_long_line_can_be_read(context: BrowserContext, kept: Served) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=kept.url)
    watched = _look(context, kept)
    page = watched.page
    page.locator("#b1 .row", has_text="0075").wait_for()
    assert page.locator("#b1 .more").all_inner_texts() == ["… 1,000 more characters", "… 1,001 more characters"]
    for number, (tail, length) in enumerate((("plain-tail", "3,000"), ("colour-tail", "3,001"))):
        page.locator("#b1 .more").nth(number).click()
        sheet = page.locator(".asking")
        assert sheet.locator("h2").inner_text() == f"A line of {length} characters"
        assert tail in sheet.locator("pre").inner_text()
        page.keyboard.press("Escape")
        sheet.wait_for(state="detached")
    page.evaluate("document.querySelector('#b1 .out').scrollLeft = 0")  # a click on what is left out has moved it
    assert end_of_row(watched, "#b1") == "75"
    page.click("#b1 .command")
    page.keyboard.press("w")
    watched.until_script("document.querySelectorAll('#b1 .row').length > 10")
    watched.until_script("document.querySelector('.blocks').scrollTop > 0")  # it follows the end, until one goes up
    page.evaluate("document.querySelector('#b1 .row:last-child').scrollIntoView({ block: 'center' })")
    rows = page.locator("#b1 .row").all_text_contents()
    assert "".join(row.removesuffix("\n") for row in rows).endswith("w" * 400 + WIDE)
    # What is copied is the line again.
    _click_row(watched, next(row for row in rows if row.startswith("0000")).removesuffix("\n"), 1)
    _click_row(watched, rows[-1].removesuffix("\n"), 600, extend=True)
    page.keyboard.press("Control+c")
    watched.until(lambda: _clipboard(watched) == WIDE, "the wrapped line is copied")
    fits = "[...document.querySelectorAll('#b1 .row')].every((row) => row.scrollWidth <= row.clientWidth)"
    assert page.evaluate(fits)
    page.reload()
    watched.until_script("document.querySelectorAll('#b1 .row').length > 10")  # this browser remembers it
    page.click("#b1 .command")
    page.keyboard.press("w")
    watched.until_script("document.querySelectorAll('#b1 .row').length === 4")
    assert watched.complaints == []


def test_wrapped_lines_of_a_long_output_are_rows_of_their_own(context: BrowserContext, served: Served) -> None:
    lines = 3000
    served.cli("run", "c1", f"for n in $(seq 1 {lines}); do printf '%0304d\\n' $n; done")
    watched = sign_in(context, served)
    page = watched.page
    page.goto(f"{served.url}/c/c1")
    _open(watched, "b1")
    page.keyboard.press("w")
    out = "document.querySelector('#b1 .out')"
    watched.until_script(f"{out}.scrollWidth === {out}.clientWidth")
    watched.until_script(f"document.querySelector('#b1 .out').clientHeight % {lines} === 0")
    rows = page.evaluate("document.querySelector('#b1 .out').clientHeight") // 19 // lines
    assert rows > 1
    page.evaluate(f"document.querySelector('.blocks').scrollTop = {1490 * rows} * 19")
    watched.until_script("document.querySelector('.out').textContent.includes('1500\\n')")
    shown = [row.removesuffix("\n") for row in page.locator("#b1 .row").all_text_contents()]
    last = next(at for at, row in enumerate(shown) if row.endswith("1500"))
    line = "".join(shown[last - rows + 1 : last + 1])
    assert len(line) == 304 and int(line) == 1500
    # The line in the middle of the view stays there when lines are rows again.
    page.keyboard.press("#")
    page.wait_for_selector("#b1 .number")
    numbered = page.evaluate(
        "[...document.querySelectorAll('#b1 .numbered')].filter((row) => row.querySelector('.number'))"
        ".map((row) => Number(row.querySelector('.number').dataset.number))"
    )
    assert numbered == list(range(numbered[0], numbered[0] + len(numbered))) and 1400 < numbered[0] < 1520
    page.keyboard.press("w")
    watched.until_script(f"document.querySelector('#b1 .out').clientHeight === {lines} * 19")
    link = page.locator("#b1 .number").nth(10)
    number = int(link.get_attribute("data-number") or 0)
    target = page.locator("#b1 .row", has=page.locator(f"[data-number='{number}']"))
    assert int(target.inner_text()) == number
    cursor = int((link.get_attribute("href") or "").split("?at=")[1])
    (block,) = json.loads(served.cli("blocks", "c1", "--json"))["blocks"]
    assert cursor == block["span"][0] + (number - 1) * 306
    # In a larger size too, which the browser remembers; the line at the top of the view stays there.
    top = """() => { const view = document.querySelector('.blocks').getBoundingClientRect().top;
        const rows = [...document.querySelectorAll('#b1 .row')];
        const first = rows.find((row) => row.getBoundingClientRect().bottom > view + 1);
        return Number(first.querySelector('.number').dataset.number); }"""
    before = page.evaluate(top)
    for _ in range(2):
        page.keyboard.down("+")  # held: the second time is a repeat
    page.keyboard.up("+")
    watched.until_script(f"document.querySelector('#b1 .out').clientHeight === {lines} * 24")
    watched.until(lambda: page.evaluate(top) == before, "the line stays in view")
    size = "getComputedStyle(document.querySelector('#b1 .out')).fontSize === '16px'"
    assert before > 1000 and page.evaluate(size)
    page.reload()
    page.wait_for_selector("#b1 .row")
    watched.until_script(size)
    page.keyboard.press("-")
    watched.until_script(size.replace("16", "14"))
    # What the server drew has lines that lead nowhere.
    served.cli("run", "c1", r"printf 'one\ntwo\e[A\rup\n'")
    page.locator("#b2 span.number[data-number='1']").wait_for()
    assert page.locator("#b2 a.number").count() == 0
    # Nor is a command run again of which a secret is not known here, before a person has seen that.
    served.cli("run", "c1", "true http://u:a3@host/")
    page.click("#b3 .command")
    page.keyboard.press("R")
    page.get_by_role("alertdialog").get_by_text("Run this with its asterisks?").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("alertdialog").wait_for(state="detached")
    assert len(json.loads(served.cli("blocks", "c1", "--json"))["blocks"]) == 3
    # A key that is held does such things once, and what is being begun is not begun twice.
    begun: list[str] = []
    page.on("request", lambda one: begun.append(one.url) if one.url.endswith("/exec_block") else None)
    served.cli("run", "c1", "true")
    page.click("#b4 .command")
    wraps = page.evaluate("localStorage['blockpty.wrap']")
    for _ in range(2):
        page.keyboard.down("w")
    page.keyboard.up("w")
    assert page.evaluate("localStorage['blockpty.wrap']") != wraps
    page.evaluate("""() => {
      for (const repeat of [false, true, false]) document.body.dispatchEvent(
        new KeyboardEvent('keydown', { key: 'R', code: 'KeyR', shiftKey: true, repeat, bubbles: true }));
    }""")
    page.wait_for_selector("#b5.ok")
    assert len(begun) == 1
    assert watched.complaints == []


@pytest.mark.parametrize(("theme", "red"), [("light", "rgb(179, 38, 30)"), ("dark", "rgb(255, 138, 128)")])
def test_every_colour_can_be_read_on_its_ground(chromium: Browser, kept: Served, theme: Any, red: str) -> None:
    context = chromium.new_context(viewport={"width": 1600, "height": 960}, color_scheme=theme)
    try:
        watched = _look(context, kept)
        _open(watched, "b2")
        lines = COLOURS.count("\n")
        watched.until_script(f"document.querySelectorAll('#b2 .row').length === {lines}")
        found = watched.page.evaluate(CONTRASTS, "b2")
        assert len(found) >= lines - 1  # only the default on no ground has no style
        assert [one for one in found if one[2] < 4.5] == []
        assert [ground for text, ground, _ in found if text == "text-38;5;231"][1] == red
        assert watched.complaints == []
    finally:
        context.close()


def test_a_link_says_where_it_leads_before_it_opens(context: BrowserContext, kept: Served) -> None:
    watched = _look(context, kept)
    page = watched.page
    page.locator("#b3 .out-link").first.wait_for()
    found = [
        (one.inner_text(), one.get_attribute("href"), one.get_attribute("title"))
        for one in page.locator("#b3 .out-link").all()
    ]
    assert [one[:2] for one in found] == [
        ("https://example.org/a_(b)?c=d", "https://example.org/a_(b)?c=d"),
        ("http://\u0430pple.example/x", "http://xn--pple-43d.example/x"),
        ("shown", "https://host.example/whole?path"),
        ("https://two.exam", "https://two.example/colours"),
        ("ple/colours", "https://two.example/colours"),
        (WIDE_LINK, WIDE_LINK),
    ]
    assert all(href == title for _, href, title in found)
    context.route("https://host.example/**", lambda route: route.fulfill(body="there", content_type="text/plain"))
    link = page.locator("#b3 .out-link", has_text="shown")
    link.click(button="middle")
    page.locator(".asking pre", has_text="https://host.example/whole?path").wait_for()
    page.keyboard.press("Escape")
    link.click()
    assert page.locator(".asking h2").inner_text() == "Open host.example?"
    assert context.pages[-1] == page
    with context.expect_page() as opened:
        page.keyboard.press("Enter")
    assert opened.value.url == "https://host.example/whole?path"
    assert opened.value.evaluate("[opener, document.referrer]") == [None, ""]
    page.wait_for_selector(".asking", state="detached")
    # The same on the screen, also of an address that is text there, and of one that goes on in the next row.
    watched.until(lambda: any("javascript://x" in row for row in watched.screen()), "they are on the screen")
    place = """(words) => { const t = document.querySelector('.glass').terminal, b = t.buffer.active;
        const box = document.querySelector('.xterm-screen').getBoundingClientRect();
        const rows = Array.from({ length: t.rows }, (_, y) => b.getLine(b.viewportY + y).translateToString());
        const y = rows.findLastIndex((row) => row.includes(words)), x = rows[y].indexOf(words) + words.length / 2;
        return [box.left + (x * box.width) / t.cols, box.top + ((y + 0.5) * box.height) / t.rows] }"""
    for words, target in (
        ("shown", "https://host.example/whole?path"), ("://example.org/a_(b)", "https://example.org/a_(b)?c=d"),
        ("pple.example", "http://xn--pple-43d.example/x"), ("/end", WIDE_LINK),
    ):  # fmt: skip
        left, top = page.evaluate(place, words)
        page.mouse.move(left - 2, top)
        page.mouse.move(left, top)
        page.wait_for_selector(".xterm-cursor-pointer")
        page.mouse.click(left, top)
        assert page.locator(".asking pre").inner_text() == target
        page.keyboard.press("Escape")
        page.locator(".asking").wait_for(state="detached")
    for words in ("script", "file", "ftp://example.org", "javascript://x"):
        left, top = page.evaluate(place, words)
        page.mouse.move(left - 2, top)
        page.mouse.move(left, top)
        page.locator(".xterm-cursor-pointer").wait_for(state="detached")
        page.mouse.click(left, top)
        assert page.locator(".asking").count() == 0
    assert watched.complaints == []


def test_what_is_copied_is_the_text_of_the_record(context: BrowserContext, kept: Served) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=kept.url)
    watched = _look(context, kept)
    page = watched.page
    whole = _read(kept, "b4")
    assert whole.count("\n") == COUNT - 1
    page.click("#b5 .command")
    for key, text in (
        ("c", "two\nlines"), ("C", "echo 'two\nlines'; false"), ("Y", "$ echo 'two\nlines'; false\ntwo\nlines"),
        ("l", f"{kept.url}/c/c1/b5"),
    ):  # fmt: skip
        page.keyboard.press(key)
        watched.until(lambda text=text: _clipboard(watched) == text, f"{key} has copied it")  # type: ignore[misc]
    _open(watched, "b4")
    # From the third row to the last but one, over rows that are used again in between.
    watched.until_script(f"document.querySelector('#b4 .out').clientHeight === {COUNT} * 19")
    top = "document.querySelector('#b4 .out').offsetTop + document.querySelector('#b4').offsetTop"
    page.evaluate(f"document.querySelector('.blocks').scrollTop = {top} - 100")
    _click_row(watched, "3", 1)
    for wanted in (20_005, COUNT - 1):
        page.evaluate(f"document.querySelector('.blocks').scrollTop = {top} - 400 + {wanted} * 19")
        _click_row(watched, f"{wanted}", 600, extend=True)
        page.keyboard.press("Control+c")
        expected = "\n".join(whole.split("\n")[2:wanted])
        watched.until(lambda expected=expected: _clipboard(watched) == expected, f"to {wanted}")  # type: ignore[misc]
    # What is shown as selected is what is: all rows of a view in the middle of it.
    page.evaluate(f"document.querySelector('.blocks').scrollTop = {top} + {COUNT // 3} * 19")
    watched.until_script(
        f"Number(document.querySelector('#b4 .row').textContent) > {COUNT // 3 - 20} && "
        "[...document.querySelectorAll('#b4 .row')].map((row) => row.textContent).join('').trim() === "
        "getSelection().toString().trim()"
    )
    # Over several blocks, of which one is folded and one never was looked at whole.
    page.reload()
    page.wait_for_selector("#b6 .fold a")
    page.locator("#b4 .fold button", has_text="Fold").click()
    _until_drawn(watched)
    links = _read(kept, "b3").split("\n")[-1]
    page.evaluate("document.querySelector('#b3').scrollIntoView()")
    _click_row(watched, links, 1)
    _click_row(watched, "two", 600, extend=True)
    page.keyboard.press("Control+c")
    expected = f"{links}\n$ seq 1 {COUNT}\n{whole}\n$ echo 'two\nlines'; false\ntwo"
    watched.until(lambda: _clipboard(watched) == expected, "three blocks")
    # Everything, also what the page had not fetched; of a program on the whole screen there are no lines.
    page.keyboard.press("Control+a")
    page.keyboard.press("Control+c")
    everything = "\n".join(
        f"$ {block['cmd']}" + ("" if block["block_id"] == "b6" else f"\n{_read(kept, block['block_id'])}")
        for block in json.loads(kept.cli("blocks", "c1", "--json"))["blocks"]
    )
    watched.until(lambda: _clipboard(watched) == everything, "all blocks")

    def enlarged(route: Route) -> None:
        answer = route.fetch()
        found = answer.json()
        next(one for one in found["blocks"] if one["block_id"] == "b2")["span"][1] += 64 * 1024 * 1024
        route.fulfill(response=answer, json=found)

    # More than a page may hold is not copied, nor a part of it.
    page.route("**/c1/blocks?*", enlarged)
    page.route("**/stream?*", lambda route: route.fulfill(body=b""))
    page.reload()
    page.wait_for_selector("#b7")

    def is_too_much() -> bool:
        page.keyboard.press("Control+a")
        page.keyboard.press("Control+c")
        return page.get_by_text("This is too much to copy.").count() == 1

    # Again until it is said: what is drawn while the page is loaded takes the selection with it.
    watched.until(is_too_much, "it is refused")
    assert _clipboard(watched) == everything
    assert watched.complaints == []


def test_a_block_can_be_saved_and_run_again(context: BrowserContext, kept: Served) -> None:
    watched = _look(context, kept)
    page = watched.page
    assert page.get_attribute("#b5", "aria-posinset") == "5" and page.get_attribute("#b5", "aria-setsize") == "-1"
    label = page.get_attribute("#b5", "aria-label") or ""
    assert label.startswith("echo 'two\nlines'; false, failed, exit 1, ") and label.endswith(", 2 lines, by the agent")
    assert "millisecond" in label or "second" in label
    page.click("#b4 .command")
    with page.expect_download() as saved:
        page.keyboard.press("e")
    assert saved.value.suggested_filename == "c1-b4.txt"
    assert Path(saved.value.path()).read_text() == _read(kept, "b4") + "\n"
    _open(watched, "b4")
    page.click("#b4 .fold button:text('Read as text')")
    watched.until_script("document.querySelector('#b4 .as-text').textContent.split('\\n').length === 2000")
    page.locator("#b4 .fold", has_text="The first 2,000 of 50,000 lines").wait_for()
    page.click("#b4 .fold button")
    page.click("#b4 .fold button:text('Fold')")
    assert page.locator("#b6 .fold a").all_inner_texts() == ["Last screen", "Replay it"]
    page.click("#b5 .command")
    page.keyboard.press("R")
    assert page.locator(".asking pre").inner_text() == "echo 'two\nlines'; false"
    page.click(".asking button:text('Run it')")
    page.wait_for_selector("#b8.fail")
    page.click("#b8 .command")
    page.click("#b8 [aria-label='Difference to the previous run']")
    page.locator(".inspector", has_text="the same as that of b5").wait_for()
    page.click("#b6 .fold a")
    watched.until(lambda: any("drawn here" in row for row in watched.screen()), "the last screen")
    assert watched.complaints == []


def test_an_output_that_is_shown_whole_grows(context: BrowserContext, served: Served) -> None:
    watched = enter(sign_in(context, served))
    served.cli("exec-block", "c1", "seq 20; read -r line; seq 21 30")
    block = watched.page.locator(".block.run")
    block.locator(".fold button", has_text="Show all").click()
    watched.until(lambda: block.locator(".row").count() == 20, "all of it is shown")
    served.cli("send", "c1", "go on\n")
    rows = watched.page.locator(".block.ok .row")
    # With the echo of the line.
    watched.until(lambda: rows.count() == 31, "and what has come since")
    assert rows.last.inner_text().strip() == "30"
    assert watched.complaints == []


def test_what_was_printed_before_the_page_was_opened_is_shown(context: BrowserContext, served: Served) -> None:
    served.cli("exec-interactive", "c1", "seq 1 5; read x")
    watched = sign_in(context, served)
    watched.page.goto(f"{served.url}/c/c1")
    watched.until_script("document.querySelectorAll('#b1 .row').length === 5")
    served.cli("send", "c1", "\n")
    watched.page.wait_for_selector("#b1.ok")
    # One that fills the screen is looked at there.
    served.cli("exec-interactive", "c1", r"printf '\e[?1049h'; read x")
    watched.page.click("#b2.run .fold button:text('Open the screen')")
    watched.until_script("document.activeElement.closest('.glass') !== null")
    assert watched.page.locator("#b2 .fold a").count() == 0
    served.cli("send", "c1", "\n")
    watched.page.wait_for_selector("#b2.ok .fold a")
    assert watched.complaints == []

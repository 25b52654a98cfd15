"""The page in a real browser, on a real server with real shells. Its console has to stay empty in every test."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.browser import Served, Watched, enter, sign_in, skip_where_missing

if TYPE_CHECKING:
    from playwright.sync_api import APIResponse, Browser, BrowserContext, Route

pytestmark = [skip_where_missing(), pytest.mark.needs("bash"), pytest.mark.slow, pytest.mark.timeout(240)]


def _run(watched: Watched, command: str) -> None:
    watched.page.fill(".composer textarea", command)
    watched.page.press(".composer textarea", "Enter")


def test_a_code_signs_in_once_and_the_token_is_kept_by_the_tab(context: BrowserContext, served: Served) -> None:
    first = sign_in(context, served)
    assert "#" not in first.page.url and "code" not in first.page.url
    first.page.reload()
    first.page.wait_for_selector(".side .entry")
    second = Watched(context.new_page())
    second.page.goto(served.url)
    second.page.wait_for_selector(".side .entry")  # another tab gets it from the first one
    # Who signs out does so in all tabs: another one would give the token back.
    second.page.keyboard.press("Control+k")
    second.page.keyboard.type("sign out")
    second.page.keyboard.press("Enter")
    for page in (second.page, first.page):
        page.get_by_role("heading", name="Sign in").wait_for()
        assert page.evaluate("sessionStorage.length") == 0
    assert first.complaints == second.complaints == []
    assert context.cookies() == []


def test_a_used_code_is_refused(chromium: Browser, context: BrowserContext, served: Served) -> None:
    address = json.loads(served.cli("view", "--web", "--json"))["page"]
    first = Watched(context.new_page())
    first.page.goto(address)
    first.page.wait_for_selector(".side .entry")
    other = chromium.new_context()
    try:
        page = other.new_page()
        page.goto(address)
        page.wait_for_selector(".refusal")
        assert page.locator(".side").count() == 0
    finally:
        other.close()


def test_a_signed_in_page_outlives_its_server(context: BrowserContext, served: Served) -> None:
    watched = sign_in(context, served)
    served.kill()
    served.start()
    watched.page.reload()
    watched.page.wait_for_selector(".side .entry")


def test_a_command_shows_as_a_block_and_on_the_screen(context: BrowserContext, served: Served) -> None:
    watched = enter(sign_in(context, served))
    _run(watched, "echo one-$((20 + 22)); seq 1 40; false")
    failed = watched.page.locator(".block.fail")
    failed.wait_for()
    assert failed.locator(".ending").inner_text() == "exit 1"
    assert failed.locator(".author").inner_text() == "Y"
    failed.locator(".row").first.wait_for()
    assert failed.locator(".row").count() == 12, "the end of an output that failed"
    failed.locator(".fold button").click()
    watched.until_script("document.querySelectorAll('.block .row').length === 41")
    assert failed.locator(".row").first.inner_text().strip() == "one-42"
    watched.until(lambda: watched.screen() == served.rows(), "the screen is that of the engine")
    assert watched.complaints == []


def test_a_block_grows_while_its_command_prints_without_a_pause(
    context: BrowserContext, served: Served, tmp_path: Path
) -> None:
    watched = enter(sign_in(context, served))
    enough = tmp_path / "enough"
    _run(watched, f"n=0; until [ -e {enough} ]; do echo line-$((n += 1)); sleep 0.05; done")
    last = "+(document.querySelector('.block.run .row:last-child')?.textContent.match(/line-(\\d+)/) ?? [0, 0])[1]"
    watched.until_script(f"{last} > 0")
    before = watched.page.evaluate(last)
    watched.until_script(f"{last} > {before} + 20")
    enough.touch()
    watched.page.locator(".block.ok").wait_for()
    assert watched.complaints == []


def test_what_runs_says_for_how_long(context: BrowserContext, served: Served) -> None:
    watched = enter(sign_in(context, served))
    _run(watched, "read answer")
    facts = "document.querySelector('.block.run .meta').textContent"
    watched.page.locator(".block.run").wait_for()
    watched.until_script(rf"/ · \d+ s$/.test({facts})")
    before = watched.page.evaluate(f"[{facts}, document.querySelector('.block.run .spinner').style.transform]")
    watched.until_script(f"{facts} !== {json.dumps(before[0])}")
    watched.until_script(f"document.querySelector('.block.run .spinner').style.transform !== {json.dumps(before[1])}")
    assert watched.page.evaluate("document.getAnimations().length") == 0, "each would cost a frame all the time"
    served.cli("send", "c1", "enough\n")
    watched.page.locator(".block.ok").wait_for()
    assert " s" in watched.page.locator(".block.ok .meta").inner_text()
    assert watched.complaints == []


def test_a_screen_that_fell_behind_says_so_without_moving_the_blocks(
    context: BrowserContext, served: Served, tmp_path: Path
) -> None:
    watched = enter(sign_in(context, served))
    flood = tmp_path / "flood"
    flood.write_text("".join(f"line {number}\n" for number in range(400_000)))
    top = "document.querySelector('.blocks').getBoundingClientRect().top"
    before = watched.page.evaluate(top)
    _run(watched, f"cat {flood}")
    watched.until_script("document.querySelector('.screen .tail').textContent.includes('fell behind')")
    assert watched.page.evaluate(top) == before
    watched.page.locator(".block.ok").wait_for()
    watched.until(lambda: watched.screen() == served.rows(), "the screen is that of the engine")
    watched.until_script("!document.querySelector('.screen .tail').textContent.includes('fell behind')")
    assert watched.complaints == []


def test_a_long_output_has_rows_for_what_is_in_view(context: BrowserContext, served: Served) -> None:
    watched = enter(sign_in(context, served))
    _run(watched, "seq 1 50000")
    block = watched.page.locator(".block.ok")
    block.wait_for()
    block.locator(".fold button").click()
    watched.until_script("document.querySelector('.out').clientHeight === 50000 * 19")
    watched.page.evaluate("document.querySelector('.blocks').scrollTop = 25000 * 19")
    watched.until_script("[...document.querySelectorAll('.row')].some((r) => r.textContent === '25010\\n')")
    assert watched.page.locator(".row").count() < 200
    # Once it is not scrolled any more, there are some above and below as well.
    top = "document.querySelector('{}').getBoundingClientRect().top"
    watched.until_script(f"{top.format('.row')} < {top.format('.blocks')} - 5 * 19")
    watched.page.evaluate("rows = new Map([...document.querySelectorAll('.row')].map((row) => [row.textContent, row]))")
    for number in (3, -2, 30, -40, 1):
        before = watched.page.evaluate("[...document.querySelectorAll('.row')].map((row) => Number(row.textContent))")
        watched.page.evaluate(f"document.querySelector('.blocks').scrollTop += {number} * 19")
        watched.until_script(f"document.querySelector('.row').textContent === '{before[0] + number}\\n'")
        after = watched.page.evaluate("[...document.querySelectorAll('.row')].map((row) => Number(row.textContent))")
        assert after == [one + number for one in before]
        # What stays in view is left as it is.
        stays = len({*after} & {*before})
        same = "[...document.querySelectorAll('.row')].filter((row) => rows.get(row.textContent) === row).length"
        assert watched.page.evaluate(same) == stays
        watched.page.evaluate(
            "rows = new Map([...document.querySelectorAll('.row')].map((row) => [row.textContent, row]))"
        )
    assert watched.complaints == []


def test_a_long_output_that_is_out_of_view_is_left_alone(context: BrowserContext, served: Served) -> None:
    watched = enter(sign_in(context, served))
    _run(watched, "seq 1 50000")
    watched.page.locator(".block.ok").wait_for()
    _run(watched, "seq 1 150")
    watched.page.locator(".block.ok").nth(1).wait_for()
    for button in (1, 0):
        watched.page.locator(".fold button").nth(button).click()
    watched.until_script(
        "[...document.querySelectorAll('.out')].map((out) => out.clientHeight / 19).join() === '50000,150'"
    )
    # What is put off until scrolling pauses happens when the test says so.
    watched.page.evaluate("""() => {
      const usual = window.setTimeout;
      window.put_off = [];
      window.setTimeout = (done, ms, ...given) =>
        ms === 100 ? 1e9 + put_off.push(done) : usual(done, ms, ...given);
    }""")
    for place in ("20000 * 19", "document.querySelector('.blocks').scrollHeight"):
        watched.page.evaluate(f"document.querySelector('.blocks').scrollTop = {place}")
        watched.until_script("put_off.length > 0")
        watched.page.evaluate("put_off.splice(0).forEach((done) => done())")
        assert watched.page.evaluate("put_off.length") == 0
    assert watched.complaints == []


def test_a_long_output_keeps_its_colours_from_line_to_line(
    context: BrowserContext, served: Served, tmp_path: Path
) -> None:
    """Something changes on every third line, and lasts; pieces of the output end anywhere."""
    count = 20_000

    def line(number: int) -> str:
        step, further = divmod(number, 3)
        ways = (f"\x1b[0;3{step % 8}m", "\x1b[1m", f"\x1b[38;5;{step % 8}m")
        before = (ways[step % 3], "\x1b]0;title\x07\x1b[K", "")[further]
        return f"{before}line {number} {'x' * (number % 90)}"

    def classes(number: int) -> str:
        step = number // 3
        return (f"a{step % 8}", f"a{(step - 1) % 8} bold", f"a{step % 8} bold")[step % 3]

    log = tmp_path / "log"
    log.write_text("".join([f"{line(number)}\n" for number in range(count)]))
    assert log.stat().st_size > 4 * 256 * 1024
    watched = enter(sign_in(context, served))
    _run(watched, f"cat {log}")
    block = watched.page.locator(".block.ok")
    block.wait_for()
    block.locator(".fold button").click()
    watched.until_script(f"document.querySelector('.out').clientHeight === {count} * 19")
    for first in range(0, count, 777):
        watched.page.evaluate(f"document.querySelector('.blocks').scrollTop = {first} * 19")
        watched.until_script(
            f"[...document.querySelectorAll('.row')].some((row) => row.textContent.startsWith('line {first + 15} '))"
        )
        rows = watched.page.evaluate(
            "[...document.querySelectorAll('.row')].map((one) => [one.textContent, one.firstElementChild.className])"
        )
        numbers = [int(text.split()[1]) for text, _ in rows]
        assert numbers == list(range(numbers[0], numbers[0] + len(rows)))
        assert [found for _, found in rows] == [classes(number) for number in numbers]
    assert watched.complaints == []


def test_of_a_long_output_comes_first_what_is_looked_at(context: BrowserContext, served: Served) -> None:
    count = 300_000
    served.cli("run", "c1", f"seq 1 {count}")
    (block,) = json.loads(served.cli("blocks", "c1", "--json"))["blocks"]
    lengths = [len(f"{number}\r\n") for number in range(1, count + 1)]

    def cursor_of(number: int) -> int:
        return int(block["span"][0]) + sum(lengths[: number - 1])

    watched = sign_in(context, served)
    held: list[Route] = []
    watched.page.route("**/stream?*", lambda route: held.append(route))  # Playwright marks what it is given

    def let_through() -> tuple[int, int]:
        """Let the next piece come that is asked for; returns which it was."""
        while True:
            watched.until(lambda: bool(held), "a piece is asked for")
            route = held.pop(0)
            asked = parse_qs(urlsplit(route.request.url).query)
            begin, end = int(asked["from"][0]), int(asked["to"][0])
            route.continue_()
            if end - begin > 20_000:  # not the few lines at the end that a folded block shows
                return begin, end

    def row(number: int) -> float | None:
        """Return where the row of a line is, in the view of the blocks."""
        top: float | None = watched.page.evaluate(
            """(text) => { const box = document.querySelector('.blocks').getBoundingClientRect();
            const row = [...document.querySelectorAll('.row')].find((one) => one.textContent === text);
            const { top, bottom } = row ? row.getBoundingClientRect() : { top: 0, bottom: 0 };
            return row && top >= box.top && bottom <= box.bottom ? top - box.top : null }""",
            f"{number}\n",
        )
        return top

    def holds(piece: tuple[int, int], number: int) -> bool:
        return piece[0] <= cursor_of(number) < piece[1]

    middle = 170_003
    watched.page.goto(f"{served.url}/c/c1/b1?at={cursor_of(middle)}")
    assert holds(let_through(), middle)
    watched.until(lambda: row(middle) is not None, "the line of the link is in view")
    # One looks elsewhere: a piece may be on its way already, and then comes the one there.
    watched.page.evaluate(
        "document.querySelector('.blocks').scrollTop = document.querySelector('.out').clientHeight * 0.9"
    )
    watched.until(lambda: watched.page.locator(".row", has_text="…").count() > 20, "nothing of it is there")
    pieces = [let_through(), let_through()]
    watched.until(lambda: watched.page.locator(".row", has_text="…").count() == 0, "it has come")
    shown = int(watched.page.locator(".row").nth(30).inner_text())
    assert holds(pieces[1], shown), (pieces, shown)
    place = row(shown)
    assert place is not None
    # The rest comes, and what is looked at stays where it is.
    while watched.page.locator("#b1 .meta", has_text="300,000 lines").count() == 0:
        if held:
            let_through()
        watched.page.wait_for_timeout(20)
    assert watched.page.evaluate("document.querySelector('.out').clientHeight") == count * 19
    found = row(shown)
    assert found is not None and abs(found - place) < 1, (place, found)
    watched.page.unroute("**/stream?*")
    assert watched.complaints == []


def test_more_lines_than_a_browser_has_pixels_for_can_all_be_seen(context: BrowserContext, served: Served) -> None:
    served.cli("run", "c1", "seq 1 600000")
    (block,) = json.loads(served.cli("blocks", "c1", "--json"))["blocks"]
    end = block["span"][1]
    watched = sign_in(context, served)
    in_view = """(text) => { const box = document.querySelector('.blocks').getBoundingClientRect();
        return [...document.querySelectorAll('.row')].some((row) => {
          const { top, bottom } = row.getBoundingClientRect();
          return row.textContent === text && top >= box.top && bottom <= box.bottom }) }"""
    # All of these lines have eight bytes.
    watched.page.goto(f"{served.url}/c/c1/b1?at={end - 8 * (600_000 - 512_346)}")
    watched.until(lambda: watched.page.evaluate(in_view, "512347\n"), "the line of the link is in view")
    watched.page.locator("#b1 .meta", has_text="600,000 lines").wait_for()
    assert watched.page.evaluate(in_view, "512347\n"), "it still is when all is there"
    watched.page.evaluate("document.querySelector('.blocks').scrollTop = 1e9")
    watched.until(lambda: watched.page.evaluate(in_view, "600000\n"), "the last line")
    watched.page.evaluate("document.querySelector('.blocks').scrollTop = 0")
    watched.until(lambda: watched.page.evaluate(in_view, "1\n"), "the first line")
    assert watched.complaints == []


@pytest.mark.needs("vim")
def test_vim_is_shown_cell_by_cell_and_typed_into_after_taking_over(
    context: BrowserContext, served: Served, tmp_path: Path
) -> None:
    file = tmp_path / "plan.md"
    file.write_text("# Plan\n\n- [x] one\n- [ ] two 文字 é\n")
    watched = enter(sign_in(context, served))
    served.cli("exec-interactive", "c1", f"vim -u NONE -N {file}")
    watched.until(lambda: "# Plan" in watched.screen(), "vim draws")
    watched.until(lambda: watched.screen() == served.rows(), "the screen is that of the engine")
    watched.page.keyboard.press("t")
    watched.page.wait_for_selector(".glass.mine")
    watched.page.keyboard.type("Gothree")
    watched.until(lambda: "three" in watched.screen(), "what was typed is shown")
    watched.page.reload()  # joined in the middle of it
    watched.page.wait_for_selector(".screen-head .chip.run")
    watched.until(lambda: "three" in watched.screen(), "drawn again")
    watched.until(lambda: watched.screen() == served.rows(), "the screen is that of the engine")
    watched.page.keyboard.press("t")
    watched.page.wait_for_selector(".glass.mine")
    watched.page.keyboard.press("Escape")
    watched.until(lambda: not any("INSERT" in row for row in watched.screen()), "vim has taken the key for itself")
    watched.page.keyboard.type(":q!\n")
    watched.until(lambda: watched.page.locator(".block:not(.run)").count() == 1, f"{watched.screen()}")
    watched.page.keyboard.press("Control+]")
    watched.page.wait_for_selector(".glass:not(.mine)")
    assert any(isinstance(one, bytes) for one in watched.sent), "so that the other tests would see input"
    assert watched.complaints == []


def test_a_status_that_is_late_takes_no_control_away(context: BrowserContext, served: Served) -> None:
    watched = enter(sign_in(context, served))
    late: list[tuple[Route, APIResponse]] = []
    watched.page.route("**/status", lambda route: late.append((route, route.fetch())))
    served.cli("run", "c1", "true")  # the page looks at the status where a command has ended
    watched.until(lambda: bool(late), "the status from before is on its way")
    watched.page.keyboard.press("t")
    watched.page.wait_for_selector(".glass.mine")
    for route, response in late:
        route.fulfill(response=response)
    watched.page.unroute("**/status")
    watched.page.keyboard.type("echo th''ree\n")
    watched.until(lambda: "three" in watched.screen(), "what was typed has arrived")
    assert watched.page.locator(".glass.mine").count() == 1
    watched.page.keyboard.press("Control+]")
    watched.page.wait_for_selector(".glass:not(.mine)")
    assert watched.complaints == []


def test_who_only_watches_types_nothing(context: BrowserContext, served: Served) -> None:
    watched = enter(sign_in(context, served))
    before = served.rows()
    watched.page.click(".glass")
    watched.page.keyboard.type("echo no\n")
    watched.page.wait_for_selector(".notice")
    _run(watched, "true")  # after all that was typed before
    watched.page.wait_for_selector(".block.ok")
    assert not any("no" in row for row in served.rows() if row not in before)
    assert watched.complaints == []


def test_a_killed_server_leaves_no_gap(context: BrowserContext, served: Served) -> None:
    watched = enter(sign_in(context, served))
    _run(watched, "for i in $(seq 1 400); do echo line-$i; sleep 0.01; done")
    watched.until(lambda: any(row.startswith("line-") for row in watched.screen()), "it prints")
    served.kill()
    watched.page.wait_for_selector(".banner")
    served.start()
    watched.page.wait_for_selector(".screen-head .chip.run")
    watched.page.wait_for_selector(".block.ok")
    watched.until(lambda: "line-400" in watched.screen(), "it goes on to the end")
    watched.until(lambda: watched.screen() == served.rows(), "the screen is that of the engine")
    buffered = watched.page.evaluate(
        """() => { const b = document.querySelector('.glass').terminal.buffer.active;
        return Array.from({length: b.length}, (_, y) => b.getLine(y).translateToString(true)) }"""
    )
    lines = [row for row in buffered if row.startswith("line-")]
    assert lines == [f"line-{number}" for number in range(401 - len(lines), 401)], "no gap and nothing twice"
    watched.page.locator("[aria-live=polite] p", has_text="Connected again").wait_for(state="attached")
    watched.page.locator(".block .fold button").click()
    watched.until_script("document.querySelector('.out').clientHeight === 400 * 19")
    # A lost connection is an error of the console; nothing else may be.
    lost = ("WebSocket connection", "Failed to load resource")
    assert [one for one in watched.complaints if not any(word in one for word in lost)] == []


def test_a_read_token_has_no_way_to_type(context: BrowserContext, served: Served) -> None:
    token = json.loads(served.cli("token", "add", "watcher", "--scope", "read", "--json"))["token"]
    asked = context.request.post(
        f"{served.url}/auth/code", headers={"Authorization": f"Bearer {token}"}, data={}
    ).json()
    watched = Watched(context.new_page())
    watched.page.goto(f"{served.url}/#code={asked['code']}")
    watched.page.click(".side .entry")
    watched.page.wait_for_selector(".screen-head .chip.run")
    assert watched.page.locator(".composer textarea, .title button, .side-head .button").count() == 0
    watched.page.keyboard.press("t")
    watched.page.click(".glass")
    watched.page.keyboard.type("x")
    watched.page.wait_for_selector(".notice")
    assert watched.complaints == [] and not any(isinstance(one, bytes) for one in watched.sent)


def test_an_approval_is_shown_exactly_and_answered(context: BrowserContext, served: Served) -> None:
    policy = '[[rule]]\nname = "push"\naction = "ask"\ncommands = ["git push"]\nreason = "It publishes commits."\n'
    (served.home / "policy.toml").write_text(policy)
    served.kill()
    served.start()
    watched = enter(sign_in(context, served))
    agent = json.loads(served.cli("token", "add", "helper", "--json"))["token"]
    headers = {"Authorization": f"Bearer {agent}"}
    body = {"command": "git push --dry-run nowhere\u202e"}
    watched.page.evaluate(
        """([url, headers, body]) => { window.answer = fetch(url, {method: 'POST', body: JSON.stringify(body),
        headers: {...headers, 'Content-Type': 'application/json'}}).then((r) => r.json()) }""",
        [f"{served.url}/v1/conversations/c1/run", headers, body],
    )
    card = watched.page.locator(".ask")
    card.wait_for()
    assert card.locator("pre").inner_text() == "git push --dry-run nowhere<U+202E>"
    assert watched.page.title().startswith("(1)")
    assert watched.page.evaluate("document.activeElement.closest('.ask')") is None, "it never takes the focus"
    watched.page.bring_to_front()
    card.get_by_role("button", name="Always…").click()
    assert 'action = "allow"' in card.locator("pre").last.inner_text(), "the rule that would be added"
    card.get_by_role("button", name="Back").click()
    card.get_by_role("button", name="Refuse", exact=True).click()
    refused = watched.page.evaluate("window.answer")
    assert refused["error"]["code"] == "approval_denied"
    card.wait_for(state="detached")


_SCRIPT = "window.pwned=1"
_MARKUP = (
    f"<script>{_SCRIPT}</script>", f"<img src=x onerror={_SCRIPT}>", f"<svg onload={_SCRIPT}>",
    f"<body onload={_SCRIPT}>", f"<iframe srcdoc='<script>parent.{_SCRIPT}</script>'>", "</script><h1>x",
    f"<a href=javascript:{_SCRIPT}>x</a>", f"<style onload={_SCRIPT}>*{{display:none}}</style>",
    "<base href=//evil.example>", "<meta http-equiv=refresh content=0>", f"<details open ontoggle={_SCRIPT}>",
    f"<math><mi//xlink:href=javascript:{_SCRIPT}>", "<!--", "]]>", "&lt;b&gt;&#x3c;", f"'-{_SCRIPT}-'",
    f"${{{_SCRIPT}}}", f"{{{{{_SCRIPT}}}}}", "__proto__", "constructor",
)  # fmt: skip
_SEQUENCES = (
    r"\e]0;<img src=x onerror=window.pwned=1>\a", r"\e]2;title\e\\", r"\e]52;c;cHduZWQ=\a", r"\e]9;note\a",
    r"\e]8;;javascript:window.pwned=1\ax\e]8;;\a", r"\e]777;notify;a;b\a", r"\e]1337;File=inline=1:AAAA\a",
    r"\e]10;?\a", r"\e]4;1;?\a", r"\e]50;?\a", r"\e[c", r"\e[>c", r"\e[=c", r"\e[6n", r"\e[?6n", r"\e[5n",
    r"\e[>q", r"\e[?2026$p", r"\e[?u", r"\e[18t", r"\eZ", r"\eP$qm\e\\", r"\eP+q544e\e\\", r"\x05",
    r"\e[38;2;300;-1;9999999999mx\e[m", r"\e[99999999Cx", r"\xff\xfe\x80", r"\u202e\u2066x\u200b",
    r"\e[?1049h\e[?1049l", r"\a\b\b\b\r", r"\e_G\e\\", r"\e^x\e\\", r"\x9b6n",
)  # fmt: skip


def test_hostile_output_is_only_text(context: BrowserContext, served: Served, tmp_path: Path) -> None:
    script = tmp_path / "hostile.sh"
    lines = [f"printf '%s\\n' {shlex.quote(one)}" for one in _MARKUP]
    lines += [f"printf '{one}\\n'" for one in _SEQUENCES]
    script.write_text("\n".join(lines) + "\necho the-end\n")
    directory = tmp_path / "<img src=x onerror=window.pwned=1>"
    directory.mkdir()
    markup = "<img src=x onerror=window.pwned=1>"
    there = (f"bash {script}", f"cd '{directory}'", f"true '{markup}'", f"bash {script}; false")
    for command in there:
        served.cli("run", "c1", command, check=False)
    watched = enter(sign_in(context, served))
    _run(watched, f"bash {script}; echo '<svg onload=window.pwned=1>'; cat {script}")
    watched.until_script("document.querySelectorAll('.block:not(.run)').length === 5")
    # At once: an output that turns out to draw on the whole screen has no such button any more.
    watched.page.evaluate("document.querySelectorAll('.fold button').forEach((button) => button.click())")
    watched.until(lambda: watched.screen() == served.rows(), "the screen is that of the engine")
    watched.page.goto(served.url)
    watched.page.wait_for_selector(".lately .table a")
    watched.page.keyboard.press("Control+k")
    watched.page.keyboard.type("c1")
    watched.page.wait_for_selector("[role=option]")
    watched.page.goto(f"{served.url}/c/c1/replay?at=0&play=1")
    watched.page.wait_for_selector(".moments .chosen")
    watched.until(lambda: watched.screen() == served.rows(), "the replay ends with the screen of the engine")
    for query in ("<", "onload", "the-end"):
        watched.page.goto(f"{served.url}/search?q={query}&blocks=0")
        watched.page.wait_for_selector(".hits mark")
        watched.page.wait_for_selector(".around .chosen")
    watched.page.goto(f"{served.url}/c/%3Cimg%20src=x%20onerror=window.pwned=1%3E/x")
    watched.page.wait_for_selector(".middle.empty")
    watched.page.goto(f"{served.url}/search?q=%3Cimg%20src=x%20onerror=window.pwned=1%3E")
    watched.page.wait_for_selector(".home h1")
    assert watched.page.evaluate("window.pwned") is None
    assert watched.page.evaluate("document.querySelectorAll('img, iframe, script:not([src]), base').length") == 0
    # A conversation that is not there is answered with 400, which the console names.
    assert [one for one in watched.complaints if "Failed to load resource" not in one] == []
    kinds = {json.loads(one)["type"] if isinstance(one, str) else "input" for one in watched.sent}
    allowed = {"ack", "screens", "pause", "resume", "seek"}
    assert kinds <= allowed, "nothing went back to the programs"

"""What a person does to shells in the page: stop, halt, release, answer, paste; and what the page says of them."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal

import pytest

from tests.support.browser import Served, Watched, enter, sign_in, skip_where_missing

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import APIResponse, Browser, BrowserContext, Route, WebSocketRoute

pytestmark = [skip_where_missing(), pytest.mark.needs("bash"), pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture
def served(served: Served) -> Iterator[Served]:
    yield served
    served.cli("release-control", "c1", check=False)


def _agent(served: Served) -> dict[str, str]:
    """Return the headers of an agent."""
    token = json.loads(served.cli("token", "add", "helper", "--json"))["token"]
    return {"Authorization": f"Bearer {token}"}


def _types(context: BrowserContext, served: Served, headers: dict[str, str]) -> str:
    """Have an agent run something; return the code of the error, "" for none."""
    body = {"command": "true"}
    answer = context.request.post(f"{served.url}/v1/conversations/c1/run", headers=headers, data=body).json()
    return str(answer.get("error", {}).get("code", ""))


def _noticing(watched: Watched) -> Callable[[str], None]:
    """Keep the notices of a page from now on, which go away by themselves; returns what waits for one."""
    watched.page.evaluate("""() => {
      window.noticed = new Set();
      const look = () => noticed.add(document.querySelector('.notice')?.textContent);
      new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
    }""")

    def wait(words: str) -> None:
        watched.until_script(f"[...noticed].some((one) => one?.includes({json.dumps(words)}))")

    return wait


def _command(watched: Watched, words: str) -> None:
    """Give a command by name."""
    watched.page.keyboard.press("Control+k")
    watched.page.keyboard.type(words)
    watched.page.keyboard.press("Enter")


def test_stop_goes_on_to_stronger_signals_and_all_can_be_halted(context: BrowserContext, served: Served) -> None:
    watched = enter(sign_in(context, served))
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
    noticed = _noticing(watched)
    page.get_by_role("button", name="Stop everything").click()
    noticed("Agents are halted, and 1 command was interrupted.")
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


def test_a_status_that_is_late_hides_no_command_that_runs(context: BrowserContext, served: Served) -> None:
    watched = enter(sign_in(context, served))
    page = watched.page
    late: list[tuple[Route, APIResponse]] = []
    page.route("**/status", lambda route: late.append((route, route.fetch())))
    served.cli("run", "c1", "true")  # the page asks for the status where a command has ended
    watched.until(lambda: bool(late), "the status from before is on its way")
    served.cli("exec-block", "c1", "bash -c 'trap \"\" INT; echo up; while :; do sleep 1000; done'")
    page.locator(".block.run .row", has_text="up").wait_for()
    for route, response in late:
        with page.expect_response("**/status"):
            route.fulfill(response=response)
    page.unroute("**/status")
    page.evaluate("() => new Promise((done) => setTimeout(done))")
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="End it").click()
    page.locator(".block .ending", has_text="killed (SIGTERM)").wait_for()
    assert watched.complaints == []


@pytest.mark.needs("dash")
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
    page.evaluate("""() => { window.heard = [];
      const hear = (all) => heard.push(...all.flatMap((one) => [...one.addedNodes]).map((one) => one.textContent));
      new MutationObserver(hear)
        .observe(document.querySelector('[aria-live=polite] .unseen'), { childList: true }) }""")
    served.cli("exec-interactive", "c1", "read -p 'Your name, please: ' name")
    alarm.wait_for(state="detached")

    page.locator(".banner code", has_text="Your name, please:").wait_for()
    page.locator(".banner").get_by_role("button", name="Answer").click()
    page.wait_for_selector(".glass.mine")
    watched.until(lambda: page.title() == "You type · blockpty", "the title says it")
    page.keyboard.type("Ada\n")
    page.locator(".block.ok", has_text="Your name").wait_for()
    page.keyboard.press("Control+]")
    page.wait_for_selector(".glass:not(.mine)")
    watched.until(lambda: page.title() == "c1 · blockpty", "and no more")
    # The title of a program and its bell, which a key puts away.
    served.cli("run", "c1", r"printf '\e]2;<b>mine\a\a'")
    page.locator(".facts", has_text="<b>mine").wait_for()
    page.locator(".side .why", has_text="The bell has rung").wait_for()
    page.keyboard.press("Escape")
    page.locator(".side .why").wait_for(state="detached")
    assert "mine" not in page.title()
    served.cli("take-control", "c1", "--who", "Grace")
    page.locator(".title .chip.user").get_by_text("Grace types since ").wait_for()
    served.cli("release-control", "c1")
    served.cli("exec-interactive", "c1", "read -rs -p 'Secret: ' x")
    page.locator(".banner", has_text="asks for a password").get_by_role("button", name="Ctrl-C").click()
    page.locator(".banner").wait_for(state="detached")

    heard = page.evaluate("heard")
    served.cli("run", "c1", "cd /usr")
    served.cli("close", "c1")
    page.get_by_role("button", name="Open it again").click()
    watched.until(lambda: not page.url.endswith("/c/c1"), "a new conversation")
    page.wait_for_selector(".screen-head .chip.run")
    page.locator(".facts code", has_text="/usr").wait_for()
    served.cli("close", page.url.rpartition("/")[2])
    served.cli("open", "c2", "--shell", "dash")
    served.cli("run", "c2", "true")
    page.goto(f"{served.url}/c/c2")
    banner = page.locator(".banner.red", has_text="The record is degraded: ")
    banner.get_by_role("link", name="b1").wait_for()  # what is less than certain
    noticed = _noticing(watched)
    banner.get_by_role("button", name="Verify").click()
    noticed("Verified: blocks and events follow from the bytes.")
    banner.get_by_role("button", name="What does it mean?").click()
    banner.get_by_text("Every byte is recorded").wait_for()
    served.cli("close", "c2")
    assert heard[:4] == [
        "read -p 'Your name, please: ' name has begun", "You have control. Control ] hands back.",
        "read -p 'Your name, please: ' name: ended well", "You have no control any more",
    ]  # fmt: skip
    assert watched.complaints == []


# What asks a terminal to answer, to tell something or to do something to its window; 0 or 1 line each on the screen.
ASKING = (
    r"\e[c", r"\e[0c", r"\e[>c", r"\e[>0c", r"\e[=c", r"\eZ",  # DA1, DA2, DA3, DECID
    r"\e[5n", r"\e[6n", r"\e[?6n", r"\e[?15n", r"\e[?25n", r"\e[?26n", r"\e[?53n", r"\e[?996n",  # DSR
    r"\e[4$p", r"\e[?1$p", r"\e[?2004$p", r"\e[?2026$p",  # DECRQM
    r"\e[>q", r"\e[>0q", r"\eP$qm\e\\", r"\eP$qr\e\\", r"\eP$q q\e\\", r"\eP+q544e\e\\",  # XTVERSION, DECRQSS
    r"\e[11t", r"\e[13t", r"\e[14t", r"\e[15t", r"\e[16t", r"\e[18t", r"\e[19t", r"\e[20t", r"\e[21t",  # windows
    r"\e]4;1;?\a", r"\e]10;?\a", r"\e]11;?\a", r"\e]12;?\e\\", r"\e]17;?\a", r"\e]19;?\a",  # colours
    r"\e[?u", r"\e[x", r"\e[1x", r"\e[1;1;1;1;1;1*y", r"\e[1$w", r"\e[2$w", r"\x05",  # kitty, reports, checksum, ENQ
    r"\e]52;c;cHduZWQ=\a", r"\e]52;c;?\a", r"\e]9;note\a", r"\e]777;notify;a;b\a", r"\e]99;;x\e\\", r"\e]50;?\a",
    r"\e]1337;ReportCellSize\a", r"\e]1337;File=inline=1:AAAA\a", r"\e]8;;javascript:alert(1)\ax\e]8;;\a",
)  # fmt: skip


def _typed(watched: Watched) -> bytes:
    """Return all that the page has sent to programs."""
    return b"".join(one for one in watched.sent if isinstance(one, bytes))


def _late(route: WebSocketRoute) -> None:
    """Have the first event of control that is handed back, and later ones, come after the answer that it was taken."""
    held: list[str | bytes] = []
    overtaken = False
    server = route.connect_to_server()

    def change(message: str | bytes) -> None:
        nonlocal overtaken
        content: dict[str, Any] = json.loads(message) if isinstance(message, str) else {}
        event = content.get("event", {})
        if event and not overtaken and (held or event.get("state") == "agent"):
            held.append(message)
            return
        route.send(message)
        if content.get("type") == "control":
            overtaken = True
            for one in held:
                route.send(one)
            held.clear()

    server.on_message(change)


def _ask_for_control(first: Watched, second: Watched) -> None:
    """Have ann ask for the control that the owner has: kept, given up, then handed over and asked back."""
    second.page.context.route_web_socket("**/v1/conversations/c1/ws?*", _late)
    held: list[Route] = []
    second.page.route("**/assets/glass-*.js", lambda route: held.append(route))
    second.page.reload()
    owners, anns = first.page.locator(".middle .banner"), second.page.locator(".middle .banner")
    second.page.locator(".title .chip.user", has_text="owner types since ").wait_for()
    ask = second.page.get_by_role("button", name="Ask for control")
    ask.click()
    # What was clicked before the page is connected is done once it is: it connects when the screen is there.
    second.until(lambda: bool(held), "the screen is loaded")
    held[0].continue_()
    anns.get_by_text("You have asked owner for control.").wait_for()
    owners.get_by_text("ann asks for control.").wait_for()
    first.page.locator("[aria-live=assertive] p", has_text="ann asks for control").wait_for(state="attached")
    assert ask.count() == 0
    anns.get_by_role("button", name="Stop asking").click()
    owners.wait_for(state="detached")
    second.page.keyboard.press("t")
    owners.get_by_role("button", name="Keep it").click()
    anns.get_by_text("owner keeps control.").wait_for()
    second.page.locator(".unseen p", has_text="owner keeps control").wait_for(state="attached")
    owners.wait_for(state="detached")
    ask.click()
    anns.get_by_role("button", name="Stop asking").wait_for()
    owners.get_by_role("button", name="Hand over").click()
    second.page.wait_for_selector(".glass.mine")
    first.page.wait_for_selector(".glass:not(.mine)")
    first.page.locator(".title .chip.user", has_text="ann types").wait_for()
    assert owners.count() == anns.count() == 0
    # It is taken once: who hands back has it no more. And who asks last is gone with its page.
    second.page.keyboard.press("Control+]")
    first.page.get_by_role("button", name="Take over").click()
    first.page.wait_for_selector(".glass.mine")
    ask.click()
    owners.get_by_text("ann asks for control.").wait_for()
    second.page.goto("about:blank")
    owners.wait_for(state="detached")


def test_nothing_is_sent_to_a_program_but_what_a_person_types(
    chromium: Browser, context: BrowserContext, served: Served, tmp_path: Path
) -> None:
    """Though the page may type, and so would answer; and what it sends goes nowhere but to the program."""
    script = tmp_path / "asking.sh"
    script.write_text("".join(f"printf '{one}'\n" for one in ASKING) + "printf '\\n%s-%s\\n' the end\n")
    watched = enter(sign_in(context, served))
    page = watched.page
    page.keyboard.press("t")
    page.wait_for_selector(".glass.mine")
    other = chromium.new_context()
    try:
        second = Watched(other.new_page())
        received: list[str | bytes] = []

        def opened(socket: Any) -> None:
            socket.on("framereceived", lambda frame: received.append(frame))

        second.page.on("websocket", opened)
        token = json.loads(served.cli("token", "add", "ann", "--types-as", "user", "--json"))["token"]
        headers = {"Authorization": f"Bearer {token}"}
        code = other.request.post(f"{served.url}/auth/code", headers=headers, data={}).json()["code"]
        second.page.goto(f"{served.url}/#code={code}")
        second.page.click(".side .entry")
        second.page.wait_for_selector(".screen-head .chip.run")
        command = f"bash {script}\n"
        page.keyboard.type(command)
        watched.until(lambda: "the-end" in watched.screen(), "all of it was printed")
        watched.until(lambda: watched.screen() == served.rows(), "the screen is that of the engine")
        assert _typed(watched) == command.replace("\n", "\r").encode(), "no answer to anything"
        page.keyboard.type("read -rsp 'Secret: ' x; echo got ${#x}\n")
        page.locator(".banner", has_text="asks for a password").wait_for()
        page.keyboard.type("hunter22\n")
        for one in (watched, second):
            one.until(lambda one=one: "Secret: got 8" in "".join(one.screen()), "both see it")
        expected = f"{command}read -rsp 'Secret: ' x; echo got ${{#x}}\nhunter22\n".replace("\n", "\r")
        assert _typed(watched) == expected.encode()
        texts = [json.loads(one) for one in watched.sent if isinstance(one, str)]
        assert {one["type"] for one in texts} <= {"ack", "screens", "take_control"}
        kept = "JSON.stringify([{...localStorage}, {...sessionStorage}, location.href, document.body.innerText])"
        for one in (watched, second):
            assert "hunter22" not in one.page.evaluate(kept)
        seen = b"".join(one if isinstance(one, bytes) else one.encode() for one in received)
        assert b"got 8" in seen and b"hunter22" not in seen
        assert _typed(second) == b""
        _ask_for_control(watched, second)
        assert watched.complaints == second.complaints == []
    finally:
        other.close()


def test_a_screen_that_is_too_wide_is_panned_and_made_to_fit(context: BrowserContext, served: Served) -> None:
    served.cli("resize", "c1", "200", "24")
    watched = enter(sign_in(context, served))
    page = watched.page
    glass = "document.querySelector('.glass')"
    watched.until_script(f"document.querySelector('.xterm-screen').offsetWidth > {glass}.clientWidth")

    in_sight = f"""() => {{
      const {{ terminal }} = {glass}, {{ cursorX }} = terminal.buffer.active, seen = {glass}.getBoundingClientRect();
      const box = document.querySelector('.xterm-screen').getBoundingClientRect();
      const x = box.left + cursorX * box.width / terminal.cols;
      return cursorX > 150 && x > seen.left && x < seen.right }}"""
    served.cli("send", "c1", "--author", "user", ": " + "x" * 150)
    watched.until(lambda: bool(page.evaluate(in_sight)), "the cursor is kept in sight")
    page.evaluate(f"{glass}.scrollLeft = 0")
    watched.until_script(f"{glass}.scrollLeft === 0")
    served.cli("send", "c1", "--author", "user", "y")
    watched.until(lambda: "xy" in "".join(watched.screen()), "more is printed")
    assert page.evaluate(f"{glass}.scrollLeft") == 0, "a person looks there"
    page.evaluate(f"{glass}.scrollLeft = {glass}.scrollWidth")
    served.cli("send", "c1", "--author", "user", "\x03")
    watched.until_script(f"{glass}.scrollLeft === 0")

    assert page.get_by_role("button", name="Fit to my window").count() == 0, "only who types may"
    page.keyboard.press("t")
    page.wait_for_selector(".glass.mine")
    page.get_by_role("button", name="Fit to my window").click()
    watched.until_script(f"{glass}.terminal.cols < 90 && {glass}.scrollWidth <= {glass}.clientWidth")
    cols, rows = page.evaluate(f"[{glass}.terminal.cols, {glass}.terminal.rows]")
    page.locator(".screen-head", has_text=f"{cols}×{rows}").wait_for()
    assert rows > 24, "all of the height is used"
    assert not page.evaluate("document.querySelector('.xterm-screen').getBoundingClientRect().bottom > innerHeight")

    # The keys of the browser are its program's where the page fills the screen, and while this page has control.
    own = page.get_by_role("group", name="Keys that the browser keeps for itself")
    own.wait_for()
    page.evaluate("""() => { window.locks = []; const { lock, unlock } = Keyboard.prototype;
      Keyboard.prototype.lock = function (codes) { locks.push(codes.join(' ')); return lock.call(this, codes); };
      Keyboard.prototype.unlock = function () { locks.push('none'); unlock.call(this); } }""")
    full = page.get_by_role("button", name="Full screen")
    full.click()
    own.wait_for(state="detached")
    assert page.evaluate("[document.fullscreenElement.localName, locks]") == ["html", ["Escape KeyW KeyT KeyN"]]
    page.focus(".glass textarea")
    page.keyboard.press("Control+]")
    watched.until_script("locks.length === 2")
    full.click()
    watched.until_script("document.fullscreenElement === null")
    page.keyboard.press("t")
    own.wait_for()
    assert page.evaluate("locks.at(-1)") == "none"
    assert watched.complaints == []


def test_what_is_pasted_is_shown_first_where_it_has_lines_or_control_characters(
    context: BrowserContext, served: Served
) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    watched = enter(sign_in(context, served))
    page = watched.page

    def paste(text: str) -> None:
        page.evaluate("(text) => navigator.clipboard.writeText(text)", text)
        page.keyboard.press("Shift+Insert")

    page.click(".glass")
    noticed = _noticing(watched)
    paste("nothing")
    noticed("You are watching")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("t")
    page.wait_for_selector(".glass.mine")
    paste("echo on''e ")
    watched.until(lambda: "echo on''e" in "".join(watched.screen()), "one line goes to the program as it is")
    dialog = page.get_by_role("dialog", name="Paste")
    paste("echo two\necho \x1bthree\u202e\n")
    dialog.wait_for()
    assert dialog.locator("pre").inner_text() == "echo two\necho <U+001B>three<U+202E>\n"
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    assert page.evaluate("document.activeElement.closest('.glass') !== null"), "one goes on typing"
    paste("\\\n&& echo tw''o")
    dialog.wait_for()
    page.keyboard.down("x")
    dialog.get_by_role("button", name="Paste").click()
    assert dialog.count() == 1, "no button does anything while a key is down"
    page.keyboard.up("x")

    def answers() -> bool:
        dialog.get_by_role("button", name="Paste").click()
        return dialog.count() == 0

    watched.until(answers, "then it does")
    page.keyboard.type("\n")
    watched.until(lambda: {"one", "two"} <= set(watched.screen()), "the program has what was pasted")
    assert [json.loads(one)["text"] for one in watched.sent if isinstance(one, str) and '"paste"' in one] == [
        "echo on''e ", "\\\n&& echo tw''o",
    ]  # fmt: skip
    assert _typed(watched) == b"\r"
    page.keyboard.type("echo gone")
    watched.until(lambda: any("echo gone" in row for row in watched.screen()), "a word to delete")
    page.get_by_role("button", name="Ctrl+W").click()
    watched.until(lambda: not any("echo gone" in row for row in watched.screen()), "a key that the browser keeps")
    assert _typed(watched) == b"\recho gone\x17"
    assert watched.complaints == []


ASKS = '[[rule]]\nname = "push"\naction = "ask"\ncommands = ["git push"]\nreason = "It publishes commits."\n'


def _policy(served: Served, text: str) -> None:
    """Have the server go by a policy; it sees the change of a file within a second only."""
    (served.home / "policy.toml").write_text(text)
    served.kill()
    served.start()


def _asking(served: Served, headers: dict[str, str], command: str, pool: ThreadPoolExecutor) -> Future[str]:
    """Have an agent run what a person must allow; the future has `ran`, or the code of the error."""

    def ask() -> str:
        request = urllib.request.Request(
            f"{served.url}/v1/conversations/c1/run", json.dumps({"command": command}).encode(),
            {**headers, "Content-Type": "application/json"},
        )  # fmt: skip
        try:
            urllib.request.urlopen(request, timeout=120).close()
        except urllib.error.HTTPError as refused:
            return str(json.load(refused)["error"]["code"])
        return "ran"

    return pool.submit(ask)


# Clicks the button with a text as soon as there is one, neither none nor two.
CLICK = """words => {
  const observer = new MutationObserver(() => {
    const found = [...document.querySelectorAll('.ask button')].filter((one) => one.textContent.includes(words));
    if (found.length !== 1) return;
    observer.disconnect();
    found[0].click();
  });
  observer.observe(document.body, { subtree: true, childList: true });
}"""


def test_an_approval_counts_only_what_was_meant_for_it_and_says_who_answered(
    context: BrowserContext, served: Served
) -> None:
    _policy(served, ASKS)
    headers = _agent(served)
    watched = enter(sign_in(context, served))
    page = watched.page
    answers: list[str] = []
    page.on("request", lambda one: answers.append(one.url) if one.url.endswith(("/approve", "/deny")) else None)
    card, verdict = page.locator(".ask"), page.locator(".verdict")
    with ThreadPoolExecutor() as pool:
        # In the moment in which it appears, and with a key that was pressed before that.
        page.evaluate("""() => {
          const observer = new MutationObserver(() => {
            const card = document.querySelector('.ask');
            if (!card) return;
            observer.disconnect();
            card.querySelectorAll('button').forEach((one) => one.click());
            card.dispatchEvent(new KeyboardEvent('keydown', { key: 'y', code: 'KeyY', bubbles: true }));
          });
          observer.observe(document.body, { subtree: true, childList: true });
        }""")
        page.keyboard.down("y")
        page.keyboard.down("CapsLock")  # of which macOS does not tell that it goes up
        asked = _asking(served, headers, "git push one", pool)
        page.locator(".ask .button:enabled", has_text="Approve once").wait_for()
        assert page.locator("[aria-live=assertive] p").inner_text() == "Approval wanted in c1: It publishes commits."
        page.keyboard.press("a")
        assert page.evaluate("document.activeElement.className") == "ask"
        page.keyboard.down("y")
        page.get_by_role("button", name="Approve once").click()
        page.keyboard.up("y")
        page.evaluate("document.hasFocus = () => false")
        page.keyboard.press("y")
        page.get_by_role("button", name="Approve once").click()
        card.get_by_role("alert").get_by_text("That came too soon, or while a key was down. Press again.").wait_for()
        assert answers == [] and card.count() == 1
        page.evaluate("delete document.hasFocus")
        page.keyboard.press("y")
        verdict.get_by_text("You approved it once.").wait_for()
        assert asked.result() == "ran" and len(answers) == 1
        card.wait_for(state="detached")

        asked = _asking(served, headers, "git push two", pool)
        card.wait_for()
        verdict.wait_for(state="detached")
        other = _asking(served, headers, "git push other", pool)
        page.locator(".ask .button:enabled", has_text="Approve once").nth(1).wait_for()
        # Nor does a click count that comes when another card has just moved into the place of the first.
        page.evaluate(CLICK, "Approve once")
        waiting = json.loads(served.cli("approvals", "--json"))["approvals"][0]
        served.cli("deny", "c1", waiting["approval_id"], waiting["digest"], "--reason", "not today")
        verdict.get_by_text("owner refused it: not today").wait_for()
        assert asked.result() == "approval_denied"
        card.get_by_role("alert").get_by_text("That came too soon").wait_for()
        assert card.locator("pre").inner_text() == "git push other" and len(answers) == 1
        page.evaluate(CLICK, "Add the rule")
        page.get_by_role("button", name="Always…").click()
        page.locator(".ask .button:enabled", has_text="Add the rule and approve").wait_for()
        page.get_by_role("button", name="Back").click()
        page.get_by_role("button", name="Refuse", exact=True).click()
        verdict.get_by_text("You refused it.").wait_for()
        assert other.result() == "approval_denied" and len(answers) == 2
        card.wait_for(state="detached")

        asked = _asking(served, headers, "git push three", pool)
        page.locator(".ask .button:enabled", has_text="Approve once").wait_for()
        assert verdict.count() == 0  # and a verdict that was shown once does not come back

        def spoil(route: Route) -> None:
            """Approve something else than what was shown."""
            route.continue_(post_data={**(route.request.post_data_json or {}), "digest": "0" * 64})

        page.route("**/approve", spoil)
        page.get_by_role("button", name="Approve once").click()
        card.get_by_role("alert").get_by_text("this verdict is for something other than the pending request").wait_for()
        page.unroute("**/approve")
        page.get_by_role("button", name="Refuse", exact=True).click()
        verdict.get_by_text("You refused it.").wait_for()
        assert asked.result() == "approval_denied"
        card.wait_for(state="detached")

        # On the first page, with the screen; and without an answer.
        page.click(".logo")
        asked = _asking(served, headers, "git push away", pool)
        card.wait_for()
        waiting = json.loads(served.cli("approvals", "--json"))["approvals"][0]
        served.cli("deny", "c1", waiting["approval_id"], waiting["digest"], "--reason", "not now")
        verdict.get_by_text("owner refused it: not now").wait_for()
        assert asked.result() == "approval_denied"
        card.wait_for(state="detached")
        asked = _asking(served, headers, "git push four", pool)
        card.wait_for()
        assert verdict.count() == 0
        card.locator(".mini div", has_text="git push").first.wait_for()
        page.locator(".ask .button:enabled", has_text="Refuse, and say why").click()
        page.fill(".ask input", "it is late")
        page.locator(".ask .button:enabled", has_text="Refuse").wait_for()
        page.keyboard.press("Enter")
        verdict.get_by_text("You refused it: it is late").wait_for()
        assert asked.result() == "approval_denied"
        (served.home / "policy.toml").write_text(f"approval_timeout_seconds = 4\n{ASKS}")
        served.kill()
        page.get_by_role("heading", name="The server does not answer").wait_for()
        served.start()
        page.get_by_role("heading", name="Nothing needs you").wait_for()
        asked = _asking(served, headers, "git push five", pool)
        verdict.get_by_text("No answer came in time, so it was refused.").wait_for()
        assert asked.result() == "approval_denied"
    # The console names a stale verdict, which is refused, and the server that was away.
    named = ("Failed to load resource", "WebSocket connection")
    assert [one for one in watched.complaints if not any(word in one for word in named)] == []


def test_what_is_said_outside_of_the_page(own_context: BrowserContext, served: Served) -> None:
    own_context.add_init_script("""
      window.notified = [], window.badges = [];
      window.Notification = class {
        static permission = 'default';
        static async requestPermission() { return this.permission = 'granted' }
        constructor(title, { body }) { notified.push(`${title}: ${body}`) }
      };
      navigator.setAppBadge = async (count) => { badges.push(count) };
      navigator.clearAppBadge = async () => { badges.push(0) };
      document.hasFocus = () => false;""")
    watched = sign_in(own_context, served)
    page = watched.page
    page.wait_for_selector(".home h1")
    icon = "document.querySelector('link[rel=icon]').href.includes('waiting')"
    assert page.evaluate(icon) is False
    for notified in ([], ["blockpty: 1 needs you"]):
        served.cli("exec-interactive", "c1", "read -rs x")
        watched.until(lambda: page.title() == "(1) blockpty", "the title says it")
        assert page.evaluate(f"[{icon}, badges.at(-1), notified]") == [True, 1, notified]
        served.cli("ctrl-c", "c1")
        watched.until(lambda: page.title() == "blockpty", "and no more")
        assert page.evaluate(f"[{icon}, badges.at(-1)]") == [False, 0]
        if not notified:
            page.get_by_role("button", name="Tell me").click()
            page.get_by_role("button", name="Tell me").wait_for(state="detached")

    found = page.evaluate("""async () => {
      const { href } = document.querySelector('link[rel=manifest]'), manifest = await (await fetch(href)).json();
      const icon = await fetch(new URL(manifest.icons[0].src, href));
      return [manifest.display, new URL(manifest.start_url, href).pathname, icon.headers.get('content-type')] }""")
    assert found == ["standalone", "/", "image/svg+xml"]
    _command(watched, "sign out")
    page.get_by_role("heading", name="Sign in").wait_for()
    assert page.evaluate("[sessionStorage.length, 'blockpty.token' in localStorage]") == [0, False]
    assert watched.complaints == []


def test_axe_finds_nothing_in_what_comes_and_goes(context: BrowserContext, served: Served) -> None:
    from axe_playwright_python.sync_playwright import Axe

    _policy(served, ASKS)
    watched = enter(sign_in(context, served))
    page = watched.page
    found: dict[str, Any] = {}

    def look(state: str, selector: str) -> None:
        """Look at a state, each in the other theme than the last one."""
        page.wait_for_selector(selector)
        theme: Literal["light", "dark"] = "dark" if len(found) % 2 else "light"
        page.emulate_media(color_scheme=theme)
        watched.until_script(f"document.documentElement.dataset.theme === '{theme}'")
        # The emulator takes its colours a frame later.
        colour = "getComputedStyle({}).color"
        rows = colour.format("document.querySelector('.xterm-rows') ?? document.body")
        watched.until_script(f"{rows} === {colour.format('document.body')}")
        found[state] = [(one["id"], one["nodes"][0]["html"]) for one in Axe().run(page).response["violations"]]

    page.keyboard.press("?")
    look("keys", "[role=dialog]")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    look("commands", "[role=option]")
    page.keyboard.press("Escape")
    watched.until_script("document.activeElement === document.body")
    page.keyboard.press("f")
    look("find", ".findbar input")
    page.keyboard.press("Escape")
    with ThreadPoolExecutor() as pool:
        asked = _asking(served, _agent(served), "git push", pool)
        look("approval", ".ask .button:enabled")
        page.set_viewport_size({"width": 390, "height": 844})
        look("approval on a phone", ".ask .button:enabled")
        page.get_by_role("button", name="Refuse", exact=True).click()
        assert asked.result() == "approval_denied"
    look("verdict", ".verdict")
    page.set_viewport_size({"width": 1600, "height": 960})
    served.cli("exec-interactive", "c1", "read -rs x")
    look("password", ".banner.wait")
    page.keyboard.press("t")
    look("control", ".glass.mine")
    page.keyboard.press("Control+]")
    page.wait_for_selector(".glass:not(.mine)")
    page.evaluate("document.activeElement.blur()")
    assert page.locator(".xterm-rows").get_attribute("aria-hidden") == "true", "the blocks are read, not the emulator"
    _command(watched, "screen reader")
    look("screen reader", ".xterm-accessibility")
    _command(watched, "sign out")
    look("sign in", ".sheet")
    assert found == {state: [] for state in found}

"""Screens of a conversation: what a terminal shows at a place of the record, and waits for it."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

import blockpty
from blockpty.errors import BadCondition, BadCursor, BadRequest
from blockpty.screen.emulator import Emulator
from tests.support.async_tests import async_test

pytestmark = pytest.mark.needs("bash")

# Draws a counter in the middle of an alternate screen; each key adds one, q leaves.
DRAWING = r"""
import sys, termios, tty
saved = termios.tcgetattr(0)
tty.setraw(0)
sys.stdout.write('\x1b[?1049h\x1b[2J\x1b[?25l')
count = 0
while True:
    sys.stdout.write('\x1b[12;30H\x1b[7mcount %d\x1b[m' % count)
    sys.stdout.flush()
    if sys.stdin.read(1) == 'q':
        break
    count += 1
sys.stdout.write('\x1b[?25h\x1b[?1049l')
sys.stdout.flush()
termios.tcsetattr(0, termios.TCSADRAIN, saved)
"""


def program(directory: Path, text: str) -> str:
    path = directory / "program.py"
    path.write_text(text, "utf-8")
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(path))}"


@async_test
async def test_a_shell_and_a_drawing_program(home: Path, tmp_path: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("seq 100")
        shell = await conversation.screen()
        assert shell.content.split("\n")[-2] == "100" and not shell.alt_screen
        assert (shell.cols, shell.rows, shell.cursor) == (80, 24, conversation.cursor)
        above = await conversation.screen(scrollback=3)
        first = int(shell.content.split("\n")[0])
        assert [int(line) for line in above.content.split("\n")[:4]] == [first - 3, first - 2, first - 1, first]
        await conversation.exec_interactive(program(tmp_path, DRAWING))
        seen = await conversation.wait_for({"screen": r"^ {29}count (\d+)$"}, timeout_ms=20_000)
        assert (seen.matched, seen.reason, seen.groups) == (True, "matched", {"1": "0"})
        before = await conversation.screen(format="agent")
        assert before.alt_screen and not before.cursor_visible and before.content.split("\n")[12].strip() == "count 0"
        await conversation.send_keys("x")
        changed = await conversation.wait_for({"changed": before.hash}, timeout_ms=20_000)
        assert changed.matched and changed.index == 0
        after = await conversation.screen(format="json", since=before.seqno)
        assert after.changed == [11] and after.hash != before.hash
        (run,) = [run for run in json.loads(after.content)["lines"][11]["runs"] if run["text"].startswith("count")]
        assert (run["text"], run.get("reverse", run.get("inverse"))) == ("count 1", True)
        await conversation.resize(100, 30)
        await conversation.send_keys("xx")
        await conversation.wait_for({"screen": "count 3"}, timeout_ms=20_000)
        wide = await conversation.screen()
        assert (wide.cols, wide.rows) == (100, 30)
        # No wait matches what a program no longer shows; and it says so when the program has ended.
        await conversation.send_keys("q")
        gone = await conversation.wait_for({"screen": "count 4"}, timeout_ms=20_000)
        assert (gone.matched, gone.reason) == (False, "prompt")
        back = await conversation.screen()
        assert not back.alt_screen and "count" not in back.content and "100" in back.content
        result = await conversation.verify()
        assert result.clean and result.waits >= 4, result.differences
        await conversation.close()


@async_test
async def test_the_screen_is_that_of_the_stream(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cols=40, rows=10)
        await conversation.run(r"printf 'a\tb\033[31mred\033[m\n%0100d\n' 7; seq 30; printf '\033[3;5Hhere\n'")
        looked = []
        for cols in (40, 25, 60):
            await conversation.resize(cols, 10)
            await conversation.wait_for({"idle_ms": 50})
            looked.append(await conversation.screen(format="json"))
        again = await (await engine.conversation("c1")).screen(format="json")
        assert again.content == looked[-1].content and again.hash == looked[-1].hash
        # By hand: the stream from its beginning, cut where the size changed.
        events = [event async for event in conversation.events(follow=False) if event.type == "resize"]
        emulator, at = Emulator(40, 10), 0
        for cursor, cols in [*((event.cursor, event.fields["cols"]) for event in events), (again.cursor, None)]:
            while at < cursor:
                piece = await conversation.read(at, view="raw", max_bytes=cursor - at)
                emulator.feed(base64.b64decode(piece.data_b64 or ""))
                at = piece.cursor
            if cols is not None:
                emulator.resize(cols, 10)
        lines = ["".join(run["text"] for run in line["runs"]).rstrip() for line in json.loads(again.content)["lines"]]
        assert lines == [line.text for line in emulator.frame().lines]
        await conversation.close()


@async_test
async def test_another_engine_sees_the_same(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", persist=True)
        await conversation.run(r"printf '\033[2J\033[5;5Hhello\n'")
        # The silence of the prompt counts in `seqno`; entered later, it would be another moment.
        await conversation.wait_for({"idle_ms": 50})
        first = await conversation.screen(format="ansi")
    async with blockpty.Engine(home) as engine:
        conversation = await engine.conversation("c1")
        second = await conversation.screen(format="ansi")
        assert (second.content, second.hash, second.seqno) == (first.content, first.hash, first.seqno)
        await conversation.close()


@async_test
async def test_a_new_shell_finds_a_terminal_of_its_own(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("echo kept")
        await conversation.exec_interactive(r"printf '\033[?1049h\033[?25l\033[?1000hfu''ll'; cat")
        await conversation.wait_for({"screen": "full"})
        assert (await conversation.screen()).alt_screen
        await conversation.reset()
        shown = await conversation.screen()
        assert not shown.alt_screen and shown.cursor_visible and shown.mouse == "off"
        assert "kept" in shown.content and "full" not in shown.content
        await conversation.close()


@async_test
async def test_a_program_that_never_pauses_is_looked_at(home: Path, tmp_path: Path) -> None:
    text = "import sys\nn = 0\nwhile True:\n    n += 1\n    sys.stdout.write('\\x1b[Hline %d \\n' % n)\n"
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.exec_interactive(f"{program(tmp_path, text)}")
        seen = await conversation.wait_for({"screen": r"^line \d{4,}"}, timeout_ms=30_000)
        assert seen.matched
        await conversation.interrupt()
        assert (await conversation.verify()).clean
        await conversation.close()


@async_test
async def test_a_torn_frame_is_not_shown_until_the_program_falls_silent(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.exec_interactive(
            r"printf '\033[2J\033[Hwhole'; printf '\033[?2026h\033[Hto'; read -r a; "
            r"printf '\033[1;3Hrn\033[?2026l'; read -r a"
        )
        # It is left open for good: a silence shows what there is.
        assert (await conversation.wait_for({"screen": "^toole"}, timeout_ms=20_000)).matched
        await conversation.send("\r")
        assert (await conversation.wait_for({"screen": "^torn"}, timeout_ms=20_000)).matched
        assert (await conversation.verify()).clean
        await conversation.close()


@async_test
async def test_events_name_the_pictures_of_blocks_and_of_recorded_looks(home: Path, tmp_path: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        plain = await conversation.run("echo plain")
        begun = await conversation.exec_interactive(program(tmp_path, DRAWING))
        await conversation.wait_for({"screen": "count 0"}, timeout_ms=20_000)
        looked = await conversation.screen(record=True)
        await conversation.send("q", session_id=begun.session_id)
        await conversation.wait_for("PROMPT", timeout_ms=20_000)
        events = [event async for event in conversation.events(follow=False)]
        switched = [event for event in events if event.type == "alt_screen"]
        assert [event.fields["on"] for event in switched] == [True, False]
        pictures = [event for event in events if event.type == "screen_snapshot"]
        assert [(event.fields["block_id"], event.fields["alt_screen"]) for event in pictures] == [
            (plain.block.block_id, False), (None, True), (begun.block_id, False),
        ]  # fmt: skip
        shown = [await conversation.screen(at=event.fields["at"]) for event in pictures]
        assert "\nplain" in shown[0].content
        assert (shown[1].content, shown[1].hash) == (looked.content, looked.hash)
        assert [screen.alt_screen for screen in shown] == [False, True, False]
        assert (await conversation.verify()).clean
        await conversation.close()
        with pytest.raises(blockpty.errors.Exited):
            await conversation.screen(record=True)
    async with blockpty.Engine(home) as engine:
        again = [event async for event in (await engine.conversation("c1")).events(follow=False)]
        assert again[: len(events)] == events


@async_test
async def test_bad_requests(home: Path) -> None:
    wrong: Any
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        for wrong in ({"format": "png"}, {"scrollback": -1}, {"scrollback": 10**6}):
            with pytest.raises(BadRequest):
                await conversation.screen(**wrong)
        for wrong in ({"screen": ""}, {"screen": "("}, {"changed": ""}, {"changed": "x"}, {"changed": "--"}):
            with pytest.raises(BadCondition):
                await conversation.wait_for(wrong, timeout_ms=0)
        assert (await conversation.set_scrollback(2)).scrollback_lines == 2
        await conversation.run("seq 50")
        assert len((await conversation.screen(scrollback=40)).content.split("\n")) == 24 + 2
        await conversation.close()


@async_test
async def test_a_pattern_that_does_not_end_is_refused_and_blocks_no_other_call(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("clear; printf 'a%.0s' {1..60}; echo !")
        waiting = asyncio.ensure_future(conversation.wait_for({"screen": "(a|aa)+$"}, timeout_ms=20_000))
        # Meanwhile others are answered.
        ran = [await conversation.run(f"echo {number}") for number in range(5)]
        assert [one.output for one in ran] == [f"{number}\n" for number in range(5)] and not waiting.done()
        with pytest.raises(BadCondition):
            await waiting
        # The same where what it stumbles over comes later.
        await conversation.run("clear")
        begun = await conversation.exec_block("sleep 0.1; printf 'a%.0s' {1..60}; echo !; sleep 1000")
        with pytest.raises(BadCondition):
            await conversation.wait_for({"screen": "(a|aa)+$"}, from_cursor=begun.cursor, timeout_ms=20_000)
        await conversation.interrupt()
        assert (await conversation.verify()).clean
        await conversation.close()


@async_test
async def test_no_screen_shows_a_nonce(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        nonce = (await conversation.run('printf %s "$__bpty_n"')).output
        assert set(nonce) == {"*"}
        secret = conversation.live.state.current.nonce
        for style in ("text", "json", "ansi", "html", "svg", "agent"):
            shown = await conversation.screen(format=style, scrollback=10)
            assert secret not in shown.content and "*" * len(secret) in shown.content
        assert not (await conversation.wait_for({"screen": secret}, from_cursor=0, timeout_ms=0)).matched
        assert (await conversation.verify()).clean
        await conversation.close()


@async_test
async def test_a_screen_of_the_past(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        seen = []
        for text in ("one", "two", "three"):
            await conversation.run(f"printf '\\033[2J\\033[H{text}\\n'")
            seen.append(await conversation.screen(format="json"))
            # A change of size at the very cursor of a result counts as part of it.
            await conversation.run("echo")
            await conversation.resize(60 + len(seen), 20)
            await conversation.wait_for({"idle_ms": 50})
        for one in reversed(seen):
            again = await conversation.screen(format="json", at=one.cursor)
            assert (again.cols, again.hash, again.cursor) == (one.cols, one.hash, one.cursor)
        for wrong in (-1, conversation.cursor + 1):
            with pytest.raises(BadCursor):
                await conversation.screen(at=wrong)
        assert (await conversation.screen(at=0)).content == ""
        await conversation.close()


@async_test
async def test_many_looks_at_once(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        begun = await conversation.exec_block("for i in 1 2 3 4 5; do echo step $i; sleep 0.06; done")
        waits = [
            conversation.wait_for({"screen": f"^step {n}$"}, from_cursor=begun.cursor, timeout_ms=20_000)
            for n in (5, 1, 3, 2, 4)
        ]
        assert all(one.matched for one in await asyncio.gather(*waits))
        assert (await conversation.verify()).clean
        await conversation.close()


@async_test
async def test_the_rendered_view_is_drawn_and_bounded(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        block = (await conversation.run(r"printf '10%%\r20%%\r\033[K100%%\nabc\033[2Dx\n\033[3;1Hover\n'")).block
        seen = await conversation.read(block_id=block.block_id, view="rendered")
        assert seen.data == "100%\naxc\nover\n" and seen.eof
        # 6 bytes ask for 9,999 characters.
        block = (await conversation.run(r"for i in {1..2000}; do printf 'x\033[9999b\n'; done")).block
        seen = await conversation.read(block_id=block.block_id, view="rendered", max_bytes=100_000)
        assert len(seen.data) <= 100_000 and set(seen.data) <= {"x", "\n"}
        await conversation.close()


# Three entries, of which the arrows and clicks choose one, and a counter of both; every byte that comes ends a wait.
MENU = r"""
import curses
def main(screen):
    curses.curs_set(0)
    curses.mousemask(curses.ALL_MOUSE_EVENTS)
    curses.mouseinterval(0)
    names, chosen, done = ["Setup", "Meters", "Save \u6f22 as"], 0, 0
    while True:
        screen.erase()
        screen.addstr(0, 0, "Menu".ljust(40), curses.A_REVERSE)
        for number, name in enumerate(names):
            screen.addstr(2 + number, 4, name, curses.A_STANDOUT if number == chosen else curses.A_NORMAL)
        screen.addstr(8, 0, f"step {done}")
        screen.refresh()
        key = screen.getch()
        if key == ord("q"):
            return
        if key == curses.KEY_DOWN:
            chosen = (chosen + 1) % 3
        if key == curses.KEY_MOUSE:
            _, x, y, _, _ = curses.getmouse()
            if 0 <= y - 2 < 3 and 4 <= x < 4 + len(names[y - 2]) + 1:
                chosen = y - 2
        if key == ord("b"):
            curses.beep()
            print("\x1b[?7777h", end="", flush=True)
        done += 1
curses.wrapper(main)
"""


def standing_out(screen: blockpty.ScreenResult) -> list[str]:
    return screen.content.partition("[End Terminal Screen]\n")[2].splitlines()


@async_test
async def test_a_menu_is_read_in_words_and_clicked_by_text(home: Path, tmp_path: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", env={"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
        await conversation.exec_interactive("cat")
        with pytest.raises(BadRequest, match="does not listen to the mouse"):
            await conversation.send_keys('[CLICK "cat"]')
        await conversation.send_keys("^D", match=blockpty.PROMPT)
        await conversation.exec_interactive(program(tmp_path, MENU))
        assert (await conversation.wait_for({"screen": "step 0$"}, timeout_ms=20_000)).matched
        menu, first = standing_out(await conversation.screen(format="annotated"))
        assert menu.startswith("highlighted: row 0") and first.startswith('selected: row 2, columns 4-8, "Setup"')
        before = await conversation.screen()
        assert (before.bells, before.unhandled) == (0, None)

        assert (await conversation.send_keys("[DOWN]", match={"screen": "step 1$"})).matched
        assert '"Meters"' in standing_out(await conversation.screen(format="annotated"))[1]
        clicked = await conversation.send_keys('[CLICK "\u6f22 as"]', match={"screen": "step [23]$"})
        assert clicked.matched
        assert '"Save \u6f22 as"' in standing_out(await conversation.screen(format="annotated"))[1]
        with pytest.raises(BadRequest, match="not on the screen now"):
            await conversation.send_keys('[CLICK "Quit"]')
        with pytest.raises(BadRequest, match="stands on the screen once"):
            await conversation.send_keys('[CLICK "Meters" 2]')

        step = int((await conversation.screen()).content.rpartition(" ")[2])
        assert (await conversation.send_keys("b", match={"screen": f"step {step + 1}$"})).matched
        rung = await conversation.screen()
        assert (rung.bells, rung.unhandled) == (1, {"CSI ?7777 h": 1})
        past = await conversation.screen(at=before.cursor)
        assert (past.bells, past.unhandled) == (0, None), "it is a function of the record"
        await conversation.send_keys("q", match=blockpty.PROMPT)
        await conversation.close()


@pytest.mark.needs("bash", "whiptail", "vim", "less")
@async_test
async def test_what_stands_out_in_real_programs(home: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("".join(f"line {number}\n" for number in range(1, 60)), "utf-8")
    text = shlex.quote(str(tmp_path / "text"))
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", env={"TERM": "xterm-256color"})

        async def seen(command: str, shows: str, keys: str, wanted: str) -> list[str]:
            """Return the lines about a program once one of them is what is wanted."""
            await conversation.exec_interactive(command)
            assert (await conversation.wait_for({"screen": shows}, timeout_ms=20_000)).matched, command
            if keys:
                await conversation.send_keys(keys)
            while True:
                screen = await conversation.screen(format="annotated")
                found = standing_out(screen)
                if any(re.match(wanted, line) for line in found):
                    return found
                await conversation.wait_for({"changed": screen.hash}, timeout_ms=200)

        assert len(await seen("whiptail --yesno Really? 8 40", "<No>", "[TAB]", r'focused: row 13.*"<No>"')) == 1
        await conversation.send_keys("[ENTER]", match=blockpty.PROMPT)
        menu = "whiptail --menu Pick 14 50 5 a one b two c three"
        assert len(await seen(menu, "<Ok>", "[DOWN]", r'focused: row 9.*"b two"')) == 1
        await conversation.send_keys("[ESC]", match=blockpty.PROMPT)
        assert len(await seen("whiptail --inputbox Name 8 40 bob", "<Ok>", "", r'focused: row 11.*"bob_')) == 1
        await conversation.send_keys("[ESC]", match=blockpty.PROMPT)
        words = await seen(f"less {text}", "line 1$", "/line 1[ENTER]", r'highlighted: row 9.*"line 1" \(reverse')
        assert all('"line 1"' in line for line in words)
        await conversation.send_keys("q", match=blockpty.PROMPT)
        await seen(f"vim -u NONE -i NONE -N {text}", "line 1$", "3GVjj", r'highlighted: row 3.*"line 4"')
        await conversation.send_keys("[ESC]:q![ENTER]", match=blockpty.PROMPT)
        await conversation.close()


@async_test
async def test_a_range_of_lines_above_the_screen_and_on_it(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cols=40, rows=10)
        await conversation.run("clear; seq 100 | sed 's/^50$/& then a line that goes on in the next row/'")
        top = await conversation.screen(first_line=0, last_line=2)
        first = int(top.content.split("\n")[0])
        assert top.content.split("\n") == [str(first + number) for number in range(3)] and top.first_line == 0
        above = await conversation.screen(first_line=-5, last_line=-2)
        assert above.content.split("\n") == [str(first - number) for number in (5, 4, 3, 2)]
        assert above.first_line == -5
        both = await conversation.screen(first_line=-2, last_line=1, format="agent")
        assert both.content.split("\n")[1:-1] == [str(first + number) for number in (-2, -1, 0, 1)]
        rows = (await conversation.screen(first_line=-60, last_line=-1)).content.split("\n")
        assert len(rows) == 60, "a line on two rows has two numbers"
        cut = next(number for number, row in enumerate(rows) if row.startswith("50"))
        assert (rows[cut], rows[cut + 1]) == ("50 then a line that goes on in the next", "row")
        everything = await conversation.screen(first_line=-100_000)
        assert everything.first_line is not None and -1000 <= everything.first_line < -80
        assert (await conversation.screen()).first_line is None
        for wrong in ({"first_line": 3, "last_line": 1}, {"first_line": 0, "format": "json"}, {"first_line": 5000}):
            with pytest.raises(BadRequest):
                await conversation.screen(**wrong)
        assert len((await conversation.screen(first_line=-1, last_line=-1, scrollback=3)).content.split("\n")) == 1
        await conversation.close()

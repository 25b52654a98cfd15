"""Waits on a real shell: typed and waited for in one call, quiet times, and what their results say."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

import blockpty
from blockpty.errors import BadCondition, BadRequest
from tests.support.async_tests import async_test

PROMPT: Final = {"token": "PROMPT"}
INPUT: Final = {"token": "INPUT"}
ECHO: Final = "while read -r line; do echo \"got $line\"; done"


async def clean(conversation: blockpty.Conversation) -> None:
    """Every recorded wait gives the same answer again."""
    verified = await conversation.verify()
    assert verified.clean, verified.differences
    assert verified.waits


@async_test
async def test_an_input_and_its_wait_are_one_call(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open(shell="bash")
        await conversation.exec_interactive(ECHO)
        first = await conversation.send("one\r", match="got one")
        assert (first.matched, first.reason, first.match_text, first.accepted_bytes) == (True, "matched", "got one", 4)
        second = await conversation.send_line("two", match={"regex": r"got (\w+)"})
        assert second.groups == {"1": "two"} and second.before == ""
        third = await conversation.send_keys(["thr", "ee", "[ENTER]"], match="got three")
        fourth = await conversation.paste("four\n", match="got four", view="rendered")
        assert third.matched and fourth.matched
        await conversation.send("five")
        fifth = await conversation.enter(match="got five", timeout_ms=5000)
        assert fifth.matched
        gone = await conversation.send("\x04", match=PROMPT)
        assert (gone.matched, gone.reason, gone.mode) == (True, "prompt", "idle")
        await clean(conversation)


@async_test
async def test_what_was_there_before_an_input_does_not_answer_its_wait(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open(shell="bash")
        await conversation.exec_interactive(f"echo got two; {ECHO}")
        await conversation.wait_for("got two")
        sent = await conversation.send_line("one", match="got two", stop="got one")
        assert (sent.matched, sent.reason, sent.index) == (False, "stopped", 0)
        timed_out = await conversation.send_line("three", match="got two", timeout_ms=0)
        assert (timed_out.matched, timed_out.reason) == (False, "timeout")
        assert timed_out.hint is not None
        await conversation.send("\x04")
        await clean(conversation)


@async_test
async def test_an_input_that_does_not_wait_says_no_more_than_before(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open(shell="bash")
        await conversation.exec_interactive("cat")
        sent = await conversation.send("x\r")
        assert sent.to_dict() == {"ok": True, "cursor": sent.cursor, "accepted_bytes": 2}
        assert sent.matched is None


@async_test
async def test_a_wait_that_is_wrong_types_nothing(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open(shell="bash")
        await conversation.exec_interactive("cat")
        wrong: list[dict[str, Any]] = [{"match": {"regex": "("}}, {"match": {"token": "NO"}}, {"stop": "x"}]
        for options in wrong:
            with pytest.raises((BadCondition, BadRequest)):
                await conversation.send_line("typed", **options)
        await conversation.send("\x04", match=PROMPT)
        assert "typed" not in (await conversation.read()).data


@async_test
async def test_the_next_wait_goes_on_where_a_typed_one_ended(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open(shell="bash")
        await conversation.exec_interactive(ECHO)
        await conversation.send_line("one", match="got")
        after = await conversation.wait_for("one")
        assert (after.matched, after.before) == (True, " ")
        await conversation.send("\x04", match=PROMPT)


@pytest.mark.linux
@async_test
async def test_a_wizard_takes_one_call_for_each_answer(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open(shell="bash")
        asked = await conversation.run("for q in name version; do read -r -p \"$q: \" a; echo \"$q is $a\"; done")
        assert (asked.reason, asked.output) == ("input", "name: ")
        named = await conversation.send_line("mine", match=[INPUT, PROMPT])
        assert (named.index, named.text) == (0, "name is mine\nversion: ")
        done = await conversation.send_line("1", match=[INPUT, PROMPT])
        assert (done.index, done.text, done.reason) == (1, "version is 1\n", "prompt")
        await clean(conversation)


@async_test
async def test_waiting_again_for_silence_waits(home: Path) -> None:
    """There were 331 answers in 6 s when each wait counted the silence before it."""
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open(shell="bash")
        await conversation.exec_interactive("echo begun; cat")
        match = [PROMPT, {"idle_ms": 200}]
        ends = []
        for _ in range(3):
            waited = await conversation.wait_for(match)
            assert (waited.index, waited.reason) == (1, "matched")
            ends.append(await time_of_last(conversation, "wait_end"))
        assert ends[1] - ends[0] >= 200
        assert ends[2] - ends[1] >= 200
        assert (waited.already_there, waited.new_output, waited.before) == (False, 0, "")
        # Asked about the past, the silence that was there counts.
        before = await conversation.wait_for({"idle_ms": 200}, from_cursor=0, timeout_ms=0)
        assert before.matched and before.already_there
        await conversation.send("\x04", match=PROMPT)
        await clean(conversation)


async def time_of_last(conversation: blockpty.Conversation, kind: str) -> int:
    await conversation.noted()
    return [event.ts async for event in conversation.events(follow=False) if event.type == kind][-1]


@async_test
async def test_what_a_result_says_of_the_past_and_of_what_came(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open(shell="bash")
        begun = await conversation.exec_interactive(f"echo first; echo second; {ECHO}")
        await conversation.wait_for("second", from_cursor=begun.cursor)
        old = await conversation.wait_for("second", from_cursor=begun.cursor)
        assert (old.already_there, old.new_output, old.before, old.match_text) == (True, 0, "first\n", "second")
        assert old.from_cursor == begun.cursor
        new = await conversation.send_line("x", match="got x")
        assert (new.already_there, new.before) == (False, "")
        assert new.new_output is not None and new.new_output >= len("got x")
        await conversation.send("\x04", match=PROMPT)
        ready = await conversation.wait_for(PROMPT)
        assert ready.already_there
        await clean(conversation)


@async_test
async def test_lines_around_a_match_and_letters_of_any_case(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open(shell="bash")
        ran = await conversation.run("seq 1 5; echo Error: here; seq 6 9")
        for match in ({"text": "ERROR", "ignore_case": True}, {"regex": "^error", "ignore_case": True}):
            found = await conversation.wait_for(match, from_cursor=ran.block.span[0], context=2)
            assert (found.match_text, found.context) == ("Error", "4\n5\nError: here\n6\n7")
        absent = await conversation.wait_for("ERROR", from_cursor=ran.block.span[0], timeout_ms=0)
        assert not absent.matched
        await clean(conversation)


@async_test
async def test_a_progress_bar_as_a_person_sees_it(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open(shell="bash")
        bar = "for i in $(seq 0 100); do printf '\\rDownloading [%-50s] %d%%' $i $i; done; echo; echo done"
        begun = await conversation.exec_block(bar)
        waited = await conversation.wait_for("done", from_cursor=begun.cursor, view="rendered")
        assert waited.before.count("Downloading") == 1 and len(waited.text) < 200
        plain = await conversation.wait_for("done", from_cursor=begun.cursor)
        assert plain.before.count("Downloading") > 50
        ran = await conversation.run(bar, view="rendered")
        assert ran.output.count("Downloading") == 1
        assert ran.output.endswith("100%\ndone\n") and len(ran.output) < 500
        await clean(conversation)


@async_test
async def test_a_pattern_for_the_screen_may_ask_for_a_blank_at_the_end_of_a_row(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open(shell="bash")
        begun = await conversation.exec_interactive("PS1='ready> ' bash --norc --noprofile")
        waited = await conversation.wait_for({"screen": "ready> $"}, from_cursor=begun.cursor)
        assert waited.matched
        await conversation.send("exit\r", match=PROMPT)
        await clean(conversation)

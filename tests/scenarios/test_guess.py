"""The flow for which all of this exists: start an interactive program, wait, answer, wait, and know when it is over."""

from __future__ import annotations

from pathlib import Path

from tests.scenarios.stage import EOF, PROMPT, TIMEOUT_MS, Stage, in_every_shell, open_stage
from tests.support.async_tests import async_test
from tests.support.profile import LONG

GUESS = r"""#!/bin/sh
while :; do
    printf 'Guess a number: '
    read -r number || exit 1
    if [ "$number" -eq 7 ]; then
        echo 'Correct!'
        exit 0
    elif [ "$number" -lt 7 ]; then
        echo 'higher'
    else
        echo 'lower'
    fi
done
"""
ROUNDS = 200 if LONG else 15


def _write_guess(stage: Stage) -> None:
    program = stage.folder / "guess"
    program.write_text(GUESS)
    program.chmod(0o700)


async def _play(stage: Stage, from_cursor: int | None) -> None:
    """One game, step by step as the requirement has it; `from_cursor` is where its first wait begins."""
    conversation = stage.conversation
    # 1) exec_interactive("./guess") -> session_id, block_id
    session = await conversation.exec_interactive("./guess")
    assert session.session_id and session.block_id
    # 2) wait_for("Guess a number", from_cursor=0)
    begin = session.cursor if from_cursor is None else from_cursor
    asked = await conversation.wait_for("Guess a number", from_cursor=begin, timeout_ms=TIMEOUT_MS)
    assert (asked.matched, asked.reason, asked.match_text) == (True, "matched", "Guess a number")
    assert asked.mode == "interactive"
    # 3) send("7\r")
    sent = await conversation.send("7\r")
    assert sent.accepted_bytes == 2
    # 4) wait_for("Correct!", from_cursor=<prev>)
    answered = await conversation.wait_for("Correct!", from_cursor=asked.cursor, timeout_ms=TIMEOUT_MS)
    assert (answered.matched, answered.reason) == (True, "matched")
    assert answered.cursor > asked.cursor
    # 5) wait_for(PROMPT, from_cursor=<prev>) -> session ends / block ends
    ended = await conversation.wait_for(PROMPT, from_cursor=answered.cursor, timeout_ms=TIMEOUT_MS)
    assert (ended.matched, ended.reason, ended.mode) == (True, "prompt", "idle")
    block = await stage.block(session.block_id)
    assert (block.kind, block.session_id, block.cmd) == ("session", session.session_id, "./guess")
    assert stage.outcome(block) == (0, "ended", b"Guess a number: 7\nCorrect!\n")


@in_every_shell()
@async_test
async def test_guess(shell: str, home: Path) -> None:
    async with open_stage(home, shell) as stage:
        _write_guess(stage)
        await _play(stage, 0)
        status = await stage.conversation.status()
        assert (status.mode, status.tty) == ("idle", "at_prompt")
        assert (status.active_session_id, status.active_block_id) == (None, None)


@in_every_shell()
@async_test(timeout_seconds=110)
async def test_guess_many_times(shell: str, home: Path) -> None:
    async with open_stage(home, shell) as stage:
        _write_guess(stage)
        await _play(stage, 0)
        for _ in range(ROUNDS - 1):
            await _play(stage, None)
        blocks = await stage.blocks()
        assert [block.seq for block in blocks] == list(range(1, ROUNDS + 1))
        assert await stage.doubts() == []


@in_every_shell()
@async_test
async def test_guess_without_cursors(shell: str, home: Path) -> None:
    """Each wait goes on where the last one ended; wrong guesses first, which are not taken for output."""
    async with open_stage(home, shell) as stage:
        _write_guess(stage)
        conversation = stage.conversation
        session = await conversation.exec_interactive("./guess")
        for guess, answer in (("3", "higher"), ("9", "lower"), ("7", "Correct!")):
            # A pattern at the end of an unterminated line needs the silence after it.
            await stage.wait({"regex": r"Guess a number: $"}, session_id=session.session_id)
            await conversation.send(f"{guess}\r", session_id=session.session_id)
            found = await stage.wait({"regex": r"\w+!?$"}, session_id=session.session_id)
            assert found.match_text == answer
        ended = await stage.wait(EOF, session_id=session.session_id)
        assert ended.mode == "idle"
        dialogue = b"Guess a number: 3\nhigher\nGuess a number: 9\nlower\nGuess a number: 7\nCorrect!\n"
        assert stage.outcome(await stage.block(session.block_id)) == (0, "ended", dialogue)

"""Where a command ends for `run`, and where the next wait begins."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import blockpty
from blockpty.engine.machine_state import MachineState
from blockpty.engine.states import ShellState
from blockpty.model.events import Event, Signal
from blockpty.runtime.completion import Completion
from blockpty.runtime.follower import RecordFollower
from blockpty.runtime.record_reader import Step
from tests.support.async_tests import async_test

PASSWORD = Signal("silence", 40, {"ms": 200, "password": True, "incomplete": False})


def of(state: MachineState) -> Completion:
    completion = Completion(cast("RecordFollower", SimpleNamespace(state=state)), "1.1")
    state.shell, state.submission = ShellState.SUBMITTED, {"request": "1.1", "cmd": "sudo true", "key": True}
    assert completion.take(step()) is None
    return completion


def step(*signals: Signal, events: tuple[Event, ...] = ()) -> Step:
    return Step(b"", None, list(events), list(signals), 0, 0)


def opened(state: MachineState) -> None:
    state.submission, state.last_opened, state.shell = None, (("1.1", 1, 0),), ShellState.IDLE


def waits_in(home: Path) -> int:
    timeline = (home / "conversations" / "c1" / "timeline.jsonl").read_text()
    return sum(json.loads(line).get("note", {}).get("type") == "wait_begin" for line in timeline.splitlines())


@async_test
async def test_a_silence_before_the_shell_has_the_command_says_nothing() -> None:
    completion = of(MachineState())
    assert completion.take(step(PASSWORD)) is None


@async_test
async def test_a_question_for_a_password_ends_the_wait_afterwards() -> None:
    completion = of(MachineState())
    completion.begin()
    outcome = completion.take(step(PASSWORD))
    assert outcome is not None
    assert (outcome.matched, outcome.reason, outcome.cursor) == (False, "password", 40)


@async_test
async def test_a_silence_at_the_prompt_ends_a_command_that_the_shell_has_lost() -> None:
    state = MachineState()
    completion = of(state)
    completion.begin()
    silence = Signal("silence", 40, {"ms": 200, "password": False, "incomplete": False, "input": False})
    assert completion.take(step(silence)) is None
    state.shell = ShellState.IDLE
    assert completion.take(step(silence)) is None, "the line of another has ended, and the command may come yet"
    state.submission = None
    outcome = completion.take(step(silence))
    assert outcome is not None and (outcome.matched, outcome.reason) == (True, "prompt")


@async_test
async def test_the_prompt_of_an_injected_line_is_not_the_end() -> None:
    state = MachineState()
    completion = of(state)
    assert completion.take(step(Signal("prompt", 10, False))) is None
    opened(state)
    end = Event(5, 0, 30, "agent_block_end", {"block_id": "b1"})
    outcome = completion.take(step(Signal("prompt", 20, False), Signal("prompt", 31, False), events=(end,)))
    assert outcome is not None
    assert (outcome.matched, outcome.cursor) == (True, 31)


@async_test
async def test_the_end_of_the_shell_ends_the_wait() -> None:
    outcome = of(MachineState()).take(step(Signal("exit", 12)))
    assert outcome is not None
    assert (outcome.matched, outcome.reason) == (False, "eof")


@async_test
async def test_run_records_no_wait_and_the_next_one_begins_behind_it(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", persist=True)
        await conversation.noted()
        before = waits_in(home)
        end = (await conversation.run("echo marker")).cursor
        await conversation.noted()
        assert waits_in(home) == before
    async with blockpty.Engine(home) as engine:
        conversation = await engine.conversation("c1")
        missed = await conversation.wait_for("marker", timeout_ms=0)
        assert (missed.matched, missed.cursor) == (False, end)
        assert (await conversation.wait_for("marker", from_cursor=0)).matched
        assert (await conversation.verify()).clean
        await conversation.close()

"""The timeline of a recording: times and cursors as in its replay, silences, changes, and bytes in buckets."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import blockpty
from blockpty.control.principals import Principal, Scope, acting
from blockpty.errors import BadRequest
from blockpty.model.results import ControlChange, Silence, TimelineResize, TimelineResult
from blockpty.runtime import timeline_summary
from blockpty.runtime.replay import Playback
from blockpty.runtime.timeline_summary import summarize
from blockpty.testing import FakePty
from tests.support.async_tests import async_test
from tests.support.exports import saved
from tests.support.timed_sessions import timed_session

ANN = Principal("ann", Scope.WRITE, types_as="user")


def test_it_says_what_a_replay_gives(tmp_path: Path) -> None:
    source = saved(timed_session(), tmp_path)
    found = summarize(source, 600)
    playback = Playback(source)
    moments = list(playback.from_time(0))
    assert (found.begin_ts, found.duration_ms) == (playback.begin_ts, playback.duration_ms)
    begins = [(one.block.block_id, one.at_ms) for one in moments if one.type == "block_begin" and one.block]
    assert [(block.block_id, block.begin_ms) for block in found.blocks] == begins
    ends = [(one.block.block_id, one.at_ms) for one in moments if one.type == "block_end" and one.block]
    assert [(block.block_id, block.end_ms) for block in found.blocks] == ends
    assert [(block.cmd, block.exit_status, block.author) for block in found.blocks] == [
        ("echo one", 0, "agent"), ("slow", 3, "agent"), ("echo four", 0, "agent"),
    ]  # fmt: skip
    assert [block.cursor for block in found.blocks] == playback.blocks()
    sizes = [(moment.at_ms, moment.cols, moment.rows) for moment in moments if moment.type == "resize"]
    # The first is the size that it begins with.
    assert [(one.at_ms, one.cols, one.rows) for one in found.resizes] == [(0, 80, 24), *sizes]
    assert found.resizes[0] == TimelineResize(0, 0, 80, 24, False)
    assert found.silences == [
        Silence(0, 1500, found.silences[0].cursor), Silence(1500, 3500, found.silences[1].cursor),
        Silence(4510, 63_500, found.silences[2].cursor),
    ]  # fmt: skip
    stream = source.layout.stream / f"{0:020d}"
    for silence in found.silences:
        assert 0 < silence.cursor < stream.stat().st_size
    assert found.left_out == {} and found.cursor == stream.stat().st_size == sum(found.buckets)


@pytest.mark.parametrize("count", [1, 2, 3, 600, 5000])
def test_every_byte_is_in_the_bucket_of_its_time(tmp_path: Path, count: int) -> None:
    source = saved(timed_session(), tmp_path)
    found = summarize(source, count)
    expected = [0] * count
    entries = [entry for entry, _ in source.entries(0)]
    stops = [*entries[1:], None]
    for entry, following in zip(entries, stops, strict=True):
        end = source.end if following is None else following.offset
        at = entry.ts - found.begin_ts
        expected[min(count - 1, at * count // found.duration_ms)] += end - entry.offset
    assert found.buckets == expected and len(found.buckets) == count


def test_of_too_many_the_last_are_kept_and_the_others_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = saved(timed_session(), tmp_path)
    whole = summarize(source, 10)
    monkeypatch.setattr(timeline_summary, "MOST", 2)
    found = summarize(source, 10)
    assert found.blocks == whole.blocks[-2:] and found.silences == whole.silences[-2:]
    assert found.resizes == whole.resizes and found.left_out == {"blocks": 1, "silences": 1}
    assert found.buckets == whole.buckets


def test_a_long_recording_takes_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline_summary, "_FINENESS", 10)
    made = timed_session()
    for _ in range(1000):
        made.output(b"x")
        made.clock.advance(11)
        made.entry("tick")
    summary = timeline_summary._Summary(saved(made, tmp_path))
    for entry, _ in summary._source.entries(0):
        summary.take(entry)
    summary.finish()
    assert len(summary._times) < 20
    assert sum(summary.in_buckets(7)) == len(made.recording.stream)


@pytest.mark.needs("bash")
@async_test
async def test_a_live_conversation(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        first = await conversation.timeline()
        assert first.blocks == [] and sum(first.buckets) == first.cursor > 0 and len(first.buckets) == 600
        assert [(one.cols, one.rows, one.fresh) for one in first.resizes] == [(80, 24, False)]
        await conversation.run("echo DB_PASSWORD=correct-h0rse-battery; false")
        await conversation.resize(100, 30)
        with acting(ANN):
            await conversation.take_control()
            await conversation.release_control()
        begun = await conversation.exec_block("echo begun; read -r line")
        await conversation.wait_for("begun")
        asked = asyncio.ensure_future(conversation.request_user_input("please", timeout_seconds=60))
        requested: list[str] = []
        while not requested:
            requested = [one.type for one in (await conversation.timeline(1)).approvals]
        with acting(ANN):
            await conversation.take_control()
            await conversation.enter()
            await conversation.release_control()
        await asked
        await conversation.wait_for({"token": "PROMPT"})
        await conversation.reset()
        found = await conversation.timeline(7)
        assert found == TimelineResult.from_dict(json.loads(json.dumps(found.to_dict())))
        assert len(found.buckets) == 7 and sum(found.buckets) == found.cursor
        blocks = (await conversation.blocks()).blocks
        assert [(one.block_id, one.state, one.exit_status) for one in found.blocks] == [
            (block.block_id, block.state, block.exit_status) for block in blocks
        ]
        assert [one.cursor for one in found.blocks] == [block.span[0] for block in blocks]
        assert [one.begin_ms + found.begin_ts for one in found.blocks][1] == begun.ts_begin
        assert "correct-h0rse" not in json.dumps(found.to_dict())
        assert [(one.cols, one.rows, one.fresh) for one in found.resizes] == [
            (80, 24, False), (100, 30, False), (80, 24, True),
        ]  # fmt: skip
        assert [(one.state, one.who) for one in found.control] == [
            ("user", "ann"), ("agent", None), ("user", None), ("user", "ann"), ("agent", None),
        ]  # fmt: skip
        assert [(one.type, one.outcome) for one in found.approvals] == [
            ("user_input_requested", None), ("user_input_done", "done"),
        ]  # fmt: skip
        assert len({one.id for one in found.approvals}) == 1
        assert isinstance(found.control[0], ControlChange) and 0 < found.control[0].cursor <= found.cursor
        for wrong in (0, 5001, True, 1.5, None):
            with pytest.raises(BadRequest, match="buckets"):
                await conversation.timeline(wrong)  # type: ignore[arg-type]
        await conversation.close()


@pytest.mark.needs("bash")
@async_test
async def test_what_runs_has_no_end_and_others_have_their_turn(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.exec_block("echo begun; read -r line")
        await conversation.wait_for("begun")
        threads: list[object] = []

        def noted(*args: Any) -> TimelineResult:
            try:
                threads.append(asyncio.get_running_loop())
            except RuntimeError:
                threads.append(None)
            return summarize(*args)

        monkeypatch.setattr(timeline_summary, "summarize", noted)
        (block,) = (await conversation.timeline()).blocks
        assert (block.state, block.end_ms, block.end_cursor, block.exit_status) == ("running", None, None, None)
        assert threads == [None]
        await conversation.enter()
        await conversation.close()


def test_a_conversation_without_anything(tmp_path: Path) -> None:
    source = saved(FakePty(), tmp_path)
    found = summarize(source, 3)
    assert (found.duration_ms, found.cursor, found.buckets) == (0, 0, [0, 0, 0])
    assert not (found.blocks or found.silences or found.resizes or found.control or found.approvals or found.left_out)

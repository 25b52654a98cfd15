"""A record that has a budget: its oldest part is dropped; what is left is read, derived and verified as before."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import blockpty
from blockpty.model.results import VerifyResult
from blockpty.runtime import truncation, verify
from blockpty.runtime.follower import RecordFollower
from blockpty.spool import log_start
from blockpty.spool.layout import Layout
from blockpty.spool.stream import StreamReader
from tests.support.async_tests import async_test

KIB = 1024


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A MiB is 16 KiB here, so that a budget is used up at once; segments have the length that follows."""
    monkeypatch.setattr(truncation, "MIB", 16 * KIB)


async def cut(conversation: blockpty.Conversation, since: int = 0) -> int:
    """Run commands until the record begins later than it did, and return where."""
    for number in range(200):
        await conversation.run(f"seq {number}000 {number}900")
        await settled(conversation)
        found = log_start.load_log_start(conversation.directory)
        if found is not None and found.offset > since:
            return found.offset
    raise AssertionError("nothing was dropped")


async def settled(conversation: blockpty.Conversation) -> None:
    """Return when no cut is under way."""
    kept = conversation.live._truncation
    while kept is not None and kept._task is not None:
        await asyncio.wait((kept._task,))


@pytest.mark.linux
@async_test
async def test_what_is_left_of_a_record_is_as_it_was(home: Path, small: None) -> None:
    async with blockpty.Engine(home, keep_conversation_mb=8) as engine:
        conversation = await engine.open("c1", shell="bash")
        first = await conversation.run("echo first")
        before = await cut(conversation)
        whole = await conversation.read(from_cursor=0, view="raw", max_bytes=10_000_000)
        begin = await cut(conversation, before)
        last = await conversation.run("echo last")
        await settled(conversation)
        found = log_start.load_log_start(conversation.directory)
        assert found is not None and found.offset >= begin > before
        begin = found.offset

        read = await conversation.read(from_cursor=0, max_bytes=10_000_000)
        # What is shown begins behind the line that was cut: a prompt, drawn twice, and the command.
        assert read.truncated_before is not None and begin <= read.truncated_before < begin + 1000
        assert "last\n" in read.data
        raw = (await conversation.read(from_cursor=0, view="raw", max_bytes=10_000_000)).data
        assert whole.truncated_before is not None
        kept = whole.data[read.truncated_before - whole.truncated_before :]
        assert len(kept) > 1000 and raw.startswith(kept), "not a byte is another"
        assert (await conversation.read(block_id=last.block.block_id)).data == "last\n"
        with pytest.raises(blockpty.NotFound):
            await conversation.block(first.block.block_id)
        blocks = (await conversation.blocks()).blocks
        assert blocks[-1] == last.block
        assert [block.seq for block in blocks] == list(range(blocks[0].seq, last.block.seq + 1)), "none is missing"
        assert blocks[0].seq > 2
        events = [event.seq async for event in conversation.events(follow=False)]
        assert events == list(range(events[0], events[-1] + 1)) and events[0] > 10

        names = {path.name.partition("_")[0] for path in conversation.layout.outputs.iterdir()}
        assert names == {str(block.seq) for block in blocks}
        taken = conversation.layout.stream.stat(), sum(
            path.stat().st_blocks * 512 for path in conversation.directory.rglob("*") if path.is_file()
        )
        assert taken[1] < 4 * 8 * 16 * KIB, "small files take whole blocks"
        verified = await conversation.verify()
        assert verified.clean, verified.differences
        shown = (await conversation.screen()).content
        assert "last" in shown
        exported = await conversation.export("text", max_bytes=10_000_000)
        assert "last" in str(exported)
    async with blockpty.Engine(home, keep_conversation_mb=8) as engine:
        again = await engine.conversation("c1")
        assert (await again.blocks()).blocks == blocks
        assert (await again.verify()).clean
        found = await engine.search("last")
        assert [hit.block_id for hit in found.hits if hit.block_id == last.block.block_id]
        assert not (await engine.search("first")).hits


@pytest.mark.linux
@async_test
async def test_a_search_forgets_what_is_gone(home: Path, small: None) -> None:
    async with blockpty.Engine(home, keep_conversation_mb=8) as engine:
        conversation = await engine.open("c1", shell="bash")
        engine.home_search.start()
        await conversation.run("seq 1000 1500; echo needle; seq 2000 2500")
        begin, found = 0, 1
        for number in range(100):
            await conversation.run(f"seq {number}500 {number}999; echo straw{number}; seq {number}000 {number}400")
            await settled(conversation)
            begin = conversation.live.stream.begin
            # The text, and the command; and whatever was found before has left no file open.
            found = len((await engine.search("needle")).hits)
            if begin and not found:
                break
        assert begin and not found
        begin = -1
        while begin != _begins_at(conversation):
            # The prompt behind the last command may make the record begin later once more.
            begin = _begins_at(conversation)
            kept = await conversation.read(from_cursor=0, max_bytes=10_000_000)
            names = {block.block_id for block in (await conversation.blocks()).blocks}
            found_by_turn = [
                {hit.block_id for hit in (await engine.search(f"^straw{turn}$", mode="regex")).hits}
                for turn in range(number + 1)
            ]
            await settled(conversation)
        for turn, blocks in enumerate(found_by_turn):
            assert bool(blocks) == (f"straw{turn}\n" in kept.data), turn
            assert blocks <= names
        async with asyncio.timeout(30):
            # It takes no space, at the latest when the index has looked again.
            while any(_is_removed_stream(_target(name)) for name in os.listdir("/proc/self/fd")):  # noqa: ASYNC110
                await asyncio.sleep(0.02)


def _begins_at(conversation: blockpty.Conversation) -> int:
    found = log_start.load_log_start(conversation.directory)
    return 0 if found is None else found.offset


def _is_removed_stream(path: str) -> bool:
    return "/stream/" in path and "(deleted)" in path


def _target(descriptor: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except FileNotFoundError:
        return ""


@pytest.mark.linux
@async_test
async def test_one_block_that_prints_for_ever_is_cut_in_its_middle(home: Path, small: None) -> None:
    async with blockpty.Engine(home, keep_conversation_mb=8) as engine:
        conversation = await engine.open("c1", shell="bash")
        command = "i=0; while read -r _; do seq $((i * 1000)) $((i * 1000 + 900)); echo turn $((i += 1)); done"
        begun = await conversation.exec_block(command)
        for number in range(1, 200):
            await conversation.send("\r")
            assert (await conversation.wait_for(f"turn {number}\n", view="text")).matched
            await settled(conversation)
            found = log_start.load_log_start(conversation.directory)
            if found is not None and found.journal["output"][1]:
                break
        assert found is not None and found.offset > begun.cursor
        # A wait of now begins in what is not kept: it is answered from what is.
        waited = await conversation.wait_for({"regex": r"turn \d+"}, from_cursor=begun.cursor)
        assert waited.matched and waited.span is not None and waited.span[0] >= found.offset
        verified = await conversation.verify()
        assert verified.clean, verified.differences
        await conversation.send("\x04")
        assert (await conversation.wait_for({"token": "PROMPT"})).matched
        block = (await conversation.blocks()).blocks[-1]
        assert block.block_id == begun.block_id and block.span[0] < found.offset
        read = await conversation.read(block_id=begun.block_id, max_bytes=10_000_000)
        assert read.truncated_before is not None and read.data.endswith(f"turn {number}\n")
        out = (conversation.directory / str(block.out_path)).read_bytes()
        assert len(out) == block.out_bytes and out.startswith(b"\0") and out.endswith(f"turn {number}\n".encode())
        assert (await conversation.verify()).clean


class Killed(BaseException):
    """The program ends here."""


def steps(layout: Layout) -> list[str]:
    return sorted(
        str(path.relative_to(layout.directory)) for path in layout.directory.rglob("*") if "points" not in path.parts
    )


@pytest.mark.linux
@async_test
async def test_killed_between_any_two_steps_it_opens_and_is_cut_by_the_next(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: None
) -> None:
    copied = tmp_path / "before"
    real = truncation._prepare

    def copies(layout: Layout, nonces: list[str], record: Any) -> log_start.LogStart:
        if not copied.exists():
            shutil.copytree(layout.directory, copied)
            prepared.append((nonces, record))
        return real(layout, nonces, record)

    prepared: list[tuple[list[str], Any]] = []
    async with blockpty.Engine(home, keep_conversation_mb=8) as engine:
        conversation = await engine.open("c1", shell="bash")
        with monkeypatch.context() as patch:
            patch.setattr(truncation, "_prepare", copies)
            await cut(conversation)
    nonces, record = prepared[0]
    changes = ("replace", "fsync", "unlink", "_punch")
    number, ends = 0, []
    while True:
        number += 1
        work = tmp_path / f"try{number}"
        shutil.copytree(copied, work)
        left = number

        def dies(call: Callable[..., Any]) -> Callable[..., Any]:
            def made(*arguments: Any, **named: Any) -> Any:
                nonlocal left
                left -= 1
                if not left:
                    raise Killed
                return call(*arguments, **named)

            return made

        layout = Layout(work)
        killed = False
        with monkeypatch.context() as patch:
            patch.setattr(log_start.checkpoint, "replace", dies(log_start.checkpoint.replace))
            patch.setattr(log_start.os, "fsync", dies(os.fsync))
            patch.setattr(log_start, "_remove", dies(log_start._remove))
            patch.setattr(log_start, "_punch", dies(log_start._punch))
            try:
                log_start.sweep(layout, real(layout, nonces, record))
            except Killed:
                killed = True
        live = RecordFollower(
            "c1", layout, owner=True, truncation=lambda live: truncation.LogTruncation(live, 8 * truncation.MIB)
        )
        await live.drain()
        kept = live._truncation
        assert kept is not None
        if kept._task is not None:
            await kept._task
        found = truncation.load_log_start(work)
        assert live.reader.position.offset == StreamReader(layout.stream).size()
        position, sizes = live.reader.position, live.deriver.sizes()
        live.close()
        verified = keeping_verified(layout, position, sizes)
        assert verified.clean, (number, verified.differences)
        if found is None or found.offset != record["offset"]:
            assert number <= 2, "before the record begins elsewhere it may be cut at another place as well"
        else:
            ends.append(steps(layout))
        if not killed:
            break
    assert number > 8 and len(changes) == 4
    assert all(end == ends[-1] for end in ends), "whatever was left to do has been done"


def keeping_verified(layout: Layout, position: Any, sizes: Any) -> Any:
    from blockpty.runtime.verify import Seen, verify

    return verify("c1", layout, Seen.of(layout, position, sizes))


@pytest.mark.parametrize("place", range(0, 120, 7))
def test_no_part_of_a_secret_is_left_by_a_cut(tmp_path: Path, place: int) -> None:
    nonce = "AbCdEfGhIjKlMnOpQrStUv"
    text = f"x\r\nnonce {nonce} here\r\nexport API_TOKEN=ghp_0123456789abcdefghijklmnopqrstuvwxyzAB\r\nplain\r\nend\r\n"
    (tmp_path / "stream").mkdir()
    path = tmp_path / "stream" / f"{0:020d}"
    path.write_bytes(text.encode())
    path.chmod(0o600)
    at = truncation.readable(StreamReader(tmp_path / "stream"), [nonce], min(place, len(text) - 6))
    left = text[at:]
    for secret in (nonce, "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"):
        assert all(piece not in left or secret in left for piece in (secret[4:], secret[-6:])), left
    assert "API_TOKEN" in left or "ghp" not in left, "its name is gone, and nothing tells that it is one"
    assert left.endswith("end\r\n")


def test_a_budget_that_is_too_small_is_refused(home: Path) -> None:
    with pytest.raises(blockpty.BadRequest):
        blockpty.Engine(home, keep_conversation_mb=7)


@pytest.mark.parametrize(("keep", "segment"), [(8, 1), (100, 12), (10_000, 256)])
def test_segments_are_an_eighth_of_the_budget_at_most(keep: int, segment: int) -> None:
    assert truncation.segment_bytes(keep * truncation.MIB) == segment * truncation.MIB
    assert truncation.segment_bytes(None) is None


@pytest.mark.linux
@async_test
async def test_what_is_dropped_while_it_is_verified_is_no_difference(
    home: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with blockpty.Engine(home, keep_conversation_mb=8) as engine:
        conversation = await engine.open("c1", shell="bash")
        place = conversation.directory / log_start.BEGINNING
        first = await cut(conversation)
        old = place.read_bytes()
        await cut(conversation, first)
        await conversation.close()
        await settled(conversation)
        new = place.read_bytes()
        assert (await conversation.verify()).clean
        place.write_bytes(old)
        assert not (await conversation.verify()).clean
        real, runs = verify._Verification.run, []

        def run(self: verify._Verification) -> VerifyResult:
            # It knows the old beginning; now what lies before the new one is not there any more.
            runs.append(1)
            place.write_bytes(new)
            return real(self)

        monkeypatch.setattr(verify._Verification, "run", run)
        assert (await conversation.verify()).clean and len(runs) == 2

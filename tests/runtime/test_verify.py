"""Damage of every kind to every file of a conversation: `verify` says where it is, and writes nothing.

What it cannot find is listed in docs/topics/verify.md with the reason, and here as well, so that the list stays true.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

import blockpty
from blockpty.files.lines import link_of, linked, sealed
from blockpty.model.results import VerifyResult
from blockpty.runtime.record_checks import check_files
from blockpty.runtime.sessions import wait_for_begin
from blockpty.spool import checkpoint
from blockpty.spool.layout import Layout
from tests.support.async_tests import async_test
from tests.support.processes import status_of
from tests.support.record_lines import without_checksums

pytestmark = pytest.mark.needs("bash")

SEGMENT = "stream/00000000000000000000"
KEY = "0123456789abcdef of the user"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a finished conversation, and a copy of it as it was in its middle."""
    home, kept = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("kept")
    asyncio.run(_record(home, kept))
    return kept / "whole", kept / "older"


async def _record(home: Path, kept: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("echo first; seq 100")
        assert (await conversation.wait_for("first", from_cursor=0)).matched
        conversation.live.deriver.save()
        shutil.copytree(conversation.directory, kept / "older", ignore=_special)
        await conversation.run("echo second; (exit 3)")
        await conversation.run("seq 200 300; echo third")
        await conversation.close()
    shutil.copytree(home / "conversations" / "c1", kept / "whole", ignore=_special)


def _special(directory: str, names: list[str]) -> list[str]:
    return [name for name in names if not (Path(directory, name).is_file() or Path(directory, name).is_dir())]


def everything(directory: Path) -> dict[str, Any]:
    return {
        str(path.relative_to(directory)): (path.stat().st_ino, path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(directory.rglob("*")) if path.is_file()
    }  # fmt: skip


async def verified(directory: Path, *, key: str | None = None) -> VerifyResult:
    before = everything(directory)
    try:
        return await check_files(directory.name, Layout(directory), None, key)
    finally:
        assert everything(directory) == before, "verify writes nothing"


# What is done to a file


def cut(count: int) -> Callable[[bytes], bytes]:
    return lambda content: content[:-count]


def half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def append(data: bytes) -> Callable[[bytes], bytes]:
    return lambda content: content + data


def flip(part: float) -> Callable[[bytes], bytes]:
    def changed(content: bytes) -> bytes:
        place = min(int(len(content) * part), len(content) - 2)
        return content[:place] + bytes((content[place] ^ 1,)) + content[place + 1 :]

    return changed


def swap(content: bytes) -> bytes:
    """Exchange two pieces of ten bytes that are not the same."""
    half = len(content) // 2
    first, second = content[half : half + 10], content[half + 10 : half + 20]
    assert first != second
    return content[:half] + second + first + content[half + 20 :]


def without(content: bytes) -> bytes:
    return content[: len(content) // 2] + content[len(content) // 2 + 10 :]


def twice(content: bytes) -> bytes:
    return content[: len(content) // 2] + content[len(content) // 2 - 10 :]


def lines(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[bytes], bytes]:
    return lambda content: b"".join(change(content.splitlines(keepends=True)))


def resealed(line: bytes, **changes: Any) -> bytes:
    """Return a line that says something else, with a checksum that fits."""
    entry = orjson.loads(line)
    entry.pop("crc")
    return sealed(orjson.dumps({**entry, **changes}))


def unlinked(line: bytes) -> bytes:
    entry = orjson.loads(line)
    return sealed(orjson.dumps({name: entry[name] for name in entry if name not in ("crc", "sum", "prev")}))


def middle(change: Callable[[bytes], list[bytes]]) -> Callable[[bytes], bytes]:
    """Change the line in the middle."""
    return lines(lambda all_: [*all_[: len(all_) // 2], *change(all_[len(all_) // 2]), *all_[len(all_) // 2 + 1 :]])


def swapped_lines(all_: list[bytes]) -> list[bytes]:
    half = len(all_) // 2
    return [*all_[:half], all_[half + 1], all_[half], *all_[half + 2 :]]


def later(line: bytes) -> bytes:
    return resealed(line, ts=orjson.loads(line)["ts"] + 1)


REMOVED = object()
OLDER = object()

# File, what is done to it, and what the report says (of the file, where nothing else is said).
SEALED: list[tuple[str, str, Any, str]] = [
    ("stream, cut by a byte", SEGMENT, cut(1), "stream: ends at"),
    ("stream, cut by 500 bytes", SEGMENT, cut(500), "stream: ends at"),
    ("stream, cut by half", SEGMENT, half, "stream: ends at"),
    ("stream, emptied", SEGMENT, lambda content: b"", "stream: ends at 0"),
    ("stream, removed", SEGMENT, REMOVED, "stream: ends at 0"),
    ("stream, text appended", SEGMENT, append(b"never printed\r\n"), "the terminal was gone at"),
    ("stream, NUL bytes appended", SEGMENT, append(bytes(5000)), "the terminal was gone at"),
    ("stream, first byte flipped", SEGMENT, flip(0), "stream bytes"),
    ("stream, a byte flipped in the middle", SEGMENT, flip(0.5), "stream bytes"),
    ("stream, last byte flipped", SEGMENT, flip(1), "stream bytes"),
    ("stream, pieces exchanged", SEGMENT, swap, "stream bytes"),
    ("stream, ten bytes removed", SEGMENT, without, "stream bytes"),
    ("stream, ten bytes twice", SEGMENT, twice, "stream bytes"),
    ("stream, an older one", SEGMENT, OLDER, "stream: ends at"),
    ("stream, one more segment", "stream/END", b"never printed\r\n", "the terminal was gone at"),
    ("stream, a segment of another name", SEGMENT, "stream/00000000000000000009", "stream"),
    ("timeline, last line cut", "timeline.jsonl", lines(lambda all_: all_[:-1]), "timeline.jsonl: ends at byte"),
    ("timeline, last line cut in half", "timeline.jsonl", cut(40), "timeline.jsonl: ends at byte"),
    ("timeline, cut by half", "timeline.jsonl", half, "timeline.jsonl: ends at byte"),
    ("timeline, emptied", "timeline.jsonl", lambda content: b"", "timeline.jsonl: ends at byte 0"),
    ("timeline, removed", "timeline.jsonl", REMOVED, "timeline.jsonl: is missing"),
    ("timeline, first line removed", "timeline.jsonl", lines(lambda all_: all_[1:]), "timeline.jsonl line at byte 0"),
    ("timeline, a line removed", "timeline.jsonl", middle(lambda line: []), "timeline.jsonl line at byte"),
    ("timeline, a line twice", "timeline.jsonl", middle(lambda line: [line, line]), "timeline.jsonl line at byte"),
    ("timeline, last line twice", "timeline.jsonl", lines(lambda all_: [*all_, all_[-1]]), "line at byte"),
    ("timeline, lines exchanged", "timeline.jsonl", lines(swapped_lines), "timeline.jsonl line at byte"),
    ("timeline, a time changed, resealed", "timeline.jsonl", middle(lambda line: [later(line)]), "line at byte"),
    ("timeline, a line unlinked", "timeline.jsonl", middle(lambda line: [unlinked(line)]), "line at byte"),
    ("timeline, a line added", "timeline.jsonl", middle(lambda line: [unlinked(line), line]), "line at byte"),
    ("timeline, an old line at the end", "timeline.jsonl", lines(lambda all_: [*all_, unlinked(all_[-1])]), "no link"),
    ("timeline, a bit flipped", "timeline.jsonl", flip(0.5), "timeline.jsonl: bytes"),
    ("timeline, a bit of the last line flipped", "timeline.jsonl", flip(1), "timeline.jsonl"),
    ("timeline, pieces exchanged", "timeline.jsonl", swap, "timeline.jsonl: bytes"),
    ("timeline, NUL bytes in it", "timeline.jsonl", middle(lambda line: [bytes(512), line]), "timeline.jsonl: bytes"),
    ("timeline, garbage appended", "timeline.jsonl", append(b"garbage"), "timeline.jsonl: the line at byte"),
    ("timeline, an older one", "timeline.jsonl", OLDER, "timeline.jsonl: ends at byte"),
    ("events, cut by a line", "events.jsonl", lines(lambda all_: all_[:-1]), "events.jsonl: ends at byte"),
    ("events, cut by half", "events.jsonl", half, "events.jsonl: ends at byte"),
    ("events, removed", "events.jsonl", REMOVED, "events.jsonl: is missing"),
    ("events, a line appended", "events.jsonl", append(b'{"seq":999}\n'), "events.jsonl: has"),
    ("events, a bit flipped", "events.jsonl", flip(0.5), "events.jsonl line"),
    ("events, a line removed", "events.jsonl", middle(lambda line: []), "events.jsonl line"),
    ("events, a line twice", "events.jsonl", middle(lambda line: [line, line]), "events.jsonl line"),
    ("events, lines exchanged", "events.jsonl", lines(swapped_lines), "events.jsonl line"),
    ("events, an older one", "events.jsonl", OLDER, "events.jsonl: ends at byte"),
    ("blocks, an exit status changed", "blocks.jsonl",
     lambda content: content.replace(b'"exit_status":3', b'"exit_status":0'), "blocks.jsonl line 2"),
    ("blocks, cut by a line", "blocks.jsonl", lines(lambda all_: all_[:-1]), "blocks.jsonl: ends at byte"),
    ("blocks, removed", "blocks.jsonl", REMOVED, "blocks.jsonl: is missing"),
    ("blocks, a line twice", "blocks.jsonl", lines(lambda all_: [*all_, all_[-1]]), "blocks.jsonl: has"),
    ("blocks, lines exchanged", "blocks.jsonl", lines(swapped_lines), "blocks.jsonl line 2"),
    ("blocks, an older one", "blocks.jsonl", OLDER, "blocks.jsonl: ends at byte"),
    ("output, cut", "blocks/1_*.out", cut(3), "blocks/1_"),
    ("output, emptied", "blocks/1_*.out", lambda content: b"", "blocks/1_"),
    ("output, appended to", "blocks/1_*.out", append(b"more\n"), "blocks/1_"),
    ("output, a bit flipped", "blocks/1_*.out", flip(0.5), "blocks/1_"),
    ("output, pieces exchanged", "blocks/1_*.out", swap, "blocks/1_"),
    ("output, removed", "blocks/2_*.out", REMOVED, "blocks/2_"),
    ("output, one more", "blocks/2_1.out", b"never printed\n", "blocks/2_1.out: follows from nothing"),
    ("checkpoint, a bit flipped", "checkpoint.json", flip(0.5), "checkpoint.json: is damaged"),
    ("checkpoint, cut by half", "checkpoint.json", half, "checkpoint.json: is damaged"),
]  # fmt: skip


def damage(directory: Path, older: Path, name: str, change: Any) -> None:
    if name == "stream/END":
        name = f"stream/{(directory / SEGMENT).stat().st_size:020d}"
    (path,) = directory.glob(name) if "*" in name else (directory / name,)
    if change is REMOVED:
        path.unlink()
    elif change is OLDER:
        shutil.copyfile(older / path.relative_to(directory), path)
    elif isinstance(change, str):
        path.rename(directory / change)
    else:
        content = path.read_bytes() if path.exists() else b""
        fresh = change if isinstance(change, bytes) else change(content)
        assert fresh != content
        path.write_bytes(fresh)


def messages(result: VerifyResult) -> list[str]:
    return [f"{one['where']}: {one['message']}" for one in (*result.differences, *result.behind)]


@pytest.mark.parametrize(("name", "change", "expected"), [one[1:] for one in SEALED], ids=[one[0] for one in SEALED])
@async_test
async def test_damage_is_found(
    recorded: tuple[Path, Path], tmp_path: Path, name: str, change: Any, expected: str
) -> None:
    directory = tmp_path / "c1"
    shutil.copytree(recorded[0], directory)
    damage(directory, recorded[1], name, change)
    result = await verified(directory)
    found = messages(result)
    assert any(expected in one for one in found), found
    # Half a line at the end of the timeline is what a kill leaves; all else is no accident.
    assert result.clean == (change == append(b"garbage") or expected == "timeline.jsonl: the line at byte"), found


@pytest.mark.parametrize(("first", "clean"), [(9, True), (8, False), (12, False)])
@async_test
async def test_segments_that_do_not_join_are_reported(
    recorded: tuple[Path, Path], tmp_path: Path, first: int, clean: bool
) -> None:
    """Bytes behind the end of a segment that is not the last one are read by nothing else."""
    directory = tmp_path / "c1"
    shutil.copytree(recorded[0], directory)
    whole = (directory / SEGMENT).read_bytes()
    (directory / SEGMENT).write_bytes((whole[:9] + b"xxx")[:first])
    (directory / "stream" / f"{9:020d}").write_bytes(whole[9:])
    result = await verified(directory)
    assert result.clean is clean
    assert clean or f"stream: a segment ends at {first}, the next one begins at 9" in messages(result)


@pytest.mark.parametrize("name", ["events.jsonl", "blocks.jsonl", "blocks/1_*.out"])
@pytest.mark.parametrize("kind", ["directory", "fifo", "link"])
@async_test(timeout_seconds=20)
async def test_what_is_no_file_in_the_place_of_one_is_reported(
    recorded: tuple[Path, Path], tmp_path: Path, name: str, kind: str
) -> None:
    directory = tmp_path / "c1"
    shutil.copytree(recorded[0], directory)
    (path,) = directory.glob(name)
    path.rename(tmp_path / "moved")
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / "moved")
    result = await check_files("c1", Layout(directory), None, None)
    assert any(one["where"] == str(path.relative_to(directory)) for one in result.differences), messages(result)


@pytest.mark.parametrize(
    "note",
    [
        {"type": "owner", "epoch": "x"},
        {"type": "wait_begin"},
        {"type": "wait_begin", "wait_id": "w1", "seen": 5},
        {"type": "wait_begin", "wait_id": "w1", "seen": {"offset": 0, "timeline": 0}, "match": [{"regex": "("}]},
        {"type": "wait_end"},
        {"type": "wait_end", "wait_id": []},
    ],
)
@async_test
async def test_a_note_that_was_forged_without_its_form_is_reported(
    recorded: tuple[Path, Path], tmp_path: Path, note: dict[str, Any]
) -> None:
    directory = tmp_path / "c1"
    shutil.copytree(recorded[0], directory)
    last = (directory / "timeline.jsonl").read_bytes().splitlines()[-1]
    entry = {"kind": "note", **{name: orjson.loads(last)[name] for name in ("offset", "ts")}, "note": note}
    with (directory / "timeline.jsonl").open("ab") as timeline:
        timeline.write(linked(orjson.dumps(entry), link_of(last), None))
    assert not (await verified(directory)).clean


@async_test
async def test_what_was_recorded_is_clean_and_complete(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    directory = tmp_path / "c1"
    shutil.copytree(recorded[0], directory)
    result = await verified(directory)
    assert result.clean and result.behind == []
    assert result.vouched == [0, (directory / SEGMENT).stat().st_size]
    assert result.head is not None and result.waits > 1


@async_test
async def test_every_changed_byte_of_the_stream_is_placed(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    directory = tmp_path / "c1"
    shutil.copytree(recorded[0], directory)
    whole = (directory / SEGMENT).read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 25)):
        (directory / SEGMENT).write_bytes(whole[:place] + bytes((whole[place] ^ 1,)) + whole[place + 1 :])
        places = [one["where"] for one in (await verified(directory)).differences]
        (span,) = [found for place_ in places if (found := re.match(r"stream bytes (\d+) to (\d+)$", place_))]
        assert int(span[1]) <= place < int(span[2])


@async_test
async def test_every_line_of_the_timeline_is_placed(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    """A changed line with a checksum that fits is detected by the line behind it; the last one only by a seal."""
    directory = tmp_path / "c1"
    shutil.copytree(recorded[0], directory)
    whole = (directory / "timeline.jsonl").read_bytes().splitlines(keepends=True)
    for number in range(0, len(whole) - 1, 3):
        changed = [*whole[:number], resealed(whole[number], more=1), *whole[number + 1 :]]
        (directory / "timeline.jsonl").write_bytes(b"".join(changed))
        after = len(b"".join(changed[: number + 1]))
        links = [one["where"] for one in (await verified(directory)).differences if "written behind" in one["message"]]
        assert links == [f"timeline.jsonl line at byte {after}"]


@async_test
async def test_a_renamed_conversation_is_reported_and_still_compared(
    recorded: tuple[Path, Path], tmp_path: Path
) -> None:
    directory = tmp_path / "c2"
    shutil.copytree(recorded[0], directory)
    (difference,) = (await verified(directory)).differences
    assert difference["where"] == "meta.json" and "'c1'" in difference["message"]
    damage(directory, recorded[1], "blocks.jsonl", half)
    assert len((await verified(directory)).differences) == 2


@pytest.mark.parametrize("change", [flip(0.5), half, lambda content: b"{}"])
@async_test
async def test_what_says_whose_record_it_is_and_is_damaged(
    recorded: tuple[Path, Path], tmp_path: Path, change: Any
) -> None:
    directory = tmp_path / "c1"
    shutil.copytree(recorded[0], directory)
    damage(directory, recorded[1], "meta.json", change)
    with pytest.raises(blockpty.SpoolCorrupt, match=r"meta\.json"):
        await verified(directory)
    shutil.copyfile(recorded[0] / "meta.json", directory / "meta.json")
    (directory / "begin.json").write_bytes(b"{}")
    with pytest.raises(blockpty.SpoolCorrupt, match=r"begin\.json"):
        await verified(directory)


@async_test
async def test_what_cannot_be_found(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    """The list of docs/topics/verify.md."""
    directory = tmp_path / "c1"
    # All of it as it was once: that is a record as well. Only a digest that is kept elsewhere tells.
    shutil.copytree(recorded[1], directory)
    older = await verified(directory)
    assert older.clean and older.head != (await verified(recorded[0])).head
    shutil.rmtree(directory)
    shutil.copytree(recorded[0], directory)
    # An older checkpoint, or none: the next engine derives more again.
    damage(directory, recorded[1], "checkpoint.json", OLDER)
    assert (await verified(directory)).clean
    damage(directory, recorded[1], "checkpoint.json", REMOVED)
    assert (await verified(directory)).clean
    # In the last line, with a checksum that fits, what nothing follows from.
    damage(directory, recorded[1], "timeline.jsonl", lines(lambda all_: [*all_[:-1], resealed(all_[-1], more=1)]))
    assert (await verified(directory)).clean


@async_test
async def test_a_record_without_links_is_verified_as_before(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    directory = tmp_path / "c1"
    shutil.copytree(recorded[0], directory)
    # Waits speak of places in the timeline, so the lines keep their length.
    whole = (directory / "timeline.jsonl").read_bytes().splitlines(keepends=True)
    old = [
        sealed(orjson.dumps({**without_checksums(line), "x": "-" * (len(line) - len(unlinked(line)) - 7)}))
        for line in whole
    ]
    assert [len(line) for line in old] == [len(line) for line in whole]
    (directory / "timeline.jsonl").write_bytes(b"".join(old))
    result = await verified(directory)
    assert result.clean and result.vouched is None and result.head is None
    damage(directory, recorded[1], SEGMENT, cut(500))
    assert not (await verified(directory)).clean


# The same under a server that runs, while its shell lives


def overwrite(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change a file where it is."""
    content = change(path.read_bytes())
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()


LIVE = [
    (SEGMENT, cut(100), "stream: ends at"),
    (SEGMENT, append(b"never printed\r\n"), "stream: ends at"),
    (SEGMENT, flip(0.3), "stream bytes"),
    ("timeline.jsonl", lines(lambda all_: all_[:-1]), "timeline.jsonl: ends at"),
    ("timeline.jsonl", lines(lambda all_: [*all_, all_[-1]]), "timeline.jsonl: ends at"),
    ("timeline.jsonl", middle(lambda line: [later(line)]), "timeline.jsonl line at byte"),
    ("events.jsonl", lines(lambda all_: all_[:-1]), "events.jsonl: ends at"),
    ("events.jsonl", append(b"{}\n"), "events.jsonl: has"),
    ("blocks.jsonl", flip(0.5), "blocks.jsonl line 1"),
    ("blocks/1_*.out", flip(0.5), "blocks/1_"),
    ("blocks/1_*.out", REMOVED, "blocks/1_"),
]


@async_test
async def test_damage_under_a_server_that_runs_is_found(tmp_path: Path) -> None:
    async with blockpty.Engine(tmp_path) as engine:
        for number, (name, change, expected) in enumerate(LIVE):
            conversation = await engine.open(f"c{number}", shell="bash")
            await conversation.run("echo 0123456789; seq 50")
            # What the shell still has to say: its prompt, and that it is silent then.
            await conversation.wait_for({"idle_ms": 30})
            assert messages(await conversation.verify()) == []
            (path,) = conversation.directory.glob(name)
            if change is REMOVED:
                path.unlink()
            else:
                overwrite(path, change)
            result = await engine.verify(conversation.id)
            assert not result.clean and any(expected in one for one in messages(result)), (name, messages(result))


@async_test
async def test_verifying_a_conversation_that_ended_under_a_server_does_not_repair_it(
    recorded: tuple[Path, Path], tmp_path: Path
) -> None:
    directory = tmp_path / "conversations" / "c1"
    shutil.copytree(recorded[0], directory)
    async with blockpty.Engine(tmp_path) as engine:
        damage(directory, recorded[1], "blocks.jsonl", half)
        before = everything(directory)
        result = await engine.verify("c1")
        assert not result.clean and everything(directory) == before
        repaired = await engine.repair("c1")
        assert repaired.clean and [one["where"] for one in repaired.changed] == ["blocks.jsonl"]
        assert (directory / "blocks.jsonl").read_bytes() == (recorded[0] / "blocks.jsonl").read_bytes()
        # Resumed, and ended: what was damaged is found as well.
        for name in ("events.jsonl", "blocks/1_*.out", "blocks/2_1.out"):
            damage(directory, recorded[1], name, b"something else\n" if name.endswith("2_1.out") else flip(0.5))
            assert not (await engine.verify("c1")).clean
            repaired = await engine.repair("c1")
            assert repaired.clean and repaired.changed, name
        assert (directory / "blocks" / "2_1.out.torn").exists()
        # What was recorded cannot be made again.
        damage(directory, recorded[1], SEGMENT, flip(0.5))
        left = await engine.repair("c1")
        assert not left.clean and any("stream bytes" in one["where"] for one in left.differences)


# Records that take the place of others


@async_test
async def test_a_conversation_that_was_replaced_is_noticed(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    async with blockpty.Engine(tmp_path) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("echo of the first")
        await conversation.close()
        conversation.directory.rename(tmp_path / "moved")
        shutil.copytree(recorded[0], conversation.directory)
        before = everything(conversation.directory)
        with pytest.raises(blockpty.SpoolCorrupt, match="another record"):
            await engine.conversation("c1")
        assert everything(conversation.directory) == before, "nothing of the first is written into it"
        again = await engine.conversation("c1")
        assert (await again.block("b1")).block.cmd == "echo first; seq 100"
        assert (await again.verify()).clean


@async_test
async def test_a_conversation_that_was_made_again_under_its_name_is_noticed(tmp_path: Path) -> None:
    """A user resets the state directory, and another engine opens a conversation of the same name there."""
    async with blockpty.Engine(tmp_path) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("echo of the first")
        await conversation.close()
        shutil.rmtree(conversation.directory)
        async with blockpty.Engine(tmp_path) as other:
            await (await other.open("c1", shell="bash")).close()
        before = everything(conversation.directory)
        with pytest.raises(blockpty.SpoolCorrupt, match="another record"):
            await engine.verify("c1")
        assert everything(conversation.directory) == before
        assert (await engine.verify("c1")).clean and everything(conversation.directory) == before
        assert (await (await engine.conversation("c1")).blocks()).blocks == []


@async_test
async def test_a_directory_that_was_removed_is_not_replaced(tmp_path: Path) -> None:
    """It is made again, as far as its files are open: that was promised before."""
    async with blockpty.Engine(tmp_path) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("echo one")
        while conversation.directory.exists():
            # What is written meanwhile may leave a file in it.
            shutil.rmtree(conversation.directory, ignore_errors=True)
        # Looked at while it is missing, and then.
        conversation.live.check_identity()
        await conversation.exec_block("echo two")
        assert (await conversation.wait_for("two", from_cursor=0)).matched
        await (await engine.conversation("c1")).run("echo three")


@async_test
async def test_a_home_that_was_replaced_is_noticed_while_shells_run(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("echo of the first")
        (home / "conversations").rename(home / "moved")
        other = home / "conversations" / "c1"
        for directory in (other / "stream", other / "blocks", other / "commands"):
            directory.mkdir(parents=True, mode=0o700)
        checkpoint.replace(other / "meta.json", {"format": 2, "conversation_id": "c1", "created_ts": 1})
        before = everything(other)
        with pytest.raises(blockpty.SpoolCorrupt, match="another record"):
            await conversation.run("echo no")
        for _ in range(2):
            with pytest.raises(blockpty.SpoolCorrupt, match=f"process {conversation.pid}, still runs"):
                await engine.conversation("c1")
        assert everything(other) == before
        shutil.rmtree(home / "conversations")
        (home / "moved").rename(home / "conversations")
    async with blockpty.Engine(home) as engine:
        await (await engine.conversation("c1")).close()


@async_test
async def test_a_record_that_was_replaced_while_it_rested_is_read_as_it_is(
    recorded: tuple[Path, Path], tmp_path: Path
) -> None:
    directory = tmp_path / "conversations" / "c1"
    async with blockpty.Engine(tmp_path) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("echo of the first")
        await conversation.close()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("blockpty.runtime.engine.ENDED_KEPT", 0)
            await engine._suspend_ended()
        assert engine.attached("c1") is None
        shutil.rmtree(directory)
        shutil.copytree(recorded[0], directory)
        again = await engine.conversation("c1")
        assert (await again.block("b1")).block.cmd == "echo first; seq 100"
        assert (await again.verify()).clean


# No room


@pytest.mark.linux
@async_test
async def test_on_a_full_disk_what_waits_for_room_is_no_difference(tmp_path: Path) -> None:
    place = tmp_path / "conversations"
    place.mkdir(mode=0o700)
    if os.geteuid() != 0 or await status_of("mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", str(place)):
        pytest.skip("needs to mount a small file system")
    try:
        async with blockpty.Engine(tmp_path) as engine:
            conversation = await engine.open("c1", shell="bash", env={"HISTFILE": "/dev/null"})
            begun = await conversation.exec_block("read -r _; seq 30000")
            await wait_for_begin(conversation.live, 5)
            ballast = place / "ballast"
            with contextlib.suppress(OSError), ballast.open("ab", buffering=0) as file:
                while True:
                    file.write(b"b" * 4096)
            os.truncate(ballast, ballast.stat().st_size - 64 * 1024)
            await conversation.send("\r")
            async with asyncio.timeout(30):
                while conversation.live.deriver.problem is None:  # noqa: ASYNC110 - nothing reports it
                    await asyncio.sleep(0.01)
            result = await engine.verify("c1")
            assert result.clean and result.behind, messages(result)
            assert all("waits for room" in one["message"] for one in result.behind)
            ballast.unlink()
            assert (await conversation.wait_for({"token": "PROMPT"}, from_cursor=begun.cursor)).matched
            result = await engine.verify("c1")
            assert result.clean and result.behind == [], messages(result)
    finally:
        assert await status_of("umount", "-l", str(place)) == 0


def test_the_table_has_sixty_kinds_of_damage() -> None:
    assert len(SEALED) + len(LIVE) >= 60 and len({one[0] for one in SEALED}) == len(SEALED)


@pytest.mark.parametrize("removed", [False, True])
@async_test
async def test_nothing_is_made_again_in_another_home(tmp_path: Path, removed: bool) -> None:
    home, moved = tmp_path / "home", tmp_path / "moved"
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("echo one")
        home.rename(moved)
        if removed:
            shutil.rmtree(moved)
        home.mkdir(mode=0o700)
        with pytest.raises(blockpty.SpoolCorrupt, match="another record"):
            conversation.live.check_identity()
        conversation.live.deriver.save()
        assert list(home.rglob("*")) == []

"""A sealed line is known from a damaged one, and the timeline tells exactly which bytes were lost."""

from __future__ import annotations

import random
from pathlib import Path

import orjson
import pytest

from blockpty.engine.machine import Machine
from blockpty.files.lines import is_sound, sealed
from blockpty.host.record import Timeline, entries_since
from blockpty.model.entries import DAMAGED, Entry
from blockpty.spool.checkpoint import replace
from blockpty.spool.timeline import TimelineReader
from tests.support import disk

RECORDING = disk.conversation()


def lines() -> list[bytes]:
    return [sealed(orjson.dumps(entry.to_dict())) for entry in RECORDING.entries]


def read(path: Path) -> list[tuple[Entry, int]]:
    reader = TimelineReader(path)
    try:
        return reader.read_new()
    finally:
        reader.close()


def timeline(tmp_path: Path, content: bytes, version: int = 2) -> Path:
    replace(tmp_path / "meta.json", {"format": version})
    path = tmp_path / "timeline.jsonl"
    path.write_bytes(content)
    return path


def test_the_recorder_seals_every_line(tmp_path: Path) -> None:
    writer = Timeline(str(tmp_path))
    writer.tick(0)
    writer.write(0, "note", {"note": {"text": "caf\u00e9 \udcff", "crc": "nested"}})
    writer.close()
    content = (tmp_path / "timeline.jsonl").read_bytes()
    assert [is_sound(line) for line in content.splitlines()] == [True, True]
    assert [entry["kind"] for _, entry in entries_since(str(tmp_path), 0)] == ["tick", "note"]
    assert all("crc" not in entry.fields for entry, _ in read(timeline(tmp_path, content)))


@pytest.mark.parametrize("version", [1, 2])
def test_lines_of_older_records_have_none(tmp_path: Path, version: int) -> None:
    plain = b"".join(orjson.dumps(entry.to_dict()) + b"\n" for entry in RECORDING.entries)
    found = [entry for entry, _ in read(timeline(tmp_path, plain, version))]
    assert found == (RECORDING.entries if version == 1 else [])


def test_flipped_bits_are_reported_as_the_bytes_they_are_in(tmp_path: Path) -> None:
    content = b"".join(lines())
    borders = [0]
    for line in lines():
        borders.append(borders[-1] + len(line))
    chance = random.Random(1)
    for _ in range(200):
        place = chance.randrange(len(content))
        damaged = content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :]
        found = read(timeline(tmp_path, damaged))
        damaged_ranges = [entry.fields["bytes"] for entry, _ in found if entry.kind == DAMAGED]
        begin = max(border for border in borders if border <= place)
        end = min(border for border in borders if border > place)
        number = borders.index(begin)
        if damaged[end - 1 : end] == b"\n" and damaged[begin:end].count(b"\n") == 1:
            last = number == len(RECORDING.entries) - 1
            assert damaged_ranges == ([] if last else [[begin, end]])
            assert [e for e, _ in found if e.kind != DAMAGED] == [
                entry for at, entry in enumerate(RECORDING.entries) if at != number
            ]
        assert [after for _, after in found] == sorted(after for _, after in found)


@pytest.mark.parametrize("number", [0, 1, 7])
def test_zeros_in_the_middle_are_one_range(tmp_path: Path, number: int) -> None:
    parts = lines()
    begin = sum(map(len, parts[:number]))
    length = len(parts[number]) + len(parts[number + 1])
    content = b"".join(parts)
    damaged = content[:begin] + b"\0" * length + content[begin + length :]
    found = read(timeline(tmp_path, damaged))
    assert [entry.fields["bytes"] for entry, _ in found if entry.kind == DAMAGED] == [[begin, begin + length]]
    assert [entry for entry, _ in found if entry.kind != DAMAGED] == [
        *RECORDING.entries[:number], *RECORDING.entries[number + 2 :],
    ]  # fmt: skip


def test_damage_is_reported_with_the_next_entry_however_the_file_is_followed(tmp_path: Path) -> None:
    parts = lines()
    parts[4] = b"x" * (len(parts[4]) - 1) + b"\n"
    content = b"".join(parts)
    whole = read(timeline(tmp_path, content))
    path = timeline(tmp_path, b"")
    reader, pieces = TimelineReader(path), []
    for end in range(0, len(content) + 1, 7):
        path.write_bytes(content[:end])
        pieces += reader.read_new()
    path.write_bytes(content)
    pieces += reader.read_new()
    reader.close()
    assert pieces == whole and sum(entry.kind == DAMAGED for entry, _ in whole) == 1


def test_the_machine_reports_it() -> None:
    events, _ = Machine().apply(Entry(0, 5, DAMAGED, {"bytes": [10, 90]}))
    assert [(event.type, dict(event.fields)) for event in events] == [
        ("anomaly", {"reason": "damaged", "file": "timeline.jsonl", "bytes": [10, 90]})
    ]


def test_no_line_can_claim_damage(tmp_path: Path) -> None:
    path = timeline(tmp_path, sealed(b'{"offset":0,"ts":1,"kind":"damaged","bytes":[0,9]}') + lines()[0])
    kinds = [(entry.kind, entry.fields.get("bytes")) for entry, _ in read(path)]
    assert kinds == [(DAMAGED, [0, len(path.read_bytes()) - len(lines()[0])]), ("spawn", None)]


def test_the_recorder_sets_a_torn_line_aside(tmp_path: Path) -> None:
    line = sealed(b'{"offset":0,"ts":5,"kind":"tick"}')
    path = tmp_path / "timeline.jsonl"
    path.write_bytes(line + line[:30])
    Timeline(str(tmp_path)).close()
    assert path.read_bytes() == line
    aside = Path(f"{path}.torn")
    assert aside.read_bytes() == line[:30] + b"\n" and aside.stat().st_mode & 0o777 == 0o600
    Timeline(str(tmp_path)).close()
    assert aside.read_bytes() == line[:30] + b"\n", "repaired once"


def test_the_recorder_knows_the_last_sound_entry(tmp_path: Path) -> None:
    line = sealed(b'{"offset":0,"ts":50,"kind":"tick"}')
    (tmp_path / "timeline.jsonl").write_bytes(line + (b"z" * 4000 + b"\n"))
    writer = Timeline(str(tmp_path))
    assert writer.ts == 50 and [entry["ts"] for entry in writer.tail(10)] == [50]
    writer.close()

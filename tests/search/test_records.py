"""What is read of a record has its nonces redacted, also of one that took the name of another."""

from __future__ import annotations

import shutil
from pathlib import Path

from blockpty.search.records import Records
from blockpty.testing import FakePty
from tests.support import corpus


def _printing_its_nonce(home: Path, nonce: str) -> None:
    pty = FakePty()
    pty.spawn(nonce=nonce)
    pty.prompt()
    pty.run("env", b"x " + nonce.encode() + b" y\r\n")
    corpus.save(home, "c1", pty)


def test_a_conversation_that_took_the_name_of_another_has_its_own_nonces(tmp_path: Path) -> None:
    records = Records(tmp_path)
    try:
        for nonce in ("A" * 22, "B" * 22):
            _printing_its_nonce(tmp_path, nonce)
            tail = records.tail("c1", None)
            assert tail is not None
            text = "".join(window.text for window in records.record("c1").chunks(tail.blocks[0], tail.cursor))
            assert "x " + "*" * 22 + " y" in text and nonce not in text
            shutil.rmtree(tmp_path / "conversations" / "c1")
            records.close()
    finally:
        records.close()


def test_nonces_that_come_later_are_learned(tmp_path: Path) -> None:
    records = Records(tmp_path)
    try:
        _printing_its_nonce(tmp_path, "A" * 22)
        record = records.record("c1")
        assert b"A" * 22 in record.bare([(0, 10_000)])[0] and b"A" * 22 not in record.read(0, 10_000)
        timeline = tmp_path / "conversations" / "c1" / "timeline.jsonl"
        pty = FakePty()
        pty.spawn(nonce="C" * 22)
        pty.recording.save(tmp_path / "other")
        with timeline.open("ab") as file:
            file.write((tmp_path / "other" / "timeline.jsonl").read_bytes())
        stream = next((tmp_path / "conversations" / "c1" / "stream").iterdir())
        with stream.open("ab") as file:
            file.write(b"C" * 22)
        assert b"C" * 22 in record.bare([(0, 10_000)])[0] and b"C" * 22 not in record.read(0, 10_000)
    finally:
        records.close()


def test_a_record_that_no_engine_has_read_is_read_with_rests(tmp_path: Path) -> None:
    pty = FakePty()
    pty.spawn()
    pty.prompt()
    for number in range(200):
        pty.run(f"echo {number}", b"%d\r\n" % number)
    corpus.save(tmp_path, "long", pty)
    records = Records(tmp_path)
    rests = 0

    def rest() -> None:
        nonlocal rests
        rests += 1

    tail = records.tail("long", None, rest)
    records.close()
    assert tail is not None and len(tail.blocks) == 200 and rests > 200

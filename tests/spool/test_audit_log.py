"""Audit log: what is written, and that each change of the file is found with its place."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from blockpty.files.lines import sealed
from blockpty.spool.audit_log import AUDIT_NAME, HEAD_NAME, PENDING_MOST, AuditFilter, AuditLog, digest_fields
from tests.support.schemas import check_files


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    log = AuditLog(tmp_path / "home", lambda: 1_700_000_000.5)
    for number in range(6):
        log.add("verdict", principal=f"p{number % 2}", conversation_id="c1", number=number)
    return log


def _file(log: AuditLog) -> Path:
    return log._path


def _lines(log: AuditLog) -> list[bytes]:
    return _file(log).read_bytes().splitlines(keepends=True)


def _places(log: AuditLog) -> list[int]:
    return sorted({one.line for one in log.verify()})


def test_an_entry_has_its_fields_and_the_file_is_private(log: AuditLog) -> None:
    log.add("lifecycle", principal="owner", operation="kill", **digest_fields("rm \ud800"))
    *_, last = log.entries()
    assert last == {
        "format": 1, "seq": 7, "ts": 1_700_000_000_500, "type": "lifecycle", "principal": "owner",
        "conversation_id": None, "operation": "kill", "size": 6, "sha256": digest_fields("rm \ud800")["sha256"],
    }  # fmt: skip
    for name in (AUDIT_NAME, HEAD_NAME):
        assert stat.S_IMODE(os.stat(_file(log).with_name(name)).st_mode) == 0o600
    assert log.verify() == []
    assert check_files(_file(log).parent) == []
    with pytest.raises(ValueError, match="seq"):
        log.add("x", principal="p", seq=4)


def test_what_no_json_can_hold_is_written_all_the_same(log: AuditLog) -> None:
    log.add("verdict", principal="\ud800", huge=1 << 70, path=Path("/x"))
    assert [one["path"] for one in log.entries(AuditFilter(before=8)) if "path" in one] == ["/x"]
    assert log.verify() == []


@pytest.mark.parametrize(
    ("asked", "numbers"),
    [
        (AuditFilter(principal="p1"), [1, 3, 5]),
        (AuditFilter(conversation_id="c2"), []),
        (AuditFilter(type="verdict", before=3), [0, 1]),
        (AuditFilter(since=1_700_000_000_501), []),
        (AuditFilter(until=1_700_000_000_500), [0, 1, 2, 3, 4, 5]),
    ],
)
def test_filters(log: AuditLog, asked: AuditFilter, numbers: list[int]) -> None:
    assert [entry["number"] for entry in log.entries(asked)] == numbers


def _resealed(line: bytes) -> bytes:
    """As a forger writes it who knows the checksum, but leaves the links."""
    record = json.loads(line)
    record.pop("crc")
    record["number"] += 100
    return sealed(json.dumps(record, separators=(",", ":")).encode())


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda lines: [*lines[:2], lines[2].replace(b'"p0"', b'"p9"'), *lines[3:]], 3),
        (lambda lines: [*lines[:2], _resealed(lines[2]), *lines[3:]], 4),
        (lambda lines: lines[:2] + lines[3:], 3),
        (lambda lines: lines[1:], 1),
        (lambda lines: [*lines[:3], lines[1], *lines[3:]], 4),
        (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], 2),
        (lambda lines: lines[:4], 5),
        (lambda lines: [*lines[:5], lines[5][:30]], 6),
        (lambda lines: [], 1),
        (lambda lines: [*lines[:5], lines[5].replace(b'"number":5', b'"number":7')], 6),
        (lambda lines: [*lines[:5], _resealed(lines[5])], 6),
    ],
    ids=["damaged", "forged", "removed", "first", "added", "moved", "cut", "torn", "emptied", "last", "last forged"],
)
def test_each_change_is_found_with_its_place_also_after_the_next_entry(log: AuditLog, change, place) -> None:  # type: ignore[no-untyped-def]
    _file(log).write_bytes(b"".join(change(_lines(log))))
    assert _places(log)[0] == place
    again = AuditLog(_file(log).parent)
    again.add("verdict", principal="p")
    assert min(_places(again)) in (place, place + 1)


def test_a_cut_is_still_seen_when_the_log_has_gone_on(log: AuditLog) -> None:
    _file(log).write_bytes(b"".join(_lines(log)[:4]))
    log.add("verdict", principal="p")
    assert [(one.line, one.message[:21]) for one in log.verify()] == [
        (5, "is not the one that f"), (5, "has the number 7, the"),
    ]  # fmt: skip


def test_a_log_that_lost_its_head_says_so(log: AuditLog) -> None:
    _file(log).with_name(HEAD_NAME).unlink()
    assert _places(log) == [6]
    again = AuditLog(_file(log).parent)
    again.add("verdict", principal="p")
    assert [entry["type"] for entry in again.entries()][-2:] == ["repaired", "verdict"]
    assert _places(again) == [7]


def test_a_writer_killed_behind_the_first_line_leaves_a_whole_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.pwrite
    heads: list[bytes] = []

    def killed(descriptor: int, data: bytes, at: int) -> int:
        heads.append(data)
        return write(descriptor, data, at) if len(heads) == 1 else 0

    monkeypatch.setattr(os, "pwrite", killed)
    AuditLog(tmp_path).add("verdict", principal="first")
    monkeypatch.setattr(os, "pwrite", write)
    assert len(heads) == 2
    again = AuditLog(tmp_path)
    assert again.verify() == []
    again.add("verdict", principal="after")
    assert [entry["principal"] for entry in again.entries()] == ["first", "after"]
    assert again.verify() == []


def test_a_moved_log_goes_on_with_its_chain(log: AuditLog) -> None:
    last = json.loads(_lines(log)[-1])
    _file(log).rename(_file(log).with_name("audit-2026.jsonl"))
    log.add("verdict", principal="p")
    (entry,) = log.entries()
    assert entry["seq"] == last["seq"] + 1
    assert _places(log) == [1]


def test_a_torn_line_is_repaired_and_said(log: AuditLog) -> None:
    with open(_file(log), "ab") as file:
        file.write(b'{"format":1,"se')
    assert _places(log) == [7]
    again = AuditLog(_file(log).parent)
    again.add("verdict", principal="p")
    assert [entry["type"] for entry in again.entries()][-2:] == ["repaired", "verdict"]
    assert again.verify() == []


def test_lines_behind_the_head_are_gone_on_from(log: AuditLog) -> None:
    head = _file(log).with_name(HEAD_NAME)
    before = head.read_bytes()
    log.add("verdict", principal="late")
    head.write_bytes(before)
    assert log.verify() == []
    again = AuditLog(_file(log).parent)
    again.add("verdict", principal="p")
    assert [entry["principal"] for entry in again.entries()][-2:] == ["late", "p"]
    assert again.verify() == []


_WRITER = """
import sys
from pathlib import Path
from blockpty.spool.audit_log import AuditLog
log = AuditLog(Path(sys.argv[1]))
print("ready", flush=True)
count = int(sys.argv[3])
number = 0
while number != count:
    log.add("verdict", principal=sys.argv[2], number=number, filling="x" * 200)
    number += 1
log.close()
"""


def _writer(home: Path, name: str, count: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", _WRITER, str(home), name, str(count)], stdout=subprocess.PIPE)


def test_a_home_that_has_gone_is_not_made_again(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "home")
    log.add("verdict", principal="before")
    log.flush()
    (tmp_path / "home").rename(tmp_path / "moved")
    log.add("verdict", principal="after")
    log.flush()
    assert not (tmp_path / "home").exists()
    # What could not be written comes when the home is back.
    (tmp_path / "moved").rename(tmp_path / "home")
    log.flush()
    assert [one["principal"] for one in log.entries(AuditFilter())] == ["before", "after"]


def test_processes_append_at_once(tmp_path: Path) -> None:
    writers = [_writer(tmp_path / "home", str(number), 200) for number in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    log = AuditLog(tmp_path / "home")
    log.flush()
    assert log.verify() == []
    for name in "012":
        assert [one["number"] for one in log.entries(AuditFilter(principal=name))] == list(range(200))
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.close()


def test_a_killed_writer_leaves_a_log_that_goes_on(tmp_path: Path) -> None:
    for number in range(8):
        with _writer(tmp_path / "home", str(number), -1) as writer:
            try:
                assert writer.stdout is not None
                assert writer.stdout.readline() == b"ready\n"
                log = AuditLog(tmp_path / "home")
                while not list(log.entries(AuditFilter(principal=str(number)))):
                    os.sched_yield()
            finally:
                writer.send_signal(signal.SIGKILL)  # by itself it never ends
        log.add("verdict", principal="after")
        assert log.waiting == (0, 0)
        assert log.verify() == []


def test_a_full_disk_stops_nothing_and_loses_nothing(log: AuditLog) -> None:
    before = _lines(log)
    size = _file(log).stat().st_size
    # A file-size limit refuses a write as a full disk does: first a part of it, then all.
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    was = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, hard))
    try:
        for number in range(3):
            log.add("verdict", principal="full", number=number)
        assert log.waiting == (3, 0)
        assert _lines(log) == before
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, was)
    log.flush()
    assert [one["number"] for one in log.entries(AuditFilter(principal="full"))] == [0, 1, 2]
    assert log.verify() == []


def test_what_memory_does_not_hold_is_counted(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / AUDIT_NAME).symlink_to("/dev/null")
    log = AuditLog(home)
    for number in range(PENDING_MOST + 5):
        log.add("verdict", principal="p", number=number)
    assert log.waiting == (PENDING_MOST, 5)
    (home / AUDIT_NAME).unlink()
    log.close()
    *written, last = log.entries()
    assert len(written) == PENDING_MOST
    assert (last["type"], last["dropped"]) == ("gap", 5)
    assert [one.line for one in log.verify()] == [PENDING_MOST + 1]


def test_a_lock_that_another_process_holds_delays_the_entry_only(log: AuditLog) -> None:
    with open(_file(log)) as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        log.add("verdict", principal="late")
        assert log.waiting == (1, 0)
    log.flush()
    assert log.waiting == (0, 0)
    assert [one["principal"] for one in log.entries()][-1] == "late"


def test_there_is_nothing_before_the_first_entry(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "home")
    assert list(log.entries()) == []
    assert log.verify() == []
    log.close()
    assert not (tmp_path / "home").exists()


def test_an_entry_after_the_end_leaves_no_file_open(log: AuditLog) -> None:
    before = len(os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd"))
    log.close()
    log.add("verdict", principal="late")
    assert len(os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd")) == before - 2
    assert log.verify() == []


def test_a_lost_head_is_said_once_on_a_full_disk(log: AuditLog, monkeypatch: pytest.MonkeyPatch) -> None:
    _file(log).with_name(HEAD_NAME).unlink()
    again = AuditLog(_file(log).parent)
    write = os.write

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "write", full)
    for _ in range(5):
        again.add("verdict", principal="p")
    assert again.waiting == (6, 0)
    monkeypatch.setattr(os, "write", write)
    again.flush()
    assert [entry["type"] for entry in again.entries()][-6:] == ["repaired", *["verdict"] * 5]

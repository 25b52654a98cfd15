"""One owner at a time, each with a higher epoch than any before."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from blockpty.errors import SpoolCorrupt, StorageFull
from blockpty.spool.ownership import Ownership

TAKERS = 50

# Waits until all are there, tries once, tells, and keeps what it got until all have tried.
PROGRAM = """
import sys
from pathlib import Path
from blockpty.spool.ownership import Ownership
print("ready", flush=True)
sys.stdin.readline()
owned = Ownership.take(Path(sys.argv[1]))
print(owned.epoch if owned else "none", flush=True)
sys.stdin.readline()
"""


def say(takers: list[subprocess.Popen[str]]) -> list[str]:
    """Let all go on at once; return what each says next."""
    for taker in takers:
        assert taker.stdin is not None
        taker.stdin.write("\n")
        taker.stdin.flush()
    return [taker.stdout.readline().strip() for taker in takers if taker.stdout is not None]


def test_of_fifty_processes_exactly_one_gets_it(tmp_path: Path) -> None:
    lock = tmp_path / "owner.lock"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    takers = [
        subprocess.Popen([sys.executable, "-c", PROGRAM, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         text=True, env=environment)
        for _ in range(TAKERS)
    ]  # fmt: skip
    try:
        assert {taker.stdout.readline().strip() for taker in takers if taker.stdout is not None} == {"ready"}
        answers = say(takers)
        assert sorted(answers) == ["1"] + ["none"] * (TAKERS - 1)
        assert Ownership.take(lock) is None, "no other engine, as long as the process lives"
        takers[answers.index("1")].kill()
        takers[answers.index("1")].wait()
        after = Ownership.take(lock)
        assert after is not None and after.epoch == 2, "a killed owner leaves it to the next"
        after.release()
    finally:
        for taker in takers:
            taker.kill()
            taker.communicate()


def test_of_fifty_threads_exactly_one_gets_it_each_time(tmp_path: Path) -> None:
    lock = tmp_path / "owner.lock"
    for epoch in range(1, 11):
        gate = threading.Barrier(TAKERS)
        taken: list[Ownership | None] = []

        def take(gate: threading.Barrier = gate, taken: list[Ownership | None] = taken) -> None:
            gate.wait()
            taken.append(Ownership.take(lock))

        threads = [threading.Thread(target=take) for _ in range(TAKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        owners = [owned for owned in taken if owned is not None]
        assert len(taken) == TAKERS
        assert [owned.epoch for owned in owners] == [epoch]
        owners[0].release()


def test_the_epoch_grows_over_every_change_of_its_length(tmp_path: Path) -> None:
    lock = tmp_path / "owner.lock"
    for epoch in range(1, 121):
        owned = Ownership.take(lock)
        assert owned is not None and owned.epoch == epoch
        assert Ownership.take(lock) is None
        owned.release()
        owned.release()
    assert lock.read_bytes() == b"120\n"
    lock.write_bytes(b"99999999999\n")
    owned = Ownership.take(lock)
    assert owned is not None and owned.epoch == 100_000_000_000
    owned.release()


@pytest.mark.parametrize("content", [b"garbage", b"-3\n", b"\0" * 8, "٣".encode()], ids=repr)
def test_a_damaged_lock_still_grows_from_then_on(tmp_path: Path, content: bytes) -> None:
    lock = tmp_path / "owner.lock"
    lock.write_bytes(content)
    epochs = []
    for _ in range(3):
        owned = Ownership.take(lock)
        assert owned is not None
        epochs.append(owned.epoch)
        owned.release()
    assert epochs[0] >= 1 and epochs == [epochs[0], epochs[0] + 1, epochs[0] + 2]


def test_no_engine_owns_after_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "owner.lock"

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(StorageFull):
            Ownership.take(lock)
    owned = Ownership.take(lock)
    assert owned is not None and owned.epoch == 1
    owned.release()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"")
    (tmp_path / "owner.lock").symlink_to(tmp_path / "victim")
    with pytest.raises(SpoolCorrupt):
        Ownership.take(tmp_path / "owner.lock")
    assert (tmp_path / "victim").read_bytes() == b""

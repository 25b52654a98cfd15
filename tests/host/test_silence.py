"""Silence is an entry: 25 ms after a burst, and when a watched time has passed; with what the terminal was doing."""

from __future__ import annotations

import os
import sys
import termios
from pathlib import Path

import pytest

from blockpty.host import readers
from blockpty.host.terminal import Terminal
from tests.support.async_tests import async_test
from tests.support.host_driver import BASH, kill_recorder, running_host
from tests.support.recorder_bench import Bench, ManualLoop


@async_test
async def test_one_silence_after_each_burst(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.sh("echo one; read x; echo two; read x")
        first = await one.entry("silence")
        assert first["ms"] == 25
        assert first["offset"] == len(b"one\r\n")
        assert first["foreground"] == "shell"
        assert first["icanon"] is first["echo"] is True
        await one.type(b"\r")
        await one.until(lambda: [e for e in one.entries("silence") if e["offset"] == len(b"one\r\n\r\ntwo\r\n")])
        await host.client.watch_idle("c1", 150)
        await one.until(lambda: [e for e in one.entries("silence") if e["ms"] == 150])
        offsets = [entry["offset"] for entry in one.entries("silence") if entry["ms"] == 25]
        assert len(offsets) == len({*offsets})


@pytest.mark.parametrize("killed", [False, True], ids=["", "recorder killed"])
@async_test
async def test_echo_that_goes_off_without_a_word_is_entered(home: Path, killed: bool) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        gate = home / "gate"
        os.mkfifo(gate)
        await one.sh(f"echo one; read x <{gate}; stty -echo; read x; stty echo; read x")
        assert (await one.entry("silence"))["echo"] is True
        if killed:
            await kill_recorder(host)
        gate.write_bytes(b"\n")
        second = await one.entry("silence", 2)
        assert (second["echo"], second["icanon"], second["offset"]) == (False, True, len(b"one\r\n"))
        assert second["ms"] >= 25
        await one.type(b"\r")
        third = await one.entry("silence", 3)
        assert third["echo"] is True and third["ms"] >= 25


@pytest.mark.skipif(sys.platform != "linux", reason="who waits for input is known on Linux only")
@async_test
async def test_a_program_that_has_not_woken_since_the_input_does_not_wait_again(home: Path) -> None:
    """Half a line wakes no reader of lines: for its reader that is as if the system had not handed it on yet."""
    async with running_host(home) as host:
        one = await host.spoken()
        await one.sh("stty -echo; printf 'Name: '; read x; read y")
        assert (await one.entry("silence"))["wants_input"] is True
        await one.type(b"half a li")
        again = await one.entry("silence", 2)
        # What the recorder enters by its own clock, however late we are.
        assert again["wants_input"] is True and again["ms"] >= 250
        # A whole line is read at once, and then the program waits for the next one.
        await one.type(b"ne\r")
        assert (await one.entry("silence", 3))["wants_input"] is True


class Silences:
    """A terminal with a manual clock, and the silences that it has entered."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.loop = ManualLoop()
        self.bench = Bench(directory, "process", loop=self.loop)
        self.detector = self.bench.terminal.silence

    def entered(self) -> list[int]:
        return [entry["ms"] for entry in self.bench.terminal.timeline.tail() if entry["kind"] == "silence"]


@pytest.fixture
def quiet(tmp_path: Path) -> Silences:
    return Silences(tmp_path / "c1")


@pytest.mark.linux
def test_a_silence_that_is_due_is_noted_before_what_is_typed_next(quiet: Silences) -> None:
    """A recorder that comes late would else say, of a line that was just typed, that nothing follows from it."""
    quiet.bench.print(5)
    quiet.detector.typing(is_command=False)
    assert quiet.entered() == []
    quiet.loop.now += 1.0  # the loop has not turned for so long
    quiet.detector.typing(is_command=False)
    assert quiet.entered() == [25]
    quiet.detector.typing(is_command=False)
    assert quiet.entered() == [25]


@pytest.mark.linux
def test_a_burst_ends_after_its_time_without_output(quiet: Silences) -> None:
    for _ in range(20):
        quiet.bench.print(5)
        quiet.loop.advance(0.02)
        assert quiet.entered() == []
    quiet.loop.advance(0.004)
    assert quiet.entered() == []
    quiet.loop.advance(0.002)
    assert quiet.entered() == [25]
    quiet.loop.advance(100.0)
    assert quiet.entered() == [25], "nothing has changed"


@pytest.mark.linux
def test_a_shell_that_is_replaced_after_the_silence_is_noticed(
    quiet: Silences, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`exec cat` prints nothing and changes no mode; on a busy machine the silence comes before the exec."""
    terminal, replaced = quiet.bench.terminal, False
    sampled = terminal.state()
    monkeypatch.setattr(
        terminal, "state", lambda: {**sampled, "foreground": "shell", "icanon": True, "replaced": replaced}
    )
    monkeypatch.setattr(terminal, "replaced", lambda: replaced)
    monkeypatch.setattr(terminal, "modes", lambda: (True, bool(sampled["echo"])))
    quiet.bench.print(5)
    quiet.loop.advance(100.0)
    assert quiet.entered() == [25]
    replaced = True
    quiet.loop.advance(100.0)
    assert len(quiet.entered()) == 2
    assert [entry["replaced"] for entry in terminal.timeline.tail() if entry["kind"] == "silence"] == [False, True]
    quiet.loop.advance(1000.0)
    assert len(quiet.entered()) == 2


@pytest.mark.linux
@pytest.mark.parametrize(
    ("asked", "state"),
    [
        # zsh is in raw mode by then, which must not be taken for its editor waiting for a key.
        ("shell_works", {"foreground": "shell", "icanon": False, "echo": False, "replaced": False}),
        # It may be `stty -echo` itself, or `exec true`, which the processor leaves before it has ended.
        ("foreground_runs", {"foreground": "child", "icanon": True, "echo": False, "reads": False}),
        ("foreground_runs", {"foreground": "shell", "icanon": True, "echo": True, "replaced": True}),
    ],
    ids=["a prompt is computed", "echo is off", "exec"],
)
def test_what_seems_to_wait_is_busy_until_it_sleeps(
    quiet: Silences, monkeypatch: pytest.MonkeyPatch, asked: str, state: dict[str, object]
) -> None:
    terminal, works = quiet.bench.terminal, True
    sampled = {**terminal.state(), **state}
    monkeypatch.setattr(terminal, "state", lambda: sampled)
    monkeypatch.setattr(terminal, "modes", lambda: (state["icanon"], state["echo"]))
    monkeypatch.setattr(terminal, "depth", lambda state: 3000)
    monkeypatch.setattr(terminal, asked, lambda: works)
    quiet.bench.print(5)
    quiet.loop.advance(1.0)
    works = False
    quiet.loop.advance(100.0)
    works = True
    quiet.bench.print(5)
    quiet.loop.advance(100.0)
    entries = [entry for entry in terminal.timeline.tail() if entry["kind"] == "silence"]
    assert [entry.get("busy") for entry in entries] == [True, None, True, None]
    assert entries[3]["ms"] >= 5000, "a child that stays for good"


@pytest.mark.linux
def test_what_is_blocked_reading_without_echo_asks_for_a_password_whatever_else_runs(
    quiet: Silences, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make | sudo tee file`."""
    terminal = quiet.bench.terminal
    sampled = {**terminal.state(), "foreground": "child", "icanon": True, "echo": False, "reads": True}
    monkeypatch.setattr(terminal, "state", lambda: sampled)
    monkeypatch.setattr(terminal, "modes", lambda: (True, False))
    monkeypatch.setattr(terminal, "foreground_runs", lambda: True)
    quiet.bench.print(5)
    quiet.loop.advance(0.1)
    assert {entry.get("busy") for entry in terminal.timeline.tail() if entry["kind"] == "silence"} == {None}


@pytest.mark.linux
def test_the_echo_of_what_is_typed_into_a_burst_is_given_its_time(quiet: Silences) -> None:
    quiet.bench.print(5)
    quiet.loop.advance(0.015)
    quiet.detector.typing(is_command=False)
    quiet.detector.typed()
    quiet.loop.advance(0.024)
    assert quiet.entered() == []
    quiet.loop.advance(0.002)
    assert quiet.entered() == [25]


@pytest.mark.linux
def test_typing_delays_the_end_of_a_burst_once(quiet: Silences) -> None:
    quiet.bench.print(5)
    for _ in range(4):
        quiet.loop.advance(0.01)
        quiet.detector.typed()
        assert quiet.entered() == []
    quiet.loop.advance(0.01)
    assert quiet.entered() == [25], "twice its time after the output"


@pytest.mark.linux
@pytest.mark.parametrize("editor", [False, True], ids=["program", "shell"])
def test_a_burst_does_not_end_before_what_was_typed_into_it_is_read(
    quiet: Silences, monkeypatch: pytest.MonkeyPatch, editor: bool
) -> None:
    """A client that answers `Password:` at once would otherwise see the program as still asking for it."""
    terminal, slept = quiet.bench.terminal, 3
    monkeypatch.setattr(terminal, "at_editor", lambda: editor)
    monkeypatch.setattr(terminal, "reader", lambda patient: terminal.pid)
    monkeypatch.setattr(readers, "sleeps", lambda pid: slept)

    def answer() -> None:
        quiet.bench.print(5)
        quiet.loop.advance(0.01)
        quiet.detector.typing(is_command=False)
        quiet.detector.typed()

    answer()
    quiet.loop.advance(0.2)
    assert quiet.entered() == []
    slept += 1  # it has read, and waits again
    quiet.loop.advance(0.03)
    assert quiet.entered() == [25]
    answer()
    quiet.loop.advance(0.3)
    assert quiet.entered() == [25, 25], "half a line wakes no program that reads lines"


@pytest.mark.linux
def test_a_watched_time_counts_output_and_input(quiet: Silences) -> None:
    quiet.detector.watch(1000)
    quiet.detector.watch(500)
    quiet.loop.advance(0.4)
    quiet.detector.typed()
    quiet.loop.advance(0.4)
    assert quiet.entered() == []
    quiet.loop.advance(0.2)
    assert quiet.entered() == [500]
    quiet.loop.advance(0.5)
    assert quiet.entered() == [500, 1000]
    quiet.detector.watch(700)
    assert quiet.entered() == [500, 1000, 700], "it has been so for as long already"


@pytest.mark.linux
def test_a_change_of_modes_is_seen_before_twice_the_time(quiet: Silences) -> None:
    quiet.bench.print(5)
    quiet.loop.advance(0.03)
    quiet.loop.advance(10.0)
    changed_at = quiet.loop.now
    modes = termios.tcgetattr(quiet.bench.slave)
    modes[3] |= termios.ICANON
    termios.tcsetattr(quiet.bench.slave, termios.TCSANOW, modes)
    while len(quiet.entered()) == 1:
        quiet.loop.advance(0.1)
        assert quiet.loop.now < changed_at + 10.2
    assert quiet.entered()[1] > 10_000


@async_test
async def test_typing_does_not_keep_a_burst_open(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.sh("stty -echo; echo ready; cat >/dev/null")
        await one.printed(b"ready\r\n")
        while not one.entries("silence"):
            await one.type(b"x")


@async_test
async def test_watched_times_are_entered_once(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.open("/bin/cat")
        await host.client.watch_idle("c1", 60)
        await host.client.watch_idle("c1", 30)
        await one.until(lambda: len(one.entries("silence")) >= 2)
        assert [entry["ms"] for entry in one.entries("silence")] == [30, 60]
        # It has been quiet for longer than that: entered before the answer comes.
        answer = await host.client.watch_idle("c1", 10)
        assert [entry["ms"] for entry in one.entries("silence")] == [30, 60, 10]
        assert answer.timeline == (one.directory / "timeline.jsonl").stat().st_size


@pytest.mark.linux
@async_test
async def test_who_has_the_terminal(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.open(
            BASH, "--norc", "--noprofile", "-i", env={"PS1": "ready> ", "TERM": "dumb", "PATH": "/usr/bin:/bin"}
        )
        await one.entry("silence")
        assert (await host.client.inspect("c1")).foreground_name == "bash"
        await one.type(b"cat\r")
        await one.until(lambda: one.entries("silence")[-1]["foreground"] == "child")
        inside = await host.client.inspect("c1")
        assert inside.foreground_name == "cat"
        assert inside.foreground_pid not in (None, inside.pid)
        assert inside.icanon and inside.echo and not inside.stopped and inside.storage is None
        await one.type(b"\x1a")
        await one.until(lambda: one.entries("silence")[-1]["foreground"] == "shell")
        assert not [entry for entry in one.entries("silence") if entry["replaced"]]
        await one.type(b"kill -9 %1; exec cat -u\r")
        await one.until(lambda: one.entries("silence")[-1]["replaced"])
        assert one.entries("silence")[-1]["foreground"] == "shell"


@async_test
async def test_the_dead_are_not_live(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.sh("echo x")
        await one.ended()
        seen = await host.client.inspect("c1")
        assert (seen.live, seen.pid, seen.offset) == (False, None, 3)
        assert seen.timeline == (one.directory / "timeline.jsonl").stat().st_size


@pytest.mark.linux
def test_a_program_that_begins_to_wait_for_input_is_noticed_once(
    quiet: Silences, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`read` without a prompt, in a script that first works: nothing is printed and no mode changes."""
    terminal = quiet.bench.terminal
    reader: int | None = None
    asked: list[bool] = []

    def waits(*, patient: bool) -> int | None:
        asked.append(patient)
        return reader

    monkeypatch.setattr(terminal, "reader", waits)
    quiet.bench.print(5)
    quiet.loop.advance(0.1)
    assert asked and not any(asked)
    quiet.loop.advance(1.0)
    assert asked[-1], "by now one that waits for other things as well is accepted"
    assert wanted(terminal) == [None]
    reader = 7
    quiet.loop.advance(100.0)
    assert wanted(terminal) == [None, True]
    quiet.detector.typed()
    quiet.loop.advance(100.0)
    assert wanted(terminal) == [None, True, True], "it waits again, and has printed nothing"
    reader = None
    quiet.loop.advance(1000.0)
    assert wanted(terminal) == [None, True, True, None]


def wanted(terminal: Terminal) -> list[bool | None]:
    return [entry.get("wants_input") for entry in terminal.timeline.tail() if entry["kind"] == "silence"]

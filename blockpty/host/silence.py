"""Silence detector of one terminal.

It enters a silence 25 ms after each burst of output, at thresholds that clients watch, and once more when the terminal
reads in another way than it did. Only here the passing of time becomes a fact in the record; what silence means is not
known here.

No system reports that a program has turned echo off without printing anything, as `read -s` does. So the modes are
checked again, each time after half as long as it has been quiet: a change is seen before twice the time has gone by,
and a terminal where nothing happens is hardly ever checked. The same holds for whether a program waits for input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from blockpty.host import readers
from blockpty.host.context import TerminalContext
from blockpty.host.loop import Timer
from blockpty.host.protocol import SILENCE_MS
from blockpty.host.record import StorageFailed
from blockpty.host.workload import Workload

BURST_SECONDS = SILENCE_MS / 1000
RETRY_SECONDS = 0.25
# After so long without output or input, a program that also waits for other things than a key is taken to want one.
PATIENT_SECONDS = 0.25
# Of the time that it has been quiet, until the terminal's modes are checked again.
RECHECK_FACTOR = 0.5
# A shell that is still at work after so much silence is taken for one that waits: a child may stay for good.
LONGEST_WORK_SECONDS = 5.0


class SilenceDetector:
    """Enters the silences of one terminal."""

    def __init__(self, terminal: TerminalContext, clock: Callable[[], float]) -> None:
        self._terminal = terminal
        self._clock = clock
        self._last_output = self._last_input = self._clock()
        self._burst: Timer | None = None
        self._watch: Timer | None = None
        self._recheck_timer: Timer | None = None
        # How the terminal was read at the last silence: (canonical, echo).
        self._modes: tuple[bool, bool] | None = None
        # Whether the shell was in raw mode then, and did not wait yet.
        self._unsettled = False
        # Whether a program waited for input then, and whether the shell had its own editor on.
        self._wants_input = self._at_editor = self._shell_in_front = False
        # The program that was to read the last input, and how often it had gone to sleep when that went in.
        self._sleeper: tuple[int, int | None] | None = None
        # Whether the shell itself was at work then, as it is just before an `exec`: neither changes a mode.
        self._working = False
        # What `_is_busy` said then.
        self._busy = False
        self._workload = Workload(terminal, clock)

    def printed(self) -> None:
        """Output came. The timer is not moved for each piece: it looks again when it is due."""
        self._last_output = self._clock()
        if self._burst is None:
            self.arm()

    def typing(self, *, is_command: bool) -> None:
        """Input is about to go in: a silence that is due is noted before it, or it would seem to follow from it.

        `is_command`: the input is a whole command for the shell, which shows by its marks when it has read that.
        """
        if self._burst is not None and self._clock() >= self._last_output + BURST_SECONDS:
            self._burst.cancel()
            self._burst_due()
        if not is_command:
            self._note_sleeper()

    def typed(self) -> None:
        """Input went in."""
        self._last_input = self._clock()
        if self._modes is not None:
            # A program that waits again, and has printed nothing, is news.
            self._wants_input &= self._at_editor
            self._recheck()

    def arm(self, seconds: float = BURST_SECONDS) -> None:
        """See to it that the end of a burst is noticed."""
        if self._burst is None:
            self._burst = self._terminal.recorder.loop.after(seconds, self._burst_due)

    def _burst_due(self) -> None:
        terminal = self._terminal
        self._burst = None
        # What came while we were busy elsewhere is no silence.
        terminal.move(whole=True)
        if terminal.ended or terminal.hung:
            return
        # The echo of what was typed into the burst takes the kernel a moment: a silence just before it would end the
        # search for it. Typing on and on must not keep the burst open, though.
        since = min(max(self._last_output, self._last_input), self._last_output + BURST_SECONDS)
        left = since + BURST_SECONDS - self._clock()
        if left <= 0 and self._clock() < self._last_output + PATIENT_SECONDS and self._is_unread():
            # Answered at once, and on a busy machine the program has not woken since: it would seem to ask again.
            left = BURST_SECONDS
        if left > 0:
            self._workload.note(working=True)
            self.arm(left)
        elif not self._write(SILENCE_MS):
            self.arm(RETRY_SECONDS)

    def resume(self, silence: dict[str, Any]) -> None:
        """Go on after the entry with which a predecessor's record ends."""
        self._modes = (bool(silence.get("icanon")), bool(silence.get("echo")))
        self._wants_input = silence.get("wants_input") is True
        self._shell_in_front = silence.get("foreground") == "shell"
        self._at_editor = self._shell_in_front and not silence.get("icanon")
        self._busy = silence.get("busy") is True
        self._recheck()

    def watch(self, ms: int) -> None:
        """Have the next quiet time of `ms` (no output, no input) noted, once; at once if it has been so already."""
        terminal = self._terminal
        terminal.shell.watches = sorted({*terminal.shell.watches, ms})
        terminal.recorder.tell_keeper(terminal.shell)
        self.check()

    def check(self) -> None:
        """Note the watched times that have been reached, and wait for the next."""
        terminal = self._terminal
        terminal.move(whole=True)
        watches = terminal.shell.watches
        while watches and not terminal.ended and self._left() <= 0 and self._write(watches[0]):
            watches.pop(0)
            terminal.recorder.tell_keeper(terminal.shell)
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if watches and not terminal.ended:
            left = self._left()
            self._watch = terminal.recorder.loop.after(left if left > 0 else RETRY_SECONDS, self.check)

    def quiet_ms(self) -> int:
        """For how long nothing has come or gone in."""
        return int((self._clock() - max(self._last_output, self._last_input)) * 1000)

    def _left(self) -> float:
        """Seconds until the nearest watched time is reached, if nothing comes or goes in."""
        since = max(self._last_output, self._last_input)
        return since + self._terminal.shell.watches[0] / 1000 - self._clock()

    def _write(self, ms: int) -> bool:
        terminal = self._terminal
        if terminal.failed is not None:
            return False
        state = terminal.state()
        depth = terminal.depth(state)
        at_editor = state["foreground"] == "shell" and not state["icanon"]
        quiet = self._clock() - max(self._last_output, self._last_input)
        busy = quiet < LONGEST_WORK_SECONDS and self._is_busy(state)
        wants_input = state["reads"] is True or terminal.reader(patient=quiet >= PATIENT_SECONDS) is not None
        # What was sampled speaks of the stream's end only if nothing has come meanwhile.
        before = terminal.stream.offset
        terminal.move(whole=True)
        if terminal.stream.offset != before or terminal.ended or terminal.hung:
            return False
        fields = {"ms": ms, **state, "depth": depth}
        if busy:
            fields["busy"] = True
        if wants_input:
            fields["wants_input"] = True
        try:
            terminal.write("silence", fields)
        except StorageFailed:
            return False
        self._modes = (state["icanon"], state["echo"])
        self._unsettled, self._busy = depth is None and at_editor, busy
        self._shell_in_front = state["foreground"] == "shell"
        self._wants_input, self._at_editor = wants_input, at_editor
        self._working = self._shell_in_front and state["icanon"] and not state["replaced"]
        self._workload.note(working=self._at_work())
        self._recheck()
        return True

    def _recheck(self) -> None:
        """Look at the terminal's modes some time after this, if nothing comes or goes in before."""
        now = self._clock()
        seconds = max(BURST_SECONDS, (now - max(self._last_output, self._last_input)) * RECHECK_FACTOR)
        if self._recheck_timer is not None:
            if self._recheck_timer.when <= now + seconds:
                return  # it looks sooner, and sets the next one
            self._recheck_timer.cancel()
        self._recheck_timer = self._terminal.recorder.loop.after(seconds, self._recheck_due)

    def _recheck_due(self) -> None:
        terminal = self._terminal
        self._recheck_timer = None
        terminal.move(whole=True)
        if terminal.ended or terminal.hung or self._burst is not None:
            return  # the end of that burst is a silence, and looks again
        quiet = self._clock() - max(self._last_output, self._last_input)
        reader = terminal.reader(patient=quiet >= PATIENT_SECONDS) if quiet >= BURST_SECONDS else None
        changed = terminal.modes() != self._modes
        changed = changed or (self._unsettled and terminal.depth(terminal.state()) is not None)
        changed = changed or (
            self._busy and (quiet >= LONGEST_WORK_SECONDS or not self._is_busy(terminal.state()))
        )
        changed = changed or (self._working and bool(terminal.replaced()))
        changed = changed or (
            quiet >= BURST_SECONDS
            and (reader is not None) is not self._wants_input
            # The system hands input on in a thread of its own, which a busy machine may run later than this: a program
            # that has not woken since has not read, and does not wait again. Half a line does not wake it.
            and not (quiet < PATIENT_SECONDS and self._sleeps_on(reader))
        )
        if quiet < BURST_SECONDS or not changed or not self._write(int(quiet * 1000)):
            self._workload.note(working=self._at_work())
            self._recheck()

    def _at_work(self) -> bool:
        """Whether something may use the processor: a program that does not wait for a key, or a job of the shell."""
        if self._wants_input or (self._at_editor and not self._busy):
            return self._shell_in_front and self._terminal.has_jobs()
        return True

    def _is_busy(self, state: Mapping[str, Any]) -> bool:
        """Whether what the terminal's state seems to tell is not so yet: who has it works, or has not read its input.

        That is the shell in raw mode, a program that seems to ask for a password, and one that has replaced the shell,
        which may be about to end. False for all others.
        """
        shell_in_front = state["foreground"] == "shell"
        replaced = shell_in_front and bool(state["replaced"])
        if shell_in_front and not state["icanon"] and not replaced:
            return self._terminal.shell_works() or self._sleeps_on(self._terminal.shell_pid)
        seems_to_ask = state["icanon"] and not state["echo"] and state["reads"] is not True
        return (seems_to_ask or replaced) and self._terminal.foreground_runs()

    def _note_sleeper(self) -> None:
        terminal = self._terminal
        if terminal.at_editor():
            reader: int | None = terminal.shell_pid
        elif self._wants_input or self._burst is not None:
            reader = terminal.reader(patient=False)
        else:
            return
        # One that was woken by earlier input and did not sleep since is still the one.
        if reader is not None:
            self._sleeper = (reader, readers.sleeps(reader))

    def _is_unread(self) -> bool:
        """Whether nothing was printed since the last input, and the program that was to read it has not woken."""
        return self._last_output < self._last_input and self._sleeper is not None and self._sleeps_on(self._sleeper[0])

    def _sleeps_on(self, reader: int | None) -> bool:
        """Whether a program has slept since before the last input went in; False where that is unknown."""
        if reader is None or self._sleeper is None or self._sleeper[0] != reader:
            return False
        return self._sleeper[1] is not None and self._sleeper[1] == readers.sleeps(reader)

    def end(self) -> None:
        for timer in (self._burst, self._watch, self._recheck_timer):
            if timer is not None:
                timer.cancel()

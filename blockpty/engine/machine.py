"""The machine: stream bytes and timeline entries in, events and signals out.

Rules of this file: it is total (no bytes and no entries raise), chunk-invariant (only bytes and the places of the
entries count), bounded (it keeps no output), and pure: ids are counted, times come from entries, the nonce from the
`spawn` entry.

`feed` and `apply` are called in the order of the record: bytes up to an entry's offset, then the entry. What a mark may
do is decided in two steps: `authenticate` says whether it is accepted, `states.TRANSITIONS` says what it means now.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from typing import Any, Final

from blockpty.engine.alternate import no_switch
from blockpty.engine.authentication import Shell, is_end_of_inner, level_of
from blockpty.engine.blocks import BlockBuilder
from blockpty.engine.hints import MAX_HINTS
from blockpty.engine.loading import (
    has_prologue,
    is_bare,
    is_keyed,
    is_obey_key,
    is_unmarked,
    is_wrong,
    owes_more,
    was_loaded,
)
from blockpty.engine.machine_state import MachineState, asks_password
from blockpty.engine.marks import Mark, joined
from blockpty.engine.outcome import GAPS, REDRAWN, lacks_hooks, outcome_of, seam_of, source_of
from blockpty.engine.records import (
    control_of,
    exit_number,
    input_bytes,
    is_answer,
    nonce_of,
    note_request,
    number,
    word,
)
from blockpty.engine.scanner import Scanner, StreamToken
from blockpty.engine.states import TRANSITIONS, Action, ShellState, Stimulus
from blockpty.engine.submission_echo import ECHO_WINDOW
from blockpty.model.entries import DAMAGED, Entry
from blockpty.model.events import ENVELOPE, Event, Signal

# A delta is cut at fixed stream offsets, at silences and now and then by recorded time: never by the reader's chunks.
DELTA_BYTES: Final = 64 * 1024
DELTA_MS: Final = 100
# A path of 4,096 bytes, all of them escaped, in pieces of 300.
MAX_CWD_PIECES: Final = 42

# How much of the beginning of a loaded line must be seen for its line end to be known; no tab, no wrapping in it.
SHOWN_HEAD: Final = 3
# The same of a line for which no BEGIN comes, and which nothing else may be taken for.
UNMARKED_HEAD: Final = 16
# How much of the end of a submitted line must be seen in its echo.
SHOWN_END: Final = 4

# The status of a line that a Ctrl-C at the prompt has taken away.
SIGINT_STATUS: Final = 130

# Where BEGIN is not written, a command that runs is still `SUBMITTED`.
_UNDER_WAY: Final = (ShellState.SUBMITTED, ShellState.RUNNING)


class Machine:
    """Folds the record of one conversation into events (to be written) and signals (for waits).

    Give it a state from `snapshot()` to go on from there: feed the stream from `state.classified`.
    """

    def __init__(self, state: MachineState | None = None) -> None:
        self.state = state.copy() if state is not None else MachineState()
        self._scanner = Scanner(self.state.classified)
        # What came behind what is classified.
        self._held = b""
        self._blocks = BlockBuilder(self.state)
        self._emit = self._blocks.emit

    @property
    def classified(self) -> int:
        """Offset up to which bytes are known to be text, mark or hint; at most 512 bytes behind what was fed."""
        return self.state.classified

    def snapshot(self) -> MachineState:
        """Return a copy of the state; it does not share anything with the machine."""
        return self.state.copy()

    def feed(self, data: bytes) -> tuple[list[Event], list[Signal]]:
        """Take the next bytes of the stream."""
        self._scanner.hints = self.state.hints <= MAX_HINTS
        before = self.state.classified
        text = self._output if self._scanner.holds or self.state.screen.may_switch(data) else self._text
        for token in self._scanner.feed(data):
            if token.mark is None:
                text(token)
            else:
                if self.state.screen.partial:
                    self.state.screen.interrupt()
                self._mark(token, token.mark)
            self.state.classified = token.end
        count = self.state.classified - before
        self._held += data
        self.state.region.keep_tail(self._held, count)
        self._held = self._held[count:]
        return self._blocks.taken()

    def apply(self, entry: Entry) -> tuple[list[Event], list[Signal]]:
        """Take the next timeline entry; the bytes before its offset must have been fed."""
        if self.state.echo.opening is not None and not _passes(entry, self.state.echo.prologue):
            self._open_loaded(self.state.classified)
        self.state.ts = max(self.state.ts, entry.ts)
        handler = _ENTRIES.get(entry.kind)
        if handler is not None:
            handler(self, entry, entry.fields)
        return self._blocks.taken()

    # Tokens

    def _output(self, token: StreamToken) -> None:
        """Text that may switch screens: events come in the order of the bytes."""
        if not self.state.screen.partial and no_switch(self._scanner.bytes_of(token, token.end - token.begin)):
            self._text(token)
            return
        for part, shown in self.state.screen.parts(token, self._scanner):
            self._text(part)
            self.state.classified = part.end
            if shown is not None and self.state.pictures:
                self._emit("alt_screen", part.end, on=shown)

    def _text(self, token: StreamToken) -> None:
        state = self.state
        if token.malformed:
            self._emit("anomaly", token.begin, reason="malformed_mark", span=[token.begin, token.end])
            if token.nameless:
                self._blocks.marked()
        elif token.hint is not None and state.block is not None:
            self._blocks.hinted(token.begin, token.end, token.hint)
        if state.echo.opening is not None:
            end = state.echo.note_prologue(token, self._scanner, bare=state.echo.opening[2])
            if end is not None:
                self._open_loaded(end)
        if state.unattributed.settled is not None and state.background is None:
            self._background(token)
        submitted = state.shell is ShellState.SUBMITTED or (state.submission is not None and self._is_awaited())
        if submitted and state.echo.opening is None and state.echo.note_output(token, self._scanner):
            if state.current.prompt_only:
                self._check_echo(token)
            elif is_unmarked(state.submission):
                self._check_line()
        if state.region.delta_begin is not None:
            boundary = (state.region.delta_begin // DELTA_BYTES + 1) * DELTA_BYTES
            while boundary <= token.end:
                self._blocks.cut(boundary)
                boundary += DELTA_BYTES
        elif not submitted and state.current.name == "bash":
            state.line.note_drawn(token, self._scanner, state.shell)
        if state.unread.fed and state.shell is ShellState.IDLE:
            state.unread.note_output(token, self._scanner)
        if state.inputs and token.end - state.inputs[0][0] > ECHO_WINDOW:
            state.inputs = [item for item in state.inputs if token.end - item[0] <= ECHO_WINDOW]

    def _open_loaded(self, end: int) -> None:
        """Open the block of a loaded line, whose shell has printed its own up to `end`."""
        self._step(Stimulus.BEGIN, self.state.echo.end_prologue(), end, _LOADED)

    def _background(self, token: StreamToken) -> None:
        """Take text that no command of ours printed. Without a line end it is as likely the shell that draws."""
        after = self.state.unattributed.first_line(token, self._scanner, self.state.size[1])
        begin = self.state.unattributed.settled
        if after > 0 and begin is not None:
            self.state.line.discard()
            self._blocks.open_background(begin, after)

    def _flush_unattributed(self) -> None:
        """Without a shell nothing draws: what has come since it ended is output, with or without a line end."""
        state = self.state
        begin = state.unattributed.settled if state.shell is ShellState.EXITED and state.background is None else None
        if begin is not None and state.classified > begin:
            self._blocks.open_background(begin, state.classified)

    def _mark(self, token: StreamToken, mark: Mark) -> None:
        if mark.kind == "__SEAM__":
            self._seam(token, mark)
            return
        self._mark_redrawn()
        offered = self.state.offered
        if offered is not None and offered["nonce"] and mark.kind == "__HELLO__" and mark.nonce == offered["nonce"]:
            # A shell that we did not start has taken the hooks that were offered to it.
            self.state.offered = None
            self._enter(token.begin, offered)
        if self.state.outer and mark.nonce != self.state.current.nonce:
            level = level_of(self.state.outer, mark, self.state.owed)
            if level is not None:
                self._return_to(token.begin, mark, level)
            elif is_end_of_inner(self.state.outer, mark):
                # zsh says so before it says how its command ended, which is when the inner shell is left.
                self._out_end(token)
                return
        verdict = self.state.current.authenticate(mark, self.state.shell, self.state.owed)
        if isinstance(verdict, str):
            self._emit("spoofed_mark", token.begin, kind=mark.kind, reason=verdict, span=[token.begin, token.end])
            if verdict == "instance":
                self._blocks.marked()
            self._text(token)
            return
        if self.state.unattributed.settled is not None or self.state.background is not None:
            self._blocks.close_background()
        if self.state.echo.opening is not None:
            self._open_loaded(token.begin)
        # Offsets are counted in what came back, so a mark in it must count as well.
        submitted = self.state.shell is ShellState.SUBMITTED or self._is_awaited()
        noted = submitted and self.state.echo.note_output(token, self._scanner)
        if noted and self.state.current.prompt_only:
            self._check_echo(token)
        if verdict is None:
            self._take(token, mark)
        else:
            self._move(token, mark, verdict)

    def _seam(self, token: StreamToken, mark: Mark) -> None:
        """Take a mark of the bridge: a tmux pane is redrawn from here on, or has been redrawn.

        The first time, all that it shows becomes a block; behind ssh the shell in it still has to get its hooks.
        """
        state = self.state
        seam = seam_of(state.source, state.seam, mark)
        if isinstance(seam, str):
            self._emit("spoofed_mark", token.begin, kind=mark.kind, reason=seam, span=[token.begin, token.end])
            self._text(token)
            return
        if seam["drawn"]:
            self._mark_redrawn()
        state.seam = seam
        if seam["drawn"]:
            return
        if seam["reason"] in GAPS:
            state.current.note_gap()
        self._emit("seam", token.end, reason=seam["reason"], cols=seam["cols"], rows=seam["rows"])
        is_pane = state.source is not None and state.source["kind"] == "tmux" and state.current.nonce == mark.nonce
        if is_pane and state.shell is ShellState.STARTING:
            self._step(Stimulus.PROGRAM, token.end, token.end, None)
        self._mark_redrawn()

    def _mark_redrawn(self) -> None:
        """Mark the open block where its pane is being redrawn: the picture is among its output, or in place of it."""
        state = self.state
        if state.seam is None or state.seam["drawn"] or state.block is None or state.block.degraded is not None:
            return
        self._blocks.degrade(REDRAWN)

    def _take(self, token: StreamToken, mark: Mark) -> None:
        """Take what an accepted mark says that moves nothing."""
        if mark.kind == "__OUT_END__":
            self._out_end(token)
        elif mark.kind == "__CWD__":
            self.state.cwd_pieces, path = joined(self.state.cwd_pieces, mark, MAX_CWD_PIECES)
            if path is not None:
                self.state.current.note_cwd(path)
        elif mark.kind == "__CMD__":
            self.state.line.add_report(mark)
        elif mark.kind == "__LINE__" and self.state.submission is None:
            self.state.line.note_entered(self.state.current, self.state.size[0])
        elif mark.kind == "__PS2__":
            self.state.incomplete = True
            own = is_keyed(self.state.submission) and was_loaded(mark)
            if self.state.shell is ShellState.IDLE or (self.state.shell is ShellState.EDITING and own):
                # A text was read that came before this prompt: ours, or what was typed ahead.
                self._step(Stimulus.LOADED if own else Stimulus.TYPED, token.begin, token.end, None)
            self.state.echo.forget_line_end()
            self.state.line.note_continuation(self.state.size[0])
        elif mark.kind == "__HELLO__":
            self.state.current.note_hello(mark)

    def _move(self, token: StreamToken, mark: Mark, verdict: Stimulus) -> None:
        """Take a mark that moves the shell on."""
        prompt = mark.prompt if verdict in (Stimulus.PROMPT, Stimulus.REDRAW) else None
        if prompt is not None:
            self.state.owed = max(0, self.state.owed - (prompt - self.state.current.prompt))
        ran = self.state.current.note_accepted(mark, prompt=prompt)
        # fish abandons a line without an END.
        if verdict is Stimulus.PROMPT and not ran and self.state.current.name == "fish" and self._is_submitted_by_key():
            # Ours may still be loaded.
            self._step(Stimulus.OTHER_END, token.begin, token.begin, mark)
        elif verdict is Stimulus.PROMPT and not ran and self.state.shell is ShellState.SUBMITTED and self._is_cut():
            self._step(Stimulus.END, token.begin, token.begin, mark)
        if verdict is Stimulus.BEGIN and is_wrong(mark) and self.state.submission is not None:
            self.state.submission = {**self.state.submission, "incomplete": True}
        if verdict is Stimulus.BEGIN and has_prologue(mark, self.state.current.name):
            self.state.echo.await_prologue((token.begin, token.end, is_bare(mark)))
            return
        if verdict is Stimulus.REDRAW:
            self.state.echo.forget_line_end()
        if verdict is Stimulus.END and self._is_submitted_by_key() and self._is_of_other_line(mark):
            verdict = Stimulus.OTHER_END
        unmarked = is_keyed(self.state.submission) and is_unmarked(self.state.submission)
        if verdict is Stimulus.LATE_END and unmarked and not was_loaded(mark):
            verdict = Stimulus.OTHER_END
        if verdict is Stimulus.END and was_loaded(mark) and self._is_awaited():
            # It ran, and its echo was not recognised.
            self._step(Stimulus.LOADED, token.begin, token.begin, None)
            verdict = Stimulus.LATE_END
        self._step(verdict, token.begin, token.end, mark)
        if verdict is Stimulus.PROMPT and unmarked and self.state.submission is not None:
            # Ours may be loaded behind the prompt of another line, and only its echo will tell.
            self.state.echo.start(token.end)

    def _is_cut(self) -> bool:
        """Whether only a part of what was submitted went in, so that it cannot run."""
        return bool((self.state.submission or {}).get("cut"))

    def _is_awaited(self) -> bool:
        """Whether a command for which no BEGIN comes may still be loaded behind the prompt of another line."""
        at_prompt = self.state.shell in (ShellState.IDLE, ShellState.EDITING)
        return at_prompt and is_keyed(self.state.submission) and is_unmarked(self.state.submission)

    def _is_submitted_by_key(self) -> bool:
        return self.state.shell is ShellState.SUBMITTED and is_keyed(self.state.submission)

    def _is_of_other_line(self, mark: Mark) -> bool:
        """Tell the END of a line that never ran and is not ours: a person entered it, or ours stopped at PS2."""
        state = self.state
        if state.incomplete and was_loaded(mark):
            state.submission = None
        if state.submission is not None and was_loaded(mark):
            return False
        state.echo.note_output_end(None)
        return True

    def _check_echo(self, token: StreamToken) -> None:
        """Begin the block of a line that no BEGIN will announce, once its echo is over."""
        if self.state.echo.ends_at(self.state.submission) is not None:
            self._step(Stimulus.ECHOED, token.begin, token.end, None)

    def _check_line(self) -> None:
        """Begin the block of a staged line of which the shell has said that no BEGIN comes, once its output begins."""
        begin = self.state.echo.passed_line(self.state.submission)
        if begin is not None:
            if self._is_awaited():
                self._step(Stimulus.LOADED, begin, begin, None)
            self._step(Stimulus.ECHOED, begin, begin, None)

    def _entered(self) -> str:
        """Return the text of the command that begins now, and forget the command line."""
        return self.state.line.entered(self.state.current, self.state.size[0])

    def _is_other(self, mark: Mark | None) -> bool:
        """Whether the line that begins now is not the one that was submitted.

        A person may press Enter, or a program put input into its own terminal (TIOCSTI), just before ours. A line that
        our key loaded is ours; of one that was typed, the shell has named another.
        """
        if is_keyed(self.state.submission):
            return mark is None or not was_loaded(mark)
        return self.state.submission is not None and self.state.line.reported is not None

    def _is_unlike(self) -> bool:
        """Whether bash has drawn a line that does not hold the end of what was submitted; it names no command.

        Not sure enough to wait for another BEGIN: with echo off, what the background prints is all that is drawn.
        """
        state = self.state
        end = str((state.submission or {}).get("line", "")).rstrip("\r\n")[-SHOWN_END:]
        if state.current.name != "bash" or is_keyed(state.submission) or not end or len(state.echo.data) >= ECHO_WINDOW:
            return False
        return state.line.ends_unlike(end, state.echo.data, state.size[0])

    def _out_end(self, token: StreamToken) -> None:
        state = self.state
        if state.current.prompt_only and state.shell is ShellState.SUBMITTED:
            # The echo was not recognised; whatever it was, the output is over.
            self._step(Stimulus.ECHOED, token.begin, token.begin, None)
        if state.shell is ShellState.SUBMITTED and is_keyed(state.submission):
            # What zsh says about a line that it does not run is over.
            state.echo.note_output_end(token.begin)
        if state.shell is ShellState.RUNNING and state.echo.out_end is None:
            self._blocks.end_region(token.begin)
            state.echo.note_output_end(token.begin)

    # Timeline entries

    def _spawn(self, entry: Entry, fields: Mapping[str, Any]) -> None:
        again = self.state.instance > 0
        self._flush()
        self._flush_unattributed()
        self._blocks.close_background()
        self._step(Stimulus.SPAWN, entry.offset, entry.offset, None)
        state = self.state
        state.instance = number(fields, "instance", state.instance + 1)
        state.pid, state.outer, name = str(fields.get("pid", "")), [], str(fields.get("shell", ""))
        state.hooked, state.source, state.ending = bool(fields.get("hooks", True)), source_of(fields), False
        state.seam = state.offered = None
        doubt = None if state.hooked else f"no hooks for {name}"
        cwd, cwd_b64 = state.current.cwd, state.current.cwd_b64
        if state.source is not None:
            doubt = lacks_hooks(state.source)
            # Of a program the directory that it was started in is known, of a shell elsewhere none.
            cwd = word(fields, "cwd") if state.source["kind"] == "exec" else None
            path = cwd.encode("utf-8", "replace") if cwd is not None else b""
            cwd_b64 = binascii.b2a_base64(path, newline=False).decode("ascii") if path else None
        state.current = Shell(
            nonce_of(fields), state.pid, name=name, cwd=cwd, cwd_b64=cwd_b64, integrity_reason=doubt
        )  # fmt: skip
        state.boot, state.system = word(fields, "boot") or "", word(fields, "system") or "linux"
        if state.screen.to_main() and state.pictures:
            self._emit("alt_screen", entry.offset, on=False)
        state.size = (number(fields, "cols", 80), number(fields, "rows", 24))
        state.line.forget()
        state.exit, state.eof, state.tty, state.inputs, state.prompt_depth = None, False, None, [], None
        state.incomplete, state.hooks_lost = False, False
        if again:
            self._emit("reset", entry.offset, instance=state.instance, pid=fields.get("pid"))
        self._blocks.signals.append(Signal("spawn", entry.offset))
        if state.source is not None and state.source["kind"] == "exec":
            self._step(Stimulus.PROGRAM, entry.offset, entry.offset, None)

    def _tick(self, entry: Entry, fields: Mapping[str, Any]) -> None:
        if self.state.region.delta_begin is not None and self.state.ts - self.state.region.delta_ts >= DELTA_MS:
            self._blocks.cut(self.state.classified)
        self._blocks.signals.append(Signal("tick", entry.offset, self.state.ts))

    def _silence(self, entry: Entry, fields: Mapping[str, Any]) -> None:
        state = self.state
        was_settled = state.unattributed.settled is not None
        if was_settled:
            self._flush_unattributed()
            self._blocks.close_background()
        elif state.region.delta_begin is not None:
            self._blocks.cut(state.classified)
        state.tty = {name: fields.get(name) for name in ("icanon", "echo", "foreground", "replaced", "reads", "busy")}
        state.tty["wants_input"], state.tty["at"] = fields.get("wants_input") is True, entry.offset
        is_busy = fields.get("busy") is True
        unread = state.unread.is_shown()
        if state.shell is ShellState.IDLE and not is_busy:
            state.unread.forget()
        abandoned = bool(state.inputs) and state.inputs[-1][1].endswith(b"\x03")
        # A busy shell has not answered Ctrl-C yet. One that the terminal echoes is forgotten with its echo.
        unanswered = is_busy and abandoned and not state.inputs[-1][2]
        state.inputs = state.inputs[-1:] if unanswered else []
        # fish is in raw mode long before it draws its prompt, and answers every line that it abandons with a prompt:
        # while there is none, it does not read yet, or Ctrl-C was lost and the text is still there.
        draws_late = state.current.name == "fish"
        here = "child" if state.outer else "shell"
        at_editor = not draws_late and fields.get("icanon") is False and fields.get("foreground") == here
        # zsh is in raw mode while it computes its prompt, which may run programs.
        at_editor = at_editor and not is_busy
        # The modes of our terminal are those of the way to a shell that is elsewhere: they do not say where that is.
        at_editor = at_editor and (state.source is None or state.shell is ShellState.EDITING)
        lost = _lost_hooks(state, fields)
        if lost is not None:
            state.hooks_lost = True
            state.current.note_doubt(f"hooks_lost: {lost}")
            self._emit("anomaly", entry.offset, reason="hooks_lost")
            self._blocks.signals.append(Signal("hooks_lost", entry.offset))
        elif at_editor and not state.hooks_lost and (
            state.shell is ShellState.RETURNING or (state.shell is ShellState.EDITING and abandoned and not state.dirty)
        ):
            # After Ctrl-C, bash that had not read a key yet (5.2) goes on with its line, and draws no prompt for it.
            state.owed += 1
            self._step(Stimulus.SETTLED, entry.offset, entry.offset, None)
        elif unread:
            state.dirty = True
            self._step(Stimulus.TYPED, entry.offset, entry.offset, None)
        if state.shell is ShellState.IDLE and not is_busy:
            # Typed behind another line: that line's program has read it.
            state.submission = None
        at = {
            "ms": number(fields, "ms", 0), "ts": state.ts, "password": asks_password(state.tty),
            "incomplete": state.wants_more(state.tty), "input": state.wants_input(),
        }  # fmt: skip
        self._blocks.signals.append(Signal("silence", entry.offset, at))
        begins = state.echo.opening is not None or state.submission is not None
        # A busy shell has not answered a signal yet, or draws on.
        draws = begins or (is_busy and not was_settled)
        if (state.region.kind == "idle" and not draws) or state.shell is ShellState.EXITED:
            # The prompt is drawn: what comes from here on is background output.
            state.unattributed.start(state.classified)

    def _input(self, entry: Entry, fields: Mapping[str, Any]) -> None:
        self._blocks.close_background()
        self.state.region.forget_tail()
        shown: dict[str, Any] = {"author": fields.get("author", "agent")}
        if (principal := word(fields, "principal")) is not None:
            shown["principal"] = principal
        if fields.get("redacted"):
            shown["redacted"] = True
            self.state.line.hide()
        else:
            shown["bytes"] = fields.get("bytes", 0)
        submit = fields.get("submit")
        submit = submit if isinstance(submit, dict) else None
        if submit is not None:
            shown["submit"] = True
        self._emit("input", entry.offset, **shown)
        if submit is not None:
            if self.state.unread.fed:
                self.state.unread.forget_typed()
            # What was sampled at the prompt says nothing about the program.
            self.state.tty = None
            self.state.submission = {
                **submit,
                "ts": entry.ts,
                "author": fields.get("author", "agent"),
                "line": submit.get("line", fields.get("data", "")),
                "shown": str(submit.get("line", submit.get("cmd", "")))[: _head(submit)],
            }
            self._step(Stimulus.SUBMIT, entry.offset, entry.offset, None)
            return
        data = input_bytes(fields)
        if is_answer(fields.get("author"), data) or is_obey_key(fields.get("author"), data):
            return
        if self.state.region.kind == "idle":
            self._blocks.region(None, entry.offset)
        self.state.tty = None
        if self.state.shell in (ShellState.IDLE, ShellState.EDITING):
            self.state.dirty = self.state.dirty or bool(data.strip(b"\x03"))
        if self.state.shell in (ShellState.RUNNING, ShellState.RETURNING):
            self.state.unread.note_input(data)
        if b"\x03" in data and self.state.shell in _UNDER_WAY:
            self.state.interrupted = True
        if data and sum(len(item[1]) for item in self.state.inputs) + len(data) <= 2 * ECHO_WINDOW:
            self.state.inputs.append((entry.offset, data, bool(fields.get("echo")), bool(fields.get("icanon"))))
        self._step(Stimulus.TYPED, entry.offset, entry.offset, None)
        self._blocks.signals.append(Signal("input", entry.offset, entry))

    def _input_cut(self, entry: Entry, fields: Mapping[str, Any]) -> None:
        submission = self.state.submission
        if submission is not None and submission.get("request") == fields.get("req"):
            self.state.submission = {**submission, "cut": True}
        self._emit("anomaly", entry.offset, reason="input_cut", accepted=fields.get("accepted"))

    def _resize(self, entry: Entry, fields: Mapping[str, Any]) -> None:
        # The line editor draws the prompt again.
        self._blocks.close_background()
        self.state.size = (number(fields, "cols", 80), number(fields, "rows", 24))
        self._emit("resize", entry.offset, cols=self.state.size[0], rows=self.state.size[1])

    def _note(self, entry: Entry, fields: Mapping[str, Any]) -> None:
        note = fields.get("note")
        if not isinstance(note, dict):
            return
        kind = word(note, "type")
        if kind == "interrupt":
            self.state.interrupted = self.state.shell in _UNDER_WAY
            # At a prompt the line editor draws it again.
            self._blocks.close_background()
        elif kind in ("owner", "screen_snapshot"):
            self._blocks.noted(entry.offset, note)
        elif kind == "lost":
            self._ended(entry, {"status": None, "signal": None, "lost": word(note, "reason") or "host_gone"})
        elif kind == "enter":
            self._enter(entry.offset, note)
        elif kind == "leave":
            self._abandon_entry(entry, note)
        elif kind == "no_prompt":
            if self.state.shell is ShellState.STARTING and self.state.current.integrity_reason is None:
                self.state.current.note_doubt("no_prompt: the shell has not shown its first prompt")
        elif kind in ("no_hooks", "lifecycle", "offer"):
            self._note_of_source(entry.offset, note)
        elif kind == "imported":
            self._flush()
            self._blocks.take_imported(entry, note)
        elif kind in _SHOWN_NOTES:
            if kind == "control":
                self.state.control = control_of(note, entry.ts)
            elif kind in _CONTROL_NOTES:
                note_request(self.state.requests, note)
            elif kind == "wait_end":
                self.state.wait_cursor = number(note, "to_cursor", self.state.wait_cursor)
            shown = {key: value for key, value in note.items() if key not in ENVELOPE}
            self._emit(kind, entry.offset, **shown)

    def _note_of_source(self, offset: int, note: Mapping[str, Any]) -> None:
        """Take a note that means something only where the terminal shows no shell of this machine."""
        kind = note["type"]
        if kind == "no_hooks":
            self._step(Stimulus.PROGRAM, offset, offset, None)
        elif kind == "offer":
            self.state.offered = {"nonce": nonce_of(note), "shell": word(note, "shell") or ""}
        else:
            self.state.ending = self.state.source is not None

    def _enter(self, offset: int, note: Mapping[str, Any]) -> None:
        """Expect our hooks in another shell: what replaced the one that had them, or what runs inside of it."""
        state = self.state
        nested = bool(note.get("nested"))
        self._blocks.close_background()
        self._step(Stimulus.ENTER, offset, offset, None)
        if nested:
            state.outer.append(state.current)
        else:
            state.prompt_depth = None
        before, name = state.current, str(note.get("shell", ""))
        state.current = Shell(nonce_of(note), name=name, cwd=before.cwd, cwd_b64=before.cwd_b64)
        state.hooks_lost = state.incomplete = False
        self._emit("shell_entered", offset, shell=state.current.name, level=len(state.outer))
        self._blocks.signals.append(Signal("spawn", offset))

    def _abandon_entry(self, entry: Entry, note: Mapping[str, Any]) -> None:
        """Our hooks did not show in the other shell: expect the marks of the one before again."""
        state = self.state
        if state.shell is not ShellState.STARTING or nonce_of(note) != state.current.nonce:
            return
        if state.outer:
            self._return_to(entry.offset, None, len(state.outer) - 1)
        elif state.source is not None:
            state.current = Shell(name=state.current.name, integrity_reason=lacks_hooks(state.source))
            self._step(Stimulus.PROGRAM, entry.offset, entry.offset, None)
        else:
            self._step(Stimulus.ENTRY_ABANDONED, entry.offset, entry.offset, None)
            state.hooks_lost = True
            state.current.note_doubt("hooks_lost: the shell was replaced, and did not take our hooks")

    def _return_to(self, offset: int, mark: Mark | None, level: int) -> None:
        """The shell that was entered has ended, or never took our hooks: a shell outside of it speaks again."""
        state = self.state
        if state.echo.opening is not None:
            self._open_loaded(offset)
        self._step(Stimulus.LEFT, offset, offset, mark)
        state.current = state.outer[level]
        del state.outer[level:]
        state.incomplete, state.hooks_lost = False, False
        self._emit("shell_left", offset, shell=state.current.name, level=level)

    def _exit(self, entry: Entry, fields: Mapping[str, Any]) -> None:
        how = {"status": exit_number(fields), "signal": word(fields, "signal")}
        source = self.state.source
        if source is not None:
            pane = source["kind"] == "tmux" or self.state.seam is not None
            how = outcome_of(source, how, pane=pane, ending=self.state.ending)
        self._ended(entry, how)

    def _ended(self, entry: Entry, how: dict[str, Any]) -> None:
        self._flush()
        self._blocks.close_background()
        self.state.exit = how
        self._step(Stimulus.EXIT, entry.offset, entry.offset, None)
        lost = {"lost": True, "reason": how["lost"]} if how.get("lost") else {}
        lost |= {"reason": how["reason"]} if how.get("reason") else {}
        self._emit("shell_exit", entry.offset, exit_status=how["status"], signal=how["signal"], **lost)
        self._blocks.signals.append(Signal("exit", entry.offset))
        self.state.unattributed.start(self.state.classified)

    def _eof(self, entry: Entry, fields: Mapping[str, Any]) -> None:
        self._flush()
        self._flush_unattributed()
        self._blocks.close_background()
        self.state.eof = True
        self._emit("eof", entry.offset)
        self._blocks.signals.append(Signal("eof", entry.offset))

    def _storage(self, entry: Entry, fields: Mapping[str, Any]) -> None:
        self._emit("storage", entry.offset, **{key: value for key, value in fields.items() if key not in ENVELOPE})

    def _damaged(self, entry: Entry, fields: Mapping[str, Any]) -> None:
        self._emit("anomaly", entry.offset, reason="damaged", file="timeline.jsonl", bytes=fields["bytes"])

    def _flush(self) -> None:
        """Take held bytes as text: nothing of this shell can follow them."""
        before = self.state.classified
        for token in self._scanner.flush():
            self._output(token)
            self.state.classified = token.end
        count = self.state.classified - before
        self.state.region.keep_tail(self._held, count)
        self._held = self._held[count:]

    # Actions

    # One branch an action; split, the table would be read in two places.
    def _step(self, stimulus: Stimulus, begin: int, end: int, mark: Mark | None) -> None:  # noqa: C901
        found = TRANSITIONS.get((self.state.shell, stimulus))
        if found is None:
            self._emit("anomaly", begin, reason=f"unexpected_{stimulus.value}", state=self.state.shell.value)
            return
        after, action = found
        status = mark.number("x") if mark is not None and "x" in mark.fields else None
        if action is Action.START:
            if self.state.submission is not None and self.state.shell is ShellState.SUBMITTED:
                self._blocks.open_unseen("begin_lost")
            self._blocks.close(begin, state="lost")
        elif action is Action.PEND:
            self._blocks.region(None, begin)
            self.state.echo.start(self.state.classified)
            self.state.incomplete = False
            self.state.wait_cursor = begin
        elif action in (Action.OPEN, Action.OPEN_FOREIGN):
            self.state.line.note_begin(mark)
            other, doubt = self._is_other(mark), self._is_unlike()
            self._blocks.open(end, self._entered(), "other_input" if doubt else None, other=other)
        elif action is Action.OPEN_ECHOED:
            self._blocks.open_unseen("begin_lost", end)
        elif action is Action.AWAIT_OWN:
            self.state.echo.forget_line_end()
        elif action is Action.AWAIT_END:
            self._blocks.region(None, begin)
        elif action in (Action.ADD_PART, Action.REOPEN):
            self._blocks.add_part(begin, end, self._entered())
        elif action is Action.END_OUTPUT:
            self._blocks.end_output(begin, status)
        elif action is Action.END_UNSEEN:
            self._blocks.open_unseen("begin_lost")
            self._blocks.end_output(begin, status)
        elif action is Action.CANCEL:
            out_end = self.state.echo.out_end
            status = SIGINT_STATUS if self._is_cut() else status
            self._blocks.open_rejected(begin)
            if out_end is not None:
                self._blocks.end_region(out_end)
                self.state.echo.note_output_end(out_end)
            self._blocks.end_output(begin, status)
            self._blocks.note_not_run("cancelled" if status == SIGINT_STATUS else "rejected")
        elif action is Action.CLOSE_UNSEEN:
            out_end = self.state.echo.out_end
            self._blocks.open_unseen("hooks_lost", out_end)
            if out_end is not None:
                # Only END is missing behind a line that was not run.
                self._blocks.end_region(out_end)
                self.state.echo.note_output_end(out_end)
            self.state.current.note_doubt(
                self.state.current.prompt_only_reason
                or (
                    "end_lost: the shell does not write END any more"
                    if out_end is not None
                    else "hooks_lost: BEGIN and END are not written any more"
                )
            )
            self._blocks.close(begin, status=status)
        elif action is Action.CLOSE:
            block = self.state.block
            if block is not None and block.ended_at is None and not self.state.current.prompt_only:
                # The prompt's own text stands in front of its mark and is now part of the output.
                self._blocks.degrade("end_lost")
                self.state.current.note_doubt("end_lost: the shell does not write END any more")
            self._blocks.close(begin, status=status)
        elif action is Action.CLOSE_DEGRADED:
            self.state.current.note_doubt("prompt_lost: the prompt's mark does not reach the terminal")
            self._blocks.close(begin)
        elif action is Action.EXIT:
            self._blocks.exit_block(begin)
        elif action is Action.ENTER:
            self._blocks.leave_block(begin)
        elif action is Action.LEFT:
            self._blocks.end_block(begin, status)
        elif action is Action.OPEN_PROGRAM:
            self._blocks.open_program(begin)
            self.state.wait_cursor = begin
        self.state.shell = after
        if stimulus in _DRAWING:
            self.state.line.note_prompt(stimulus, self.state.size[0])
        if after is ShellState.IDLE and stimulus in (Stimulus.PROMPT, Stimulus.SETTLED):
            self._ready(end, status, stimulus)

    def _ready(self, offset: int, status: int | None, stimulus: Stimulus) -> None:
        state = self.state
        state.incomplete, state.exit_status = False, status if status is not None else state.exit_status
        state.dirty = False
        if state.unread.shown:
            state.unread.forget_shown()
        if stimulus is Stimulus.PROMPT:
            if state.current.integrity_reason is not None:
                state.current.note_recovered("prompt_lost", "no_prompt")
            # Whatever a Ctrl-C kept the hooks from, they are there.
            state.hooks_lost = False
            state.owed = 0
        here = state.current
        # The prompts of a record by an older version stay as they are.
        who = {"cwd_b64": here.cwd_b64, "user": here.user, "host": here.host} if here.names else {}
        self._emit("prompt", offset, exit_status=state.exit_status, cwd=here.cwd, instance=state.instance, **who)
        self._blocks.region("idle", offset)
        self._blocks.signals.append(Signal("prompt", offset, state.session_over))
        state.session_over = False
        if state.awaited_over:
            state.awaited_over, state.wait_cursor = False, offset


# Entries and notes that may lie between what a shell prints itself and the output, and mean nothing for either.
_PASSING: Final = frozenset({"tick", "input", "input_cut", "resize", "storage", DAMAGED})
_CONTROL_NOTES: Final = frozenset(
    {"control", "approval_requested", "approval_decided", "user_input_requested", "user_input_done"}
)
_PASSING_NOTES: Final = _CONTROL_NOTES | {"wait_begin", "wait_end", "interrupt", "lifecycle", "file_transfer"}
# Notes that become an event as they are.
_SHOWN_NOTES: Final = _CONTROL_NOTES | {"wait_begin", "wait_end", "file_transfer"}
# Stands for the BEGIN of a line that our key loaded, once its output begins.
_LOADED: Final = Mark("__BEGIN__", "", "", 0, 0, None, {"l": "1"})
_DRAWING: Final = frozenset({Stimulus.END, Stimulus.LATE_END, Stimulus.PROMPT, Stimulus.REDRAW})

_ENTRIES: Final = {
    "spawn": Machine._spawn, "tick": Machine._tick, "silence": Machine._silence, "input": Machine._input,
    "input_cut": Machine._input_cut, "resize": Machine._resize, "note": Machine._note, "exit": Machine._exit,
    "eof": Machine._eof, "storage": Machine._storage, DAMAGED: Machine._damaged,
}  # fmt: skip


def _head(submit: Mapping[str, Any]) -> int:
    return UNMARKED_HEAD if is_unmarked(submit) else SHOWN_HEAD


def _passes(entry: Entry, prologue: bytes) -> bool:
    """Return whether the shell may still print its own before a command's output, after it printed `prologue`."""
    note = entry.fields.get("note")
    if entry.kind == "note":
        return isinstance(note, dict) and word(note, "type") in _PASSING_NOTES
    # A shell that is slow with its title: the terminal has the modes of commands by then, so that they tell nothing.
    slow = entry.fields.get("foreground") == "shell" and owes_more(prologue)
    return entry.kind in _PASSING or (entry.kind == "silence" and slow)


def _lost_hooks(state: MachineState, fields: Mapping[str, Any]) -> str | None:
    """Return how the hooks were lost, given a silence entry's fields, or None; keep where the shell's prompt waits."""
    # Where nothing is certain, nothing is lost: a shell that reads a command and a builtin that reads keys look alike
    # from outside, and differ in how deep in its stack the shell waits.
    if fields.get("foreground") != "shell" or not state.hooked or state.hooks_lost:
        return None
    if fields.get("replaced"):
        # One that is at work may be about to end.
        return None if fields.get("busy") is True else "the shell was replaced by another program (exec)"
    depth = number(fields, "depth", -1)
    if state.outer or depth < 0:
        return None
    if state.shell is ShellState.IDLE and state.region.kind == "idle":
        state.prompt_depth = depth
    if state.shell is ShellState.RUNNING and depth == state.prompt_depth:
        return "the shell reads a command, and its hooks are gone"
    return None

"""The machine: stream bytes and timeline entries in, events and signals out.

Rules of this file: it is total (no bytes and no entries raise), chunk-invariant (only bytes and the places of the
entries count), bounded (it keeps no output), and pure: ids are counted, times come from entries, the nonce from the
`spawn` entry.

`feed` and `apply` are called in the order of the record: bytes up to an entry's offset, then the entry. What a mark may
do is decided in two steps: `judge` says whether it is believed, `states.TRANSITIONS` says what it means now.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from typing import Any, Final

from blockpty.engine.alternate import may_switch, parts, to_main
from blockpty.engine.hints import MAX_HINTS
from blockpty.engine.imported import imported
from blockpty.engine.judge import judge, level_of
from blockpty.engine.keyboard import ECHO_WINDOW, Keyboard
from blockpty.engine.ledger import Ledger, prompt_only
from blockpty.engine.loading import (
    MAX_PROLOGUE,
    has_prologue,
    is_bare,
    is_keyed,
    is_wrong,
    owes_more,
    prologue_end,
    was_loaded,
)
from blockpty.engine.loss import hooks_gone
from blockpty.engine.marks import Mark, joined
from blockpty.engine.records import exit_number, input_bytes, is_answer, nonce_of, number, word
from blockpty.engine.scanner import Scanner, Token
from blockpty.engine.snapshot import LEVEL, MachineState
from blockpty.engine.states import Action, ShellState, Stimulus, transition
from blockpty.engine.typeahead import drawn, fed, stands_on_the_line
from blockpty.engine.unasked import first_line
from blockpty.model.entries import DAMAGED, Entry
from blockpty.model.events import Event, Signal

# A delta is cut at fixed stream offsets, at silences and now and then by recorded time: never by the reader's chunks.
DELTA_BYTES: Final = 64 * 1024
DELTA_MS: Final = 100
# A path of 4,096 bytes, all of them escaped, in pieces of 300.
MAX_CWD_PIECES: Final = 42

# How much of the beginning of a loaded line must be seen for its line end to be known; no tab, no wrapping in it.
SHOWN_HEAD: Final = 3

# Where BEGIN is not written, a command that runs is still `SUBMITTED`.
_UNDER_WAY: Final = (ShellState.SUBMITTED, ShellState.RUNNING)

class Machine:
    """Folds the record of one conversation into events (to be written) and signals (for waits).

    Give it a state from `snapshot()` to go on from there: feed the stream from `state.classified`.
    """

    def __init__(self, state: MachineState | None = None) -> None:
        self.state = state.copy() if state is not None else MachineState()
        self._scanner = Scanner(self.state.classified)
        self._ledger = Ledger(self.state)
        self._keyboard = Keyboard(self.state)
        self._emit = self._ledger.emit

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
        text = self._output if self._scanner.holds or may_switch(data, self.state) else self._text
        for token in self._scanner.feed(data):
            if token.mark is None:
                text(token)
            else:
                self.state.switching = b""
                self._mark(token, token.mark)
            self.state.classified = token.end
        return self._ledger.taken()

    def apply(self, entry: Entry) -> tuple[list[Event], list[Signal]]:
        """Take the next timeline entry; the bytes before its offset must have been fed."""
        if self.state.opening is not None and not _passes(entry, self.state.prologue):
            self._open_loaded(self.state.classified)
        self.state.ts = max(self.state.ts, entry.ts)
        handler = _ENTRIES.get(entry.kind)
        if handler is not None:
            handler(self, entry, entry.fields)
        return self._ledger.taken()

    # Tokens

    def _output(self, token: Token) -> None:
        """Text that may switch screens: events come in the order of the bytes."""
        for part in parts(self.state, token, self._scanner, self._emit):
            self._text(part)
            self.state.classified = part.end

    def _text(self, token: Token) -> None:
        state = self.state
        if token.malformed:
            self._emit("anomaly", token.begin, reason="malformed_mark", span=[token.begin, token.end])
            if token.nameless:
                self._ledger.marked()
        elif token.hint is not None:
            self._ledger.hinted(token.begin, token.end, token.hint)
        if state.opening is not None:
            self._prologue(token, state.opening)
        if state.settled is not None and state.background is None:
            self._unasked(token)
        submitted = state.shell is ShellState.SUBMITTED
        if submitted and state.opening is None:
            self._echoed(token)
        if state.delta_begin is not None:
            boundary = (state.delta_begin // DELTA_BYTES + 1) * DELTA_BYTES
            while boundary <= token.end:
                self._ledger.cut(boundary)
                boundary += DELTA_BYTES
        elif not submitted and state.shell_name == "bash":
            self._keyboard.drawn(token, self._scanner)
        if state.fed:
            drawn(state, token, self._scanner)
        if state.inputs and token.end - state.inputs[0][0] > ECHO_WINDOW:
            state.inputs = [item for item in state.inputs if token.end - item[0] <= ECHO_WINDOW]

    def _prologue(self, token: Token, opening: tuple[int, int, bool]) -> None:
        """Take what comes behind the BEGIN of a loaded line where the shell itself still prints."""
        state = self.state
        before = len(state.prologue)
        state.prologue += self._scanner.bytes_of(token, MAX_PROLOGUE)
        end = prologue_end(state.prologue, opening[2])
        if end is not None:
            self._open_loaded(token.begin - before + end)

    def _open_loaded(self, end: int) -> None:
        """Open the block of a loaded line, whose shell has printed its own up to `end`."""
        state = self.state
        assert state.opening is not None  # the callers have asked
        begin, state.opening, state.prologue = state.opening[0], None, b""
        self._step(Stimulus.BEGIN, begin, end, _LOADED)

    def _unasked(self, token: Token) -> None:
        """Text comes that nobody's command printed. Without a line end it is as likely the shell that draws."""
        after = first_line(self.state, token, self._scanner)
        begin = self.state.settled
        if after > 0 and begin is not None:
            self._keyboard.disturbed()
            self._ledger.open_background(begin, after)

    def _leftover(self) -> None:
        """Without a shell nobody draws: what has come since it ended is output, with or without a line end."""
        state = self.state
        begin = state.settled if state.shell is ShellState.EXITED and state.background is None else None
        if begin is not None and state.classified > begin:
            self._ledger.open_background(begin, state.classified)

    def _mark(self, token: Token, mark: Mark) -> None:
        if self.state.outer and mark.nonce != self.state.nonce:
            level = level_of(self.state, mark)
            if level is not None:
                self._left(token, mark, level)
        judged = judge(self.state, mark)
        if isinstance(judged, str):
            self._emit("spoofed_mark", token.begin, kind=mark.kind, reason=judged, span=[token.begin, token.end])
            if judged == "instance":
                self._ledger.marked()
            self._text(token)
            return
        self._ledger.close_background()
        if self.state.opening is not None:
            self._open_loaded(token.begin)
        if self.state.shell is ShellState.SUBMITTED:
            # Offsets are counted in what came back, so a mark in it must count as well.
            self._echoed(token)
        self._take(token, mark)
        if judged is not None:
            self._move(token, mark, judged)

    def _take(self, token: Token, mark: Mark) -> None:
        """Take what an accepted mark tells of itself."""
        if mark.kind == "__OUT_END__":
            self._out_end(token)
        elif mark.kind == "__CWD__":
            self._cwd(mark)
        elif mark.kind == "__CMD__":
            self._keyboard.told(mark)
        elif mark.kind == "__LINE__" and self.state.submission is None:
            # A typed line ends here: what comes up to BEGIN is printed by the user's PS0.
            self.state.told = self._keyboard.entered()
        elif mark.kind == "__PS2__":
            self.state.incomplete = True
            self.state.line_end = None
            self._keyboard.continued()
        elif mark.kind == "__HELLO__":
            self._hello(mark)

    def _move(self, token: Token, mark: Mark, judged: Stimulus) -> None:
        """Take a mark that moves the shell on."""
        if judged in (Stimulus.PROMPT, Stimulus.REDRAW) and mark.prompt is not None:
            self.state.owed = max(0, self.state.owed - (mark.prompt - self.state.prompt))
            self.state.prompt = mark.prompt
            # Below bash 4.4 a prompt does not say it: what HELLO said holds.
            self.state.begins = mark.fields.get("b", "1" if self.state.begins else "") != ""
        ran = (mark.seq, mark.count) != (self.state.seq, self.state.count)
        self.state.seq, self.state.count = mark.seq, mark.count
        submitted = self.state.shell is ShellState.SUBMITTED and is_keyed(self.state.submission)
        if judged is Stimulus.PROMPT and submitted and not ran and self.state.shell_name == "fish":
            # fish abandons a line without an END. Ours may still be loaded.
            self._step(Stimulus.OTHER_END, token.begin, token.begin, mark)
        if judged is Stimulus.BEGIN and is_wrong(mark) and self.state.submission is not None:
            self.state.submission = {**self.state.submission, "incomplete": True}
        if judged is Stimulus.BEGIN and has_prologue(mark, self.state.shell_name):
            self.state.opening = (token.begin, token.end, is_bare(mark))
            return
        if judged is Stimulus.REDRAW:
            # The line is drawn behind the prompt, once more.
            self.state.line_end = None
        self._step(self._of_which_line(judged, mark), token.begin, token.end, mark)

    def _of_which_line(self, judged: Stimulus, mark: Mark) -> Stimulus:
        """Tell the END of a line that never ran and is not ours: a person entered it, or ours stopped at PS2."""
        state = self.state
        if judged is Stimulus.END and state.shell is ShellState.SUBMITTED and is_keyed(state.submission):
            if state.incomplete and was_loaded(mark):
                state.submission = None
            if state.submission is None or not was_loaded(mark):
                state.out_end = None
                return Stimulus.OTHER_END
        return judged

    def _echoed(self, token: Token) -> None:
        if self.state.line_end is None and token.mark is None:
            end = self._scanner.line_end(token)
            self.state.line_end = end if end >= 0 else None
        room = ECHO_WINDOW - len(self.state.echoed)
        if room > 0:
            self.state.echoed += self._scanner.bytes_of(token, room)
            if self.state.prompt_only and self._ledger.echo_end() is not None:
                self._step(Stimulus.ECHOED, token.begin, token.end, None)

    def _out_end(self, token: Token) -> None:
        state = self.state
        if state.prompt_only and state.shell is ShellState.SUBMITTED:
            # The echo was not recognised; whatever it was, the output is over.
            self._step(Stimulus.ECHOED, token.begin, token.begin, None)
        if state.shell is ShellState.SUBMITTED and is_keyed(state.submission):
            # What zsh says about a line that it does not run is over.
            state.out_end = token.begin
        if state.shell is ShellState.RUNNING and state.out_end is None:
            self._ledger.end_region(token.begin)
            state.out_end = token.begin

    def _hello(self, mark: Mark) -> None:
        state = self.state
        state.identity, state.features = mark.instance, mark.fields.get("f", "")
        state.shell_version = mark.fields.get("sv", "")
        if state.features == "ps1":
            state.prompt_only = True
            state.integrity_reason = prompt_only(state)
        elif mark.fields.get("sh") == "bash":
            # Until a PROMPT says it again: whether commands have a BEGIN (not with PS0 readonly).
            state.begins = state.offers("ps0")

    def _cwd(self, mark: Mark) -> None:
        self.state.cwd_pieces, path = joined(self.state.cwd_pieces, mark, MAX_CWD_PIECES)
        if path is None:
            return
        self.state.cwd = path.decode("utf-8", "replace")
        self.state.cwd_b64 = binascii.b2a_base64(path, newline=False).decode("ascii")

    # Timeline entries

    def _spawn(self, entry: Entry, fields: Mapping[str, Any]) -> None:
        again = self.state.instance > 0
        self._flush()
        self._leftover()
        self._ledger.close_background()
        self._step(Stimulus.SPAWN, entry.offset, entry.offset, None)
        state = self.state
        state.instance = number(fields, "instance", state.instance + 1)
        state.nonce, state.pid, state.features, state.outer = nonce_of(fields), str(fields.get("pid", "")), "", []
        state.identity = state.pid
        state.boot, state.system = word(fields, "boot") or "", word(fields, "system") or "linux"
        to_main(state, entry.offset, self._emit)
        state.shell_name, state.shell_version = str(fields.get("shell", "")), ""
        state.hooked = bool(fields.get("hooks", True))
        state.size = (number(fields, "cols", 80), number(fields, "rows", 24))
        state.seq = state.count = state.prompt = 0
        self._keyboard.forget()
        state.begins, state.prompt_only, state.prompt_depth = True, False, None
        state.integrity_reason = None if state.hooked else f"no hooks for {state.shell_name}"
        state.exit, state.eof, state.tty, state.inputs = None, False, None, []
        state.incomplete, state.hooks_lost = False, False
        if again:
            self._emit("reset", entry.offset, instance=state.instance, pid=fields.get("pid"))
        self._ledger.signals.append(Signal("spawn", entry.offset))

    def _tick(self, entry: Entry, fields: Mapping[str, Any]) -> None:
        if self.state.delta_begin is not None and self.state.ts - self.state.delta_ts >= DELTA_MS:
            self._ledger.cut(self.state.classified)
        self._ledger.signals.append(Signal("tick", entry.offset, self.state.ts))

    def _silence(self, entry: Entry, fields: Mapping[str, Any]) -> None:
        state = self.state
        if state.settled is not None:
            self._leftover()
            self._ledger.close_background()
        elif state.delta_begin is not None:
            self._ledger.cut(state.classified)
        state.tty = {name: fields.get(name) for name in ("icanon", "echo", "foreground", "replaced", "reads")}
        left = stands_on_the_line(state)
        abandoned, state.inputs = bool(state.inputs) and state.inputs[-1][1].endswith(b"\x03"), []
        # fish is in raw mode long before it draws its prompt, and answers every line that it abandons with a prompt:
        # while there is none, it does not read yet, or Ctrl-C was lost and the text is still there.
        draws_late = state.shell_name == "fish"
        here = "child" if state.outer else "shell"
        at_editor = not draws_late and fields.get("icanon") is False and fields.get("foreground") == here
        gone = hooks_gone(state, fields)
        if gone is not None:
            state.hooks_lost, state.integrity_reason = True, f"hooks_lost: {gone}"
            self._emit("anomaly", entry.offset, reason="hooks_lost")
            self._ledger.signals.append(Signal("hooks_lost", entry.offset))
        elif at_editor and not state.hooks_lost and (
            state.shell is ShellState.RETURNING or (state.shell is ShellState.EDITING and abandoned and not state.dirty)
        ):
            # After Ctrl-C, bash that had not read a key yet (5.2) goes on with its line, and draws no prompt for it.
            state.owed += 1
            self._step(Stimulus.SETTLED, entry.offset, entry.offset, None)
        elif left:
            state.dirty = True
            self._step(Stimulus.TYPED, entry.offset, entry.offset, None)
        if state.shell is ShellState.IDLE:
            # Typed behind another line: that line's program has read it.
            state.submission = None
        password = fields.get("icanon") is True and fields.get("echo") is False
        at = {"ms": number(fields, "ms", 0), "password": password, "incomplete": state.incomplete}
        self._ledger.signals.append(Signal("silence", entry.offset, at))
        if state.region == "idle" or state.shell is ShellState.EXITED:
            # The prompt is drawn: what comes from here on is nobody's.
            state.settled = state.classified

    def _input(self, entry: Entry, fields: Mapping[str, Any]) -> None:
        self._ledger.close_background()
        shown: dict[str, Any] = {"author": fields.get("author", "agent")}
        if fields.get("redacted"):
            shown["redacted"] = self.state.hidden = True
        else:
            shown["bytes"] = fields.get("bytes", 0)
        submit = fields.get("submit")
        if isinstance(submit, Mapping):
            shown["submit"] = True
        self._emit("input", entry.offset, **shown)
        if isinstance(submit, Mapping):
            # What was sampled at the prompt says nothing about the program.
            self.state.fed, self.state.tty = b"", None
            self.state.submission = {
                **submit,
                "ts": entry.ts,
                "author": fields.get("author", "agent"),
                "line": submit.get("line", fields.get("data", "")),
                "shown": str(submit.get("line", submit.get("cmd", "")))[:SHOWN_HEAD],
            }
            self._step(Stimulus.SUBMIT, entry.offset, entry.offset, None)
            return
        data = input_bytes(fields)
        if is_answer(fields.get("author"), data):
            return
        if self.state.region == "idle":
            self._ledger.region(None, entry.offset)
        self.state.tty = None
        if self.state.shell in (ShellState.IDLE, ShellState.EDITING):
            self.state.dirty = self.state.dirty or bool(data.strip(b"\x03"))
        fed(self.state, data)
        if b"\x03" in data and self.state.shell in _UNDER_WAY:
            self.state.interrupted = True
        if data and sum(len(item[1]) for item in self.state.inputs) + len(data) <= 2 * ECHO_WINDOW:
            self.state.inputs.append((entry.offset, data, bool(fields.get("echo")), bool(fields.get("icanon"))))
        self._step(Stimulus.TYPED, entry.offset, entry.offset, None)
        self._ledger.signals.append(Signal("input", entry.offset, entry))

    def _input_cut(self, entry: Entry, fields: Mapping[str, Any]) -> None:
        self._emit("anomaly", entry.offset, reason="input_cut", accepted=fields.get("accepted"))

    def _resize(self, entry: Entry, fields: Mapping[str, Any]) -> None:
        # The line editor draws the prompt again.
        self._ledger.close_background()
        self.state.size = (number(fields, "cols", 80), number(fields, "rows", 24))
        self._emit("resize", entry.offset, cols=self.state.size[0], rows=self.state.size[1])

    def _note(self, entry: Entry, fields: Mapping[str, Any]) -> None:
        note = fields.get("note")
        if isinstance(note, Mapping) and note.get("type") == "interrupt":
            self.state.interrupted = self.state.shell in _UNDER_WAY
            # At a prompt the line editor draws it again.
            self._ledger.close_background()
        elif isinstance(note, Mapping) and note.get("type") in ("owner", "screen_snapshot"):
            self._ledger.noted(entry.offset, note)
        elif isinstance(note, Mapping) and note.get("type") == "lost":
            self._ended(entry, {"status": None, "signal": None, "lost": word(note, "reason") or "host_gone"})
        elif isinstance(note, Mapping) and note.get("type") == "enter":
            self._enter(entry, note)
        elif isinstance(note, Mapping) and note.get("type") == "leave":
            self._give_up(entry, note)
        elif isinstance(note, Mapping) and note.get("type") == "no_prompt":
            if self.state.shell is ShellState.STARTING and self.state.integrity_reason is None:
                self.state.integrity_reason = "no_prompt: the shell has not shown its first prompt"
        elif isinstance(note, Mapping) and note.get("type") == "imported":
            self._flush()
            imported(self._ledger, entry, note)
        elif isinstance(note, Mapping) and note.get("type") in ("wait_begin", "wait_end"):
            if note["type"] == "wait_end":
                self.state.wait_cursor = number(note, "to_cursor", self.state.wait_cursor)
            shown = {key: value for key, value in note.items() if key != "type"}
            self._emit(str(note["type"]), entry.offset, **shown)

    def _enter(self, entry: Entry, note: Mapping[str, Any]) -> None:
        """Expect our hooks in another shell: what replaced the one that had them, or what runs inside of it."""
        state = self.state
        nested = bool(note.get("nested"))
        self._ledger.close_background()
        self._step(Stimulus.ENTER, entry.offset, entry.offset, None)
        if nested:
            state.outer.append({name: getattr(state, name) for name in LEVEL})
        else:
            state.prompt_depth = None
        state.nonce, state.identity, state.features = nonce_of(note), "", ""
        state.shell_name = str(note.get("shell", ""))
        state.seq = state.count = state.prompt = 0
        state.begins, state.hooks_lost, state.incomplete, state.integrity_reason = True, False, False, None
        state.shell_version, state.prompt_only = "", False
        self._emit("shell_entered", entry.offset, shell=state.shell_name, level=len(state.outer))
        self._ledger.signals.append(Signal("spawn", entry.offset))

    def _give_up(self, entry: Entry, note: Mapping[str, Any]) -> None:
        """Our hooks did not show in the other shell: expect the marks of the one before again."""
        state = self.state
        if state.shell is not ShellState.STARTING or nonce_of(note) != state.nonce:
            return
        if state.outer:
            self._back(entry.offset, None, len(state.outer) - 1)
        else:
            state.shell, state.hooks_lost = ShellState.RUNNING, True
            state.integrity_reason = "hooks_lost: the shell was replaced, and did not take our hooks"

    def _left(self, token: Token, mark: Mark, level: int) -> None:
        """The shell that was entered has ended: a shell outside of it speaks again."""
        self._back(token.begin, mark, level)

    def _back(self, offset: int, mark: Mark | None, level: int) -> None:
        state = self.state
        if state.opening is not None:
            self._open_loaded(offset)
        self._step(Stimulus.LEFT, offset, offset, mark)
        for name, value in state.outer[level].items():
            setattr(state, name, value)
        del state.outer[level:]
        state.incomplete, state.hooks_lost = False, False
        self._emit("shell_left", offset, shell=state.shell_name, level=level)

    def _exit(self, entry: Entry, fields: Mapping[str, Any]) -> None:
        self._ended(entry, {"status": exit_number(fields), "signal": word(fields, "signal")})

    def _ended(self, entry: Entry, how: dict[str, Any]) -> None:
        self._flush()
        self._ledger.close_background()
        self.state.exit = how
        self._step(Stimulus.EXIT, entry.offset, entry.offset, None)
        lost = {"lost": True, "reason": how["lost"]} if how.get("lost") else {}
        self._emit("shell_exit", entry.offset, exit_status=how["status"], signal=how["signal"], **lost)
        self._ledger.signals.append(Signal("exit", entry.offset))
        self.state.settled = self.state.classified

    def _eof(self, entry: Entry, fields: Mapping[str, Any]) -> None:
        self._flush()
        self._leftover()
        self._ledger.close_background()
        self.state.eof = True
        self._emit("eof", entry.offset)
        self._ledger.signals.append(Signal("eof", entry.offset))

    def _storage(self, entry: Entry, fields: Mapping[str, Any]) -> None:
        self._emit("storage", entry.offset, **fields)

    def _damaged(self, entry: Entry, fields: Mapping[str, Any]) -> None:
        self._emit("anomaly", entry.offset, reason="damaged", file="timeline.jsonl", bytes=fields["bytes"])

    def _flush(self) -> None:
        """Take held bytes as text: nothing of this shell can follow them."""
        for token in self._scanner.flush():
            self._output(token)
            self.state.classified = token.end

    # Actions

    # One branch an action; split, the table would be read in two places.
    def _step(self, stimulus: Stimulus, begin: int, end: int, mark: Mark | None) -> None:  # noqa: C901
        found = transition(self.state.shell, stimulus)
        if found is None:
            self._emit("anomaly", begin, reason=f"unexpected_{stimulus.value}", state=self.state.shell.value)
            return
        after, action = found
        status = mark.number("x") if mark is not None else None
        if action is Action.START:
            if self.state.submission is not None and self.state.shell is ShellState.SUBMITTED:
                self._ledger.open_unseen("begin_lost")
            self._ledger.close(begin, state="lost")
        elif action is Action.PEND:
            self._ledger.region(None, begin)
            self.state.submitted_at, self.state.echoed = self.state.classified, b""
            self.state.line_end, self.state.out_end, self.state.incomplete = None, None, False
            self.state.wait_cursor = begin
        elif action in (Action.OPEN, Action.OPEN_FOREIGN):
            self._keyboard.begins(mark)
            other, doubt = self._keyboard.is_other(mark), self._keyboard.is_unlike()
            self._ledger.open(end, self._keyboard.entered(), "other_input" if doubt else None, other=other)
        elif action is Action.OPEN_ECHOED:
            self._ledger.open_unseen("prompt_only", end)
        elif action in (Action.ADD_PART, Action.REOPEN):
            self._ledger.add_part(begin, end, self._keyboard.entered())
        elif action is Action.END_OUTPUT:
            self._ledger.end_output(begin, status)
        elif action is Action.END_UNSEEN:
            self._ledger.open_unseen("begin_lost")
            self._ledger.end_output(begin, status)
        elif action is Action.CANCEL:
            out_end = self.state.out_end
            self._ledger.open_rejected(begin)
            if out_end is not None:
                self._ledger.end_region(out_end)
                self.state.out_end = out_end
            self._ledger.end_output(begin, status)
            assert self.state.block is not None  # _open has just made it
            self.state.block.state = "cancelled" if status == 130 else "rejected"
        elif action is Action.CLOSE_UNSEEN:
            out_end = self.state.out_end
            self._ledger.open_unseen("hooks_lost", out_end)
            if out_end is not None:
                # Only END is missing behind a line that was not run.
                self._ledger.end_region(out_end)
                self.state.out_end = out_end
            self.state.integrity_reason = prompt_only(self.state) or (
                "end_lost: the shell does not write END any more"
                if out_end is not None
                else "hooks_lost: BEGIN and END are not written any more"
            )
            self._ledger.close(begin, status=status)
        elif action is Action.CLOSE:
            if self.state.block is not None and self.state.block.ended_at is None and not self.state.prompt_only:
                # The prompt's own text stands in front of its mark and is now part of the output.
                self.state.block.degraded = "end_lost"
                self.state.integrity_reason = "end_lost: the shell does not write END any more"
            self._ledger.close(begin, status=status)
        elif action is Action.CLOSE_DEGRADED:
            self.state.integrity_reason = "prompt_lost: the prompt's mark does not reach the terminal"
            self._ledger.close(begin)
        elif action is Action.EXIT:
            self._ledger.exit_block(begin)
        elif action is Action.ENTER:
            self._ledger.leave_block(begin)
        elif action is Action.LEFT:
            self._ledger.end_block(begin, status)
        self.state.shell = after
        if stimulus in _DRAWING:
            self._keyboard.prompt(stimulus)
        if after is ShellState.IDLE and stimulus in (Stimulus.PROMPT, Stimulus.SETTLED):
            self._ready(end, status, stimulus)

    def _ready(self, offset: int, status: int | None, stimulus: Stimulus) -> None:
        state = self.state
        state.incomplete, state.exit_status = False, status if status is not None else state.exit_status
        state.dirty, state.shown = False, b""
        if stimulus is Stimulus.PROMPT:
            self._ledger.recovered("prompt_lost")
            self._ledger.recovered("no_prompt")
            state.owed = 0
        self._emit("prompt", offset, exit_status=state.exit_status, cwd=state.cwd, instance=state.instance)
        self._ledger.region("idle", offset)
        self._ledger.signals.append(Signal("prompt", offset, state.session_over))
        state.session_over = False


# Entries and notes that may lie between what a shell prints itself and the output, and mean nothing for either.
_PASSING: Final = frozenset({"tick", "input", "input_cut", "resize", "storage", DAMAGED})
_PASSING_NOTES: Final = frozenset({"wait_begin", "wait_end", "interrupt"})
# Stands for the BEGIN of a line that our key loaded, once its output begins.
_LOADED: Final = Mark("__BEGIN__", "", "", 0, 0, None, {"l": "1"})
_DRAWING: Final = frozenset({Stimulus.END, Stimulus.LATE_END, Stimulus.PROMPT, Stimulus.REDRAW})

_ENTRIES: Final = {
    "spawn": Machine._spawn, "tick": Machine._tick, "silence": Machine._silence, "input": Machine._input,
    "input_cut": Machine._input_cut, "resize": Machine._resize, "note": Machine._note, "exit": Machine._exit,
    "eof": Machine._eof, "storage": Machine._storage, DAMAGED: Machine._damaged,
}  # fmt: skip


def _passes(entry: Entry, prologue: bytes) -> bool:
    """Return whether the shell may still print its own before a command's output, after it printed `prologue`."""
    note = entry.fields.get("note")
    if entry.kind == "note":
        return isinstance(note, Mapping) and note.get("type") in _PASSING_NOTES
    # A shell that is slow with its title: the terminal has the modes of commands by then, so that they tell nothing.
    slow = entry.fields.get("foreground") == "shell" and owes_more(prologue)
    return entry.kind in _PASSING or (entry.kind == "silence" and slow)

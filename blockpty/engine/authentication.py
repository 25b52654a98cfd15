"""The shell that marks come from, and the authentication of its marks.

Rules of this file: a mark is accepted only with the nonce and the pid of the shell that runs now, and only with the
next number. Numbers that were used are refused for ever, so showing an old transcript of the same conversation
changes nothing.
"""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from blockpty.engine.marks import Mark
from blockpty.engine.states import ShellState, Stimulus

_SEQUENCED: Final = {"__BEGIN__": Stimulus.BEGIN, "__END__": Stimulus.END}
_AT_PROMPT: Final = (ShellState.SUBMITTED, ShellState.IDLE, ShellState.EDITING)


class Shell(Struct):
    """Identity of one shell, and what belongs to it alone.

    Attributes:
        nonce: the secret of its marks; with "" none is accepted.
        mark_id: what the shell calls itself in its marks, "" until it has said so.
        features, version: what it said about itself, "" before that.
        name: "bash", "zsh", "fish" or another.
        prompt_only: whether it can mark nothing but its prompt, so that no BEGIN ever comes.
        seq, count, prompt: numbers of the last accepted marks.
        begins: whether it said at its last prompt that the next command will have a BEGIN.
        cwd, cwd_b64: its directory at the last prompt.
        names: whether it has said who it is, as those of older versions do not.
        user, host: who it is of, and on which machine; None when it could not say.
        gap: whether marks may be missing, because tmux has dropped output: the next one may be any later one.
        integrity_reason: why block boundaries are less than certain; None when all is well.
    """

    nonce: str = ""
    mark_id: str = ""
    features: str = ""
    name: str = ""
    version: str = ""
    prompt_only: bool = False
    seq: int = 0
    count: int = 0
    prompt: int = 0
    begins: bool = True
    cwd: str | None = None
    cwd_b64: str | None = None
    names: bool = False
    user: str | None = None
    host: str | None = None
    gap: bool = False
    integrity_reason: str | None = None

    def offers(self, feature: str) -> bool:
        """Return whether the shell has said this of itself in its HELLO."""
        return feature in self.features.split(",")

    @property
    def sees_files(self) -> bool:
        """Whether it can read our files; not on another machine, in a container, or as another user."""
        return not self.offers("nofs")

    @property
    def prompt_only_reason(self) -> str | None:
        """Why block boundaries are never certain in a shell that marks nothing but its prompt; None in any other."""
        return f"prompt_only: {self.name} has no hooks before and after a command" if self.prompt_only else None

    def note_hello(self, mark: Mark) -> None:
        """Take what the shell says of itself in its HELLO."""
        self.mark_id, self.features = mark.instance, mark.fields.get("f", "")
        self.version = mark.fields.get("sv", "")
        self.names = "u" in mark.fields
        self.user, self.host = mark.fields.get("u") or None, mark.fields.get("h") or None
        if self.features == "ps1":
            self.prompt_only = True
            self.integrity_reason = self.prompt_only_reason
        elif mark.fields.get("sh") == "bash":
            # Until a PROMPT says it again: whether commands have a BEGIN (not with PS0 readonly).
            self.begins = self.offers("ps0")

    def note_cwd(self, path: bytes) -> None:
        """Take the directory that the shell reports."""
        self.cwd = path.decode("utf-8", "replace")
        self.cwd_b64 = binascii.b2a_base64(path, newline=False).decode("ascii")

    def note_gap(self) -> None:
        """Expect that marks are missing."""
        self.gap = True

    def note_accepted(self, mark: Mark, *, prompt: int | None) -> bool:
        """Take the numbers of an accepted mark, `prompt` that of a prompt's; return whether a line was counted."""
        if prompt is not None:
            self.prompt = prompt
            # Below bash 4.4 a prompt does not say it: what HELLO said holds.
            self.begins = mark.fields.get("b", "1" if self.begins else "") != ""
        counted = (mark.seq, mark.count) != (self.seq, self.count)
        self.seq, self.count, self.gap = mark.seq, mark.count, False
        return counted

    def note_doubt(self, reason: str) -> None:
        """Keep why block boundaries are less than certain from here on."""
        self.integrity_reason = reason

    def note_recovered(self, *what: str) -> None:
        """Drop a doubt of these names: a mark that had been missing is there again."""
        if self.integrity_reason is not None and self.integrity_reason.startswith(what):
            self.integrity_reason = self.prompt_only_reason

    def authenticate(self, mark: Mark, at: ShellState, owed: int = 0) -> Stimulus | str | None:
        """Return what an authentic mark means, None when it moves nothing, or the reason why it is not accepted.

        `at` is where the shell is; `owed` says how many prompts were taken for granted and may still be drawn.
        """
        if not self.nonce or mark.nonce != self.nonce:
            return "nonce"
        introduces = mark.kind == "__HELLO__" and not self.mark_id
        if mark.instance != self.mark_id and not introduces:
            return "instance"
        if mark.kind == "__HELLO__":
            return None if at is ShellState.STARTING and mark.seq == 0 and not self.seq else "sequence"
        if mark.kind == "__PROMPT__":
            return self._authenticate_prompt(mark, at, owed)
        if mark.kind in _SEQUENCED:
            begins = 1 if mark.kind == "__BEGIN__" else 0
            if self.gap and mark.seq > self.seq and mark.count >= self.count + begins:
                return _SEQUENCED[mark.kind]
            if mark.seq == self.seq + 1 and mark.count == self.count + begins:
                if mark.kind == "__END__" and at is ShellState.SUBMITTED and not self.begins:
                    return Stimulus.LATE_END
                return _SEQUENCED[mark.kind]
            # `exec 2>/dev/null` swallows BEGIN, which bash writes to fd 2, but not END: exactly one number is missing.
            lost = mark.kind == "__END__" and mark.seq == self.seq + 2 and mark.count == self.count + 1
            return Stimulus.LATE_END if lost and at in _AT_PROMPT else "sequence"
        if mark.kind == "__OUT_END__" and self.prompt_only and mark.prompt != self.prompt + 1:
            # Nothing else grows in this shell, so the number of the prompt to come is what makes this mark new.
            return "sequence"
        return None if mark.seq == self.seq else "sequence"

    def _authenticate_prompt(self, mark: Mark, at: ShellState, owed: int) -> Stimulus | str:
        if mark.prompt is None or mark.prompt < self.prompt:
            return "sequence"
        missing = (mark.seq - self.seq, mark.count - self.count)
        if self.gap and mark.prompt > self.prompt and min(missing) >= 0:
            return Stimulus.PROMPT
        if mark.prompt == self.prompt:
            return Stimulus.REDRAW if self.prompt and missing == (0, 0) else "sequence"
        if missing == (0, 0) and at is ShellState.SUBMITTED and mark.prompt <= self.prompt + owed:
            # Assumed at a silence, drawn only now: it belongs before the command that was typed since.
            return Stimulus.REDRAW
        # A fresh prompt may follow an END that never reached the terminal (`enable -n printf`), or a whole command of
        # which neither did; its numbers are new all the same.
        lost = missing == (1, 0) or (missing == (2, 1) and at in _AT_PROMPT)
        return Stimulus.PROMPT if missing == (0, 0) or lost else "sequence"


def level_of(outer: Sequence[Shell], mark: Mark, owed: int) -> int | None:
    """Return the outer shell that an authentic mark speaks for, by its level; None for any other mark."""
    for level in range(len(outer) - 1, -1, -1):
        if outer[level].nonce == mark.nonce:
            meaning = outer[level].authenticate(mark, ShellState.RUNNING, owed)
            return level if isinstance(meaning, Stimulus) else None
    return None


def is_end_of_inner(outer: Sequence[Shell], mark: Mark) -> bool:
    """Whether a mark is an outer shell's authentic report that the output of the inner shell, its command, is over."""
    return mark.kind == "__OUT_END__" and any(one.authenticate(mark, ShellState.RUNNING) is None for one in outer)

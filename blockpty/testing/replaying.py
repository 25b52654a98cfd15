"""A replayed conversation: a recording answers, and what the agent types must be what was typed then.

Rules of this file: the conversation is the real one, with its waits, blocks, screens and errors; only its host is made
up. That host has a recording, and writes it into the conversation's files up to where the agent has to do something. No
process is started, and no time passes: a wait that the recording does not answer before the agent acts has timed out.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, cast

import orjson

from blockpty.engine.records import input_bytes, is_answer
from blockpty.engine.states import ShellState
from blockpty.engine.waiter import Outcome
from blockpty.errors import Exited
from blockpty.files.lines import sealed
from blockpty.files.segments import segment_name
from blockpty.host.client import Closed, HostClient, Inspected, Sizes, Subscribed, Typed
from blockpty.model.entries import Entry
from blockpty.model.results import OpenResult, WaitResult
from blockpty.runtime.advice import Standing
from blockpty.runtime.completion import Completion
from blockpty.runtime.conversation import Conversation, RecordSettings
from blockpty.runtime.importing import import_recording
from blockpty.runtime.record_reader import Position
from blockpty.runtime.status import mode_of, tty_of
from blockpty.runtime.submission import Submitted
from blockpty.runtime.wait_for import WaitFor
from blockpty.runtime.waits import WaitRequest
from blockpty.spool.layout import Layout, conversations_directory, make_private
from blockpty.spool.ownership import Ownership
from blockpty.testing.recordings import Recording

# What an earlier engine noted for itself; the conversation makes its own.
_OF_THE_ENGINE: Final = frozenset({"owner", "wait_begin", "wait_end"})


class Diverged(AssertionError):
    """The agent did something else than was recorded."""


@asynccontextmanager
async def replayed(
    recording: Recording | str | os.PathLike[str], conversation_id: str = "replayed"
) -> AsyncIterator[ReplayedConversation]:
    """Give a conversation that a recording answers, in a home of its own that is gone afterwards.

    `recording`: one from memory, the directory of a conversation, or a file that can be imported (asciicast, script).
    Waits, reads, blocks, events and screens are those of a real conversation at the same place of the record. What is
    typed must be what was typed, else `Diverged`, an AssertionError, says where they part; what a person typed, and
    what the terminal answered, happens by itself.
    """
    with tempfile.TemporaryDirectory(prefix="blockpty-") as top:
        home = Path(top).resolve() / "home"
        if not isinstance(recording, Recording):
            recording = await _loaded(recording, home)
        make_private(home)
        layout = Layout(conversations_directory(home) / conversation_id)
        for directory in (layout.directory, layout.stream, layout.outputs, layout.commands):
            make_private(directory)
        conversation = ReplayedConversation(conversation_id, layout, RecordedHost(layout, recording))
        try:
            await conversation.begin()
            yield conversation
        finally:
            await conversation.detach()


async def _loaded(path: str | os.PathLike[str], home: Path) -> Recording:
    path = Path(path)
    if path.is_dir():
        return Recording.load(path)
    make_private(home)
    made = await import_recording(home, path, "imported", None)
    return Recording.load(conversations_directory(home) / made.conversation_id)


class RecordedHost:
    """Stands for the host of a conversation: it moves a recording, and types nothing."""

    transport = "recorded"

    def __init__(self, layout: Layout, recording: Recording) -> None:
        self._layout = layout
        self._steps = list(recording.steps())
        self._next = 0
        self._offset = 0
        self._ts = 0
        # When something came or went in last.
        self._busy_ts = 0
        self._timeline = 0
        self._ring: Callable[[], object] = lambda: None
        self.conversation: ReplayedConversation | None = None

    # The recording

    def gate(self) -> Entry | None:
        """Return what the agent did next in the recording; None when nothing is left for it to do."""
        return next(self._gates(), None)

    def gates(self) -> list[Entry]:
        """Return all that the agent did from here on."""
        return list(self._gates())

    def _gates(self) -> Iterator[Entry]:
        for index in range(self._next, len(self._steps)):
            step = self._steps[index]
            if isinstance(step, Entry) and self._is_gate(step):
                yield step

    def _is_gate(self, entry: Entry) -> bool:
        fields = entry.fields
        if entry.kind == "input":
            author = fields.get("author")
            # The engine types for the agent: the farewell of end_session. To clear a line it needs no recording.
            for_agent = author == "engine" and self._runs() and not is_answer(author, input_bytes(fields))
            return author == "agent" or for_agent
        if entry.kind == "resize":
            return fields.get("author") == "agent"
        if entry.kind == "spawn":
            return int(fields.get("instance", 1)) > 1
        if entry.kind == "note":
            return _note(entry).get("type") == "interrupt"
        # A shell that ends while it stands at its prompt was ended from outside.
        return entry.kind == "exit" and self._shell() in (ShellState.IDLE, ShellState.EDITING)

    def _runs(self) -> bool:
        return self._shell() in (ShellState.RUNNING, ShellState.SUBMITTED)

    def _shell(self) -> ShellState:
        assert self.conversation is not None
        return self.conversation.live.state.shell

    def reveal(self) -> None:
        """Let happen what happened until the agent did something."""
        while self._next < len(self._steps):
            step = self._steps[self._next]
            if self._is_gate(step) if isinstance(step, Entry) else self._is_farewell():
                return
            self._next += 1
            self._take(step)

    def _is_farewell(self) -> bool:
        """Whether bytes that come at a quiet prompt are what a shell prints that is ended from outside."""
        assert self.conversation is not None
        if self.conversation.live.state.unattributed.settled is None:
            return False
        gate = self.gate()
        return gate is not None and gate.kind == "exit"

    def passed(self, entry: Entry | None = None) -> None:
        """Let the next gate happen, as `entry` where it is to look different, and what came of it."""
        gate = self.gate()
        while (step := self._steps[self._next]) is not gate:
            self._next += 1
            self._take(step)
        self._next += 1
        self._take(step if entry is None else entry)
        self.reveal()

    def _take(self, step: Entry | bytes) -> None:
        if isinstance(step, bytes):
            with (self._layout.stream / segment_name(0)).open("ab") as file:
                file.write(step)
            self._offset += len(step)
            self._busy_ts = self._ts
        elif step.kind != "note" or _note(step).get("type") not in _OF_THE_ENGINE:
            self.write(step)
        assert self.conversation is not None
        # What the next entry means depends on the state that this one leads to.
        while self.conversation.live.pump():
            pass

    def write(self, entry: Entry) -> None:
        """Write an entry at the place that the recording has come to."""
        self._ts = max(self._ts, entry.ts)
        if entry.kind in ("input", "resize", "spawn"):
            self._busy_ts = self._ts
        line = sealed(orjson.dumps(entry._replace(offset=self._offset, ts=self._ts).to_dict()))
        with self._layout.timeline.open("ab") as file:
            file.write(line)
        self._timeline += len(line)

    def _diverged(self, did: str) -> Diverged:
        gate = self.gate()
        then = "nothing any more" if gate is None else _shown(gate)
        return Diverged(f"at {self._offset} of the recording the agent {did}; it then did {then}")

    def quiet(self, ms: int) -> None:
        """Write a silence of so many ms, if the recording has one here: what a host does that is asked to watch."""
        gate = self.gate()
        if gate is not None and gate.ts - self._busy_ts < ms:
            return
        assert self.conversation is not None
        tty = dict(self.conversation.live.state.tty or {})
        known = {"icanon": True, "echo": True, "foreground": "child", "replaced": False}
        fields = {"ms": ms, **known, **{name: value for name, value in tty.items() if value is not None}}
        self.write(Entry(self._offset, self._busy_ts + ms, "silence", fields))

    # What a host does

    async def input(
        self, conversation: str, data: bytes, *, author: str, principal: str | None = None, req: str | None = None,
        submit: Mapping[str, Any] | None = None, program: bool = False, secret: str | None = None,
        hidden_only: bool = False,
        deadline_ms: int = 0, epoch: int | None = None,
    ) -> Typed:  # fmt: skip
        """Compare what is typed with what was typed."""
        gate = self.gate()
        at = self._offset
        if author == "engine":
            if gate is not None and gate.kind == "input" and gate.fields.get("author") == "engine":
                self.passed()
            return Typed(at, self._timeline, len(data))
        if author == "user":
            raise self._diverged(f"typed {data!r} as the user, whose input the recording has already")
        if gate is None or gate.kind != "input" or not _is_same(gate, data, submit):
            did = f"typed {data!r}" if submit is None else f"ran {submit.get('cmd')!r} as a {submit.get('kind')}"
            raise self._diverged(did)
        fields = dict(gate.fields)
        if submit is not None:
            fields |= {"req": req, "submit": {**gate.fields["submit"], "request": submit["request"]}}
        self.passed(gate._replace(fields=fields))
        return Typed(at, self._timeline, len(data))

    def note(self, conversation: str, note: Any, *, epoch: int | None = None) -> asyncio.Future[dict[str, Any]]:
        """Write what the conversation notes for itself."""
        if note.get("type") in _OF_THE_ENGINE:
            self.write(Entry(self._offset, self._ts, "note", {"note": note}))
        done: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        done.set_result({})
        return done

    async def resize(
        self, conversation: str, cols: int, rows: int, *, author: str, epoch: int | None = None
    ) -> Sizes:  # fmt: skip
        """Compare a size with the one that was asked for."""
        gate = self.gate()
        if gate is None or gate.kind != "resize" or (gate.fields.get("cols"), gate.fields.get("rows")) != (cols, rows):
            raise self._diverged(f"made the terminal {cols}x{rows}")
        self.passed()
        return self._sizes()

    async def signal(
        self, conversation: str, signal: str, *, target: str = "foreground", epoch: int | None = None
    ) -> Sizes:
        """Compare a signal with the one that was sent; where the engine typed instead, that has done it."""
        gate, typed = self.gate(), False
        while gate is not None and gate.kind == "input" and gate.fields.get("author") == "engine":
            self.passed()
            gate, typed = self.gate(), True
        if gate is None or not (
            gate.kind == "exit" or (gate.kind == "note" and _note(gate).get("signal") == f"SIG{signal}")
        ):
            # The shell gets what the foreground got before, or gets it again.
            if not typed and target != "shell":
                raise self._diverged(f"sent {signal}")
        else:
            self.passed()
        return self._sizes()

    async def inspect(self, conversation: str, *, programs: bool = False) -> Inspected:
        """Say what the terminal did when it was silent last."""
        assert self.conversation is not None
        state = self.conversation.live.state
        if state.shell is ShellState.EXITED:
            return Inspected(self._offset, self._timeline, live=False)
        tty = state.tty or {}
        known = {name: tty.get(name) for name in ("icanon", "echo", "foreground", "replaced", "reads")}
        cols, rows = state.size
        return Inspected(self._offset, self._timeline, live=True, cols=cols, rows=rows, **cast("Any", known))

    def sample(self, conversation: str) -> asyncio.Future[dict[str, Any]]:
        """Say that no more is known of the terminal than what was recorded."""
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        future.set_result({"live": False})
        return future

    async def subscribe(self, conversation: str, epoch: int, callback: Callable[[], object]) -> Subscribed:
        self._ring = callback
        return Subscribed(self._offset, self._timeline, True, None, False)

    async def unsubscribe(self, conversation: str) -> None:
        self._ring = lambda: None

    async def watch_idle(self, conversation: str, ms: int) -> Sizes:
        return self._sizes()

    async def adopt(self, conversation: str) -> Sizes:
        return self._sizes()

    async def close(
        self, conversation: str, *, grace_ms: int = 0, leave: bool = False, epoch: int | None = None
    ) -> Closed:  # fmt: skip
        """End the shell, whether or not the recording goes on."""
        assert self.conversation is not None
        gate = self.gate()
        if gate is not None and gate.kind == "exit":
            self.passed()
        elif self.conversation.live.state.shell is not ShellState.EXITED:
            self._next = len(self._steps)
            self.write(Entry(self._offset, self._ts, "exit", {"status": None, "signal": "SIGHUP"}))
            self.write(Entry(self._offset, self._ts, "eof"))
        ended = self.conversation.live.state.exit or {}
        return Closed(self._offset, self._timeline, ended.get("status"), ended.get("signal"), [])

    def respawned(self) -> None:
        """Let the next shell of the recording begin."""
        while (gate := self.gate()) is not None and gate.kind == "exit":
            self.passed()
        if gate is None or gate.kind != "spawn":
            raise self._diverged("asked for another shell")
        self.passed()

    def _sizes(self) -> Sizes:
        return Sizes(self._offset, self._timeline)


def _note(entry: Entry) -> Mapping[str, Any]:
    note = entry.fields.get("note")
    return note if isinstance(note, Mapping) else {}


def _is_same(gate: Entry, data: bytes, submit: Mapping[str, Any] | None) -> bool:
    then = gate.fields.get("submit")
    if submit is not None:
        return isinstance(then, Mapping) and (then.get("kind"), then.get("cmd")) == (submit["kind"], submit["cmd"])
    # What was typed at a password prompt is in no record.
    return then is None and (bool(gate.fields.get("redacted")) or input_bytes(gate.fields) == data)


def _shown(gate: Entry) -> str:
    """Return in a few words what an agent did."""
    fields = gate.fields
    if gate.kind == "input":
        submit = fields.get("submit")
        if isinstance(submit, Mapping):
            return f"run {submit.get('cmd')!r} as a {submit.get('kind')}"
        return "type something hidden" if fields.get("redacted") else f"type {input_bytes(fields)!r}"
    if gate.kind == "resize":
        return f"make the terminal {fields.get('cols')}x{fields.get('rows')}"
    return {"spawn": "ask for another shell", "exit": "end the shell"}.get(
        gate.kind, f"send {_note(gate).get('signal')}"
    )


class _InstantWaiting(WaitFor):
    """Waits on what the recording has come to; time passes only in the recording."""

    host: RecordedHost

    def _now(self) -> int | None:
        # The times of the recording have passed.
        return None

    async def wait(self, request: WaitRequest, timeout_ms: int, since: Position | None = None) -> WaitResult:
        result = await super().wait(request, 0, since)
        if result.reason != "timeout" or timeout_ms == 0:
            return result
        gate = self.host.gate()
        if gate is not None and gate.kind == "exit":
            # Nothing was typed: waiting is all it took.
            self.host.passed()
            return await super().wait(request, 0, since)
        return result


class ReplayedConversation(Conversation):
    """A conversation that a recording answers; get it from `replayed`."""

    def __init__(self, conversation_id: str, layout: Layout, host: RecordedHost) -> None:
        super().__init__(
            conversation_id, layout, cast("HostClient", host), Ownership.take(layout.lock), self._another,
            RecordSettings(),
        )  # fmt: skip
        self._recorded = host
        self._waiting = _InstantWaiting(
            self.live, self.note, host.quiet, lambda: host.sample(self.id), self._stands, f"w{self.epoch}."
        )
        self._waiting.host = host
        host.conversation = self

    async def begin(self) -> None:
        """Let happen what happened until the agent first did something."""
        await self.attach(self.host)
        # There is no program that would read an answer.
        self.live.answers = None
        self._recorded.reveal()
        self._cursor = 0

    @property
    def remaining(self) -> list[str]:
        """What the agent has still to do, as the recording has it; empty when it has done all of it."""
        return [_shown(gate) for gate in self._recorded.gates() if gate.kind != "exit"]

    async def _stands(self, reason: str) -> Standing:
        # No process can be asked.
        return Standing(tty_of(self.live.state, self.live.state.tty), None, None)

    async def _submit(
        self, kind: str, operation: str, command: str, cwd: str | None, *, queue: bool = False, awaited: bool = False,
        stop_at_input: bool = False,
    ) -> Submitted:  # fmt: skip
        # The directory was one of the machine that recorded.
        return await super()._submit(
            kind, operation, command, None, queue=queue, awaited=awaited, stop_at_input=stop_at_input
        )

    async def _until_done(self, completion: Completion, timeout_ms: int) -> Outcome:
        gate = self._recorded.gate() if timeout_ms and not completion.future.done() else None
        if gate is not None and gate.kind == "exit":
            # Nothing was typed: waiting is all it took.
            self._recorded.passed()
        return await super()._until_done(completion, 0)

    async def _another(self, _conversation: Conversation) -> OpenResult:
        begin = self.live.reader.position.offset
        self._recorded.respawned()
        prompt = await self.wait_for({"token": "PROMPT"}, from_cursor=begin)
        state = self.live.state
        if state.shell is ShellState.EXITED:
            raise Exited(f"the shell of {self.id} ended before its first prompt")
        pid = int(state.pid) if state.pid.isdigit() else 0
        self.opened = OpenResult(self.id, self.shell_id, pid, prompt.cursor, mode_of(state))
        return self.opened

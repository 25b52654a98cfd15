"""The proof: derive everything again from stream and timeline and compare, recorded waits included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from blockpty.engine.matchers import PatternTimeout
from blockpty.engine.records import new_nonce
from blockpty.engine.waiter import Outcome
from blockpty.errors import BlockptyError
from blockpty.model.entries import DAMAGED, Entry
from blockpty.model.results import VerifyResult
from blockpty.runtime.drawn import DrawnStream
from blockpty.runtime.fold import Fold, Position
from blockpty.runtime.screens import Screens
from blockpty.runtime.waits import ResumePoints, WaitRequest, evaluate, first_point, outcome_to_note
from blockpty.spool.beginning import load_beginning
from blockpty.spool.compare import CompareSink
from blockpty.spool.journal import Journal
from blockpty.spool.layout import Layout
from blockpty.spool.masking import Mask
from blockpty.spool.stream import StreamReader

_COMPARED = ("matched", "reason", "to_cursor", "index", "span", "match_text", "groups")


def verify(conversation_id: str, layout: Layout, until: Position, sizes: tuple[int, int] | None) -> VerifyResult:
    """Check a conversation's files against its record up to a position; runs in any thread, reads only.

    `sizes` are those of events.jsonl and blocks.jsonl at that position; None when another engine writes them just now.
    Differences name the invariant: I1 stream, I2 spans, I3 event numbers, I4 derived files, I5 cursors, I6 owners, I7
    secrets, I8 waits.
    """
    return _Verification(conversation_id, layout, until, sizes).run()


class _Verification:
    def __init__(self, conversation_id: str, layout: Layout, until: Position, sizes: tuple[int, int] | None) -> None:
        self._layout = layout
        self._sizes = sizes
        self._until = until
        self._stream = StreamReader(layout.stream)
        self._drawn = DrawnStream(layout)
        self._screens = Screens(layout, self._drawn, lambda: self._mask)
        self._sink = CompareSink(layout, growing=sizes is None)
        self._mask = Mask()
        self._journal = Journal(conversation_id, self._stream, self._sink, self._mask)
        self._beginning = load_beginning(layout.directory)
        self._points = ResumePoints(first_point(self._beginning))
        self._requests: dict[str, tuple[WaitRequest, Position]] = {}
        self._waits = 0
        self._next_event = 0
        self._span_end = 0
        self._epoch = 0
        if self._beginning is not None:
            self._journal.restore(self._beginning.journal)
            self._mask = self._journal.mask
            self._sink.begin({name: place[0] for name, place in self._beginning.files.items()})
            self._next_event = int(self._beginning.state["next_event"])

    def run(self) -> VerifyResult:
        fold = Fold(self._layout, self._stream)
        try:
            fold.look()
            while (step := fold.step(self._until)) is not None:
                if step.entry is not None:
                    self._entry(step.entry)
                    if step.entry.kind in ("silence", "input"):
                        self._points.add(fold.machine.state, fold.position)
                self._check(step.events, fold.position.offset)
                self._journal.append(step.events)
                if any(event.type in ("prompt", "agent_block_begin") for event in step.events):
                    self._points.add(fold.machine.state, fold.position)
            if fold.position.offset < self._until.offset:
                self._sink.differ(
                    "I1", "stream", f"ends at {fold.position.offset}, readers have seen {self._until.offset}"
                )
            self._sink.finish(self._sizes)
            self._secrets()
            return VerifyResult(
                clean=not self._sink.differences,
                stream_bytes=fold.position.offset,
                events=self._sink.events,
                blocks=self._sink.blocks,
                waits=self._waits,
                differences=self._sink.differences,
            )
        finally:
            fold.close()
            self._screens.close()
            self._drawn.close()
            self._stream.close()

    def _entry(self, entry: Entry) -> None:
        if nonce := new_nonce(entry):
            self._mask.add(nonce)
        if entry.kind == DAMAGED:
            begin, end = entry.fields["bytes"]
            self._sink.differ("I1", "timeline.jsonl", f"bytes {begin} to {end} are damaged")
        note = entry.fields.get("note") if entry.kind == "note" else None
        if not isinstance(note, Mapping):
            return
        if note.get("type") == "owner":
            epoch = int(note.get("epoch", 0))
            if epoch <= self._epoch:
                self._sink.differ("I6", f"timeline at {entry.offset}", f"owner epoch {epoch} after {self._epoch}")
            self._epoch = epoch
        elif note.get("type") == "wait_begin":
            seen = note["seen"]
            self._requests[str(note["wait_id"])] = (
                WaitRequest.from_note(note),
                Position(int(seen["offset"]), int(seen["timeline"])),
            )
        elif note.get("type") == "wait_end":
            self._wait(note)

    def _wait(self, note: Mapping[str, Any]) -> None:
        wait_id = str(note["wait_id"])
        found = self._requests.pop(wait_id, None)
        if self._beginning is not None and (found is None or found[0].cursor < self._beginning.offset):
            return  # what it was answered from is not kept
        if found is None:
            self._sink.differ("I8", wait_id, "ended without a beginning")
            return
        request, seen = found
        horizon = Position(int(note["horizon"]["offset"]), int(note["horizon"]["timeline"]))
        start = self._points.before(request.cursor, seen.timeline)
        self._waits += 1
        try:
            outcome = evaluate(self._layout, self._stream, request, start, seen, horizon, self._screens)
        except PatternTimeout:
            if note["reason"] == "error":
                return
            self._sink.differ("I8", wait_id, "the pattern did not come to an end")
            return
        except BlockptyError as problem:
            self._sink.differ("I8", wait_id, str(problem))
            return
        self._compare(wait_id, note, outcome)

    def _compare(self, wait_id: str, note: Mapping[str, Any], outcome: Outcome | None) -> None:
        if note["reason"] in ("timeout", "cancelled", "error"):
            if outcome is not None:
                self._sink.differ(
                    "I8", wait_id, f"was {note['reason']}, the record gives {outcome.reason} at {outcome.at}"
                )
            return
        again = outcome_to_note(outcome) if outcome is not None else {"reason": "nothing"}
        for name in _COMPARED:
            if again.get(name) != note.get(name):
                self._sink.differ("I8", wait_id, f"{name} was {note.get(name)!r}, the record gives {again.get(name)!r}")

    def _check(self, events: list[Any], fed: int) -> None:
        for event in events:
            if event.seq != self._next_event:
                self._sink.differ("I3", f"event {event.seq}", f"comes after {self._next_event - 1}")
            self._next_event = event.seq + 1
            if event.cursor > fed:
                self._sink.differ(
                    "I5", f"event {event.seq}", f"cursor {event.cursor} lies behind the stream's end {fed}"
                )
            if event.type == "agent_block_end":
                begin, end = event.fields["block"]["span"]
                if begin < self._span_end or end < begin:
                    self._sink.differ(
                        "I2", event.fields["block_id"], f"span {begin}..{end} overlaps what ended at {self._span_end}"
                    )
                self._span_end = max(self._span_end, end)

    def _secrets(self) -> None:
        """No nonce in any derived file."""
        derived = [self._layout.events, self._layout.blocks]
        derived += sorted(self._layout.outputs.glob("*.out")) if self._layout.outputs.is_dir() else []
        nonces = [nonce.encode() for nonce in self._mask.nonces]
        for path in derived:
            if path.exists() and _contains(path, nonces):
                self._sink.differ("I7", path.name, "holds a nonce")


def _contains(path: Path, needles: Sequence[bytes]) -> bool:
    carry = b""
    longest = max((len(needle) for needle in needles), default=1)
    with path.open("rb") as file:
        while piece := file.read(1024 * 1024):
            if any(needle in carry + piece for needle in needles):
                return True
            carry = piece[-longest:]
    return False
